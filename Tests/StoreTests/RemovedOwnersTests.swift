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
  private func remove(_ identifier: String, in home: String, of user: UInt32) throws -> RemovedContainer {
    let record = ContainerRecord(
      uuid: "\(identifier)-\(home)", kind: .data, identifier: try #require(AppIdentifier(identifier)),
      user: user, path: "Users/\(home)/Library/Containers/\(identifier)")
    return try registry.noteRemoval(of: record, at: 7)
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
    for _ in 0..<2 {
      #expect(try owners("anna") == [ben, ben, ben, ben, 0])
      #expect(try owners("ben") == [anna, anna, anna, anna, 0])
      try fixture.store.followNumbers(in: registry)
    }
    #expect(try findings(repairing: false).isEmpty)
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
    #expect(try owners("ben") == [Self.anna, Self.anna, Self.anna, Self.anna, 0])
  }
}
