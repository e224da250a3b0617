// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// What was removed is the home's owner's, whatever number it is noted under, and whatever else is there.
@Suite(.enabled(if: Program.isRoot, "giving files away needs root")) struct RemovedOwnersTests {
  private static let (anna, ben): (UInt32, UInt32) = (4_000_000_111, 4_000_000_112)

  private let fixture: TestFixture
  private var registry: Registry { fixture.registry }
  private var held: String { "\(fixture.path)/state/removed" }

  /// Two homes, from each of which one container with a letter was removed; there is nothing else.
  init() throws {
    fixture = try TestFixture()
    for (name, user) in [("anna", Self.anna), ("ben", Self.ben)] {
      try #require(mkdir("\(fixture.path)/tree/Users/\(name)", 0o711) == 0)
      try give("Users/\(name)", to: user)
      let removed = try remove("com.example.gone", in: name, of: user)
      let letter = "\(held)/\(removed.container.uuid)/Data/letter"
      try #require(
        try Program.run(["sh", "-ec", "mkdir -p ${1%/*}; echo \(name) >$1; echo root >$1-", "sh", letter])
          .status == 0)
      for path in ["", "/Data", "/Data/letter"] {
        try #require(lchown("\(held)/\(removed.container.uuid)\(path)", user, user) == 0)
      }
    }
  }

  @discardableResult
  private func remove(
    _ identifier: String, in home: String, of user: UInt32
  ) throws -> RemovedContainer {
    let record = ContainerRecord(
      uuid: "\(identifier)-\(home)", kind: .data, identifier: try #require(AppIdentifier(identifier)),
      user: user, path: "Users/\(home)/Library/Containers/\(identifier)")
    let object = try fixture.store.object(ofHomeIn: record.path, registry)
    return try registry.noteRemoval(of: record, from: object, at: 7)
  }

  private func give(_ path: String, to user: UInt32) throws {
    try #require(lchown("\(fixture.path)/tree/\(path)", user, user) == 0)
  }

  private func exchange() throws {
    try give("Users/anna", to: Self.ben)
    try give("Users/ben", to: Self.anna)
  }

  /// Whose what was removed from a home is, and whose what is in it: a letter, and root's file.
  private func owners(_ home: String) throws -> [UInt32] {
    let removed = try #require(registry.removedContainers().first { $0.container.path.contains("/\(home)/") })
    let place = "\(held)/\(removed.container.uuid)"
    return [removed.container.user]
      + (try ["", "/Data", "/Data/letter", "/Data/letter-"].map { path in
        try FD.cwd.status(of: place + path).st_uid
      })
  }

  @Test(arguments: [false, true]) func removedContainersFollowTheirHomesAlone(byCheck: Bool) throws {
    let (anna, ben) = (Self.anna, Self.ben)
    try exchange()
    // Nobody gets the other one's meanwhile.
    let containers = try fixture.containers()
    for removed in try registry.removedContainers() {
      #expect(
        storeError { _ = try containers.restore(removed) } == .noRemovedContainer(number: removed.number))
    }
    #expect(try owners("anna").first == anna && owners("ben").first == ben)
    func findings(repairing: Bool) throws -> [Bool?] {
      var check = try StoreCheck(fixture.store, repairing: repairing)
      try check.run()
      let found = check.findings.filter { $0.problem.contains("was removed, and is noted for uid") }
      return found.map(\.repaired)
    }
    #expect(try findings(repairing: false).count == 2)
    if byCheck {
      #expect(try findings(repairing: true) == [true, true])
    } else {
      try fixture.store.followNumbers(in: registry)
    }
    // Nobody waits until all files are given along: that is done when they are restored or deleted.
    #expect(try owners("anna") == [ben, anna, anna, anna, 0])
    #expect(try owners("ben") == [anna, ben, ben, ben, 0])
    #expect(try findings(repairing: false).isEmpty)
    let (his, hers) = (try #require(try visible(anna).first), try #require(try visible(ben).first))
    #expect(try containers.measure(hers).bytes > 0)
    let place = fixture.path + "/tree/" + (try containers.restore(hers)).path
    let found = try ["", "/Data", "/Data/letter", "/Data/letter-"].map { path in
      try FD.cwd.status(of: place + path).st_uid
    }
    #expect(found == [ben, ben, ben, 0])
    _ = try containers.delete(his)
    #expect(try registry.removedContainers().isEmpty)
    // What is root's lies beside its place.
    #expect(access("\(held)/\(his.container.uuid)", F_OK) == -1)
  }

  /// What a user can list, restore and delete.
  private func visible(_ user: UInt32) throws -> [RemovedContainer] {
    try fixture.store.removedContainers(ownedBy: user, registry)
  }

  private func move(_ name: String, to other: String) throws {
    let users = fixture.path + "/tree/Users/"
    try #require(rename(users + name, users + other) == 0)
  }

  private func makeHome(_ name: String, of user: UInt32) throws {
    try #require(mkdir("\(fixture.path)/tree/Users/\(name)", 0o711) == 0)
    try give("Users/\(name)", to: user)
  }

  /// The attack: the next home of a name gets what was removed from the one before.
  @Test(arguments: [false, true]) func theNextHomeOfTheNameGetsNothing(isRenamed: Bool) throws {
    let stranger: UInt32 = 4_000_000_113
    if isRenamed {
      try move("anna", to: "eva")
    } else {
      try #require(rmdir("\(fixture.path)/tree/Users/anna") == 0)
      // The next directory may have the same number.
      try makeHome("spare", of: 0)
    }
    try makeHome("anna", of: stranger)
    try fixture.store.followNumbers(in: registry)
    #expect(try owners("anna") == [Self.anna, Self.anna, Self.anna, Self.anna, 0])
    #expect(try visible(stranger).isEmpty && visible(Self.anna).count == (isRenamed ? 1 : 0))
    // With a home goes what was removed from it, and nothing of the one before.
    let homes = try RemovedHomes(fixture.store, registry)
    #expect(try !registry.removedContainers().contains { homes.isFrom("anna", $0) })
    try #require(rmdir("\(fixture.path)/tree/Users/anna") == 0)
    try fixture.store.forget(home: "anna", of: stranger, in: registry)
    try fixture.store.forget(home: "anna", of: Self.anna, in: registry)
    #expect(try registry.removedContainers().allSatisfy { !$0.isBeingDeleted })
  }

  /// The attack: while a home is away, whoever has its owner's number gets what was removed from it.
  @Test func whatIsAwayWaits() throws {
    try move("anna", to: ".away")
    try give("Users/ben", to: Self.anna)
    try fixture.store.followNumbers(in: registry)
    let hers = try #require(registry.removedContainers().first { $0.container.path.contains("/anna/") })
    #expect(try visible(Self.anna).map(\.container.path) == ["Users/ben/Library/Containers/com.example.gone"])
    // It is not counted, and nothing deletes it.
    for number in 0..<Registry.mostRemoved { try remove("com.example.n\(number)", in: "ben", of: Self.anna) }
    func row() throws -> RemovedContainer? {
      try registry.removedContainers().first { $0.number == hers.number }
    }
    #expect(try row() == hers)
    #expect(try registry.removedContainers().count { $0.isBeingDeleted } == 1)
    var check = try StoreCheck(fixture.store, repairing: false)
    try check.run()
    #expect(check.findings.count { $0.problem.contains("was removed, and waits") } == 1)
    try move(".away", to: "anna")
    try give("Users/anna", to: Self.ben)
    try fixture.store.followNumbers(in: registry)
    #expect(try visible(Self.ben).map(\.number) == [hers.number])
    #expect(try !visible(Self.anna).contains { $0.number == hers.number })
  }

  /// Where an earlier version has noted no home, name and number have to be those of before, or the account
  /// is known to have another number.
  @Test(arguments: [false, true]) func earlierRemovalsFollowKnownAccountsAlone(isKnown: Bool) throws {
    let made = try registry.removedContainers()
    for removed in made {
      try registry.forget(removed)
      _ = try registry.noteRemoval(of: removed.container, at: 7)
    }
    #expect(try visible(Self.anna).count == 1 && visible(Self.ben).count == 1)
    let directory = try TemporaryDirectory()
    let numbers =
      isKnown ? [("anna", Self.ben), ("ben", Self.anna)] : [("eva", Self.anna), ("emil", Self.ben)]
    let lines = numbers.map { "\($0):x:\($1):\($1)::/nonexistent:/bin/sh\n" }
    let accounts = LocalAccounts(path: try directory.write(lines.joined(), to: "passwd"))
    for (name, user) in [("anna", Self.anna), ("ben", Self.ben)] where isKnown {
      try registry.change { (database) throws(StoreError) in
        try database.run(
          "INSERT INTO holders (user, name) VALUES (?, ?)", .integer(Int64(user)), .text(name))
      }
    }
    try exchange()
    #expect(try visible(Self.anna).isEmpty && visible(Self.ben).isEmpty)
    try fixture.store.followNumbers(in: registry, accounts)
    #expect(try visible(Self.anna).count == (isKnown ? 1 : 0) && visible(Self.ben).count == (isKnown ? 1 : 0))
    if !isKnown {
      try exchange()
      try give("Users/anna", to: Self.anna)
      try give("Users/ben", to: Self.ben)
      try fixture.store.followNumbers(in: registry, accounts)
      // From now on it is the home that counts.
      try exchange()
      try fixture.store.followNumbers(in: registry, accounts)
      #expect(try owners("anna").first == Self.ben && owners("ben").first == Self.anna)
    }
  }

  /// What lies in others' homes by now is not counted among what an account has removed.
  @Test func nobodyPushesOutWhatIsOthers() throws {
    for number in 1..<Registry.mostRemoved { try remove("com.example.n\(number)", in: "anna", of: Self.anna) }
    try exchange()
    let record = ContainerRecord(
      uuid: "new", kind: .data, identifier: try #require(AppIdentifier("com.example.new")), user: Self.anna,
      path: "Users/ben/Library/Containers/com.example.new")
    try fixture.containers().noteRemoval(of: record)
    let all = try registry.removedContainers()
    #expect(all.count == Registry.mostRemoved + 2 && all.allSatisfy { !$0.isBeingDeleted })
    #expect(all.count { $0.container.user == Self.ben } == Registry.mostRemoved + 1)
  }

  /// Where nobody knows whose a home is, nothing changes hands.
  @Test(arguments: ["gone", "root", "ejected"]) func whatIsNotKnownStays(home: String) throws {
    for removed in try registry.removedContainers() {
      try registry.forget(removed)
      _ = try registry.noteRemoval(of: removed.container, at: 7)
    }
    switch home {
    case "gone": try #require(rmdir("\(fixture.path)/tree/Users/anna") == 0)
    case "root": try give("Users/anna", to: 0)
    default:
      try registry.noteLostHome("anna", at: "/homes")
      try give("Users/anna", to: Self.ben)
    }
    try give("Users/ben", to: Self.anna)
    try fixture.store.followNumbers(in: registry)
    #expect(try owners("anna") == [Self.anna, Self.anna, Self.anna, Self.anna, 0])
    // An earlier version has not noted which home it is from.
    #expect(try owners("ben") == [Self.ben, Self.ben, Self.ben, Self.ben, 0])
    #expect(try visible(Self.anna).isEmpty && visible(Self.ben).isEmpty)
  }
}
