// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// What was removed from a home that lies elsewhere is that home's, and no other's in the same place.
@Suite(.enabled(if: Program.isRoot, "only a store of root's has homes elsewhere"))
struct RemovedElsewhereTests {
  private static let (anna, ben): (UInt32, UInt32) = (4_000_000_121, 4_000_000_122)

  private let fixture: TestFixture
  private let directory: TemporaryDirectory
  private var registry: Registry { fixture.registry }

  init() throws {
    fixture = try TestFixture()
    directory = try TemporaryDirectory()
  }

  @discardableResult
  private func add(
    _ name: String, of owner: UInt32, at path: String = "/homes", added: Int64 = 1
  ) throws -> VolumeRecord {
    let kind: VolumeRecord.Kind =
      path.hasPrefix("/") ? .directory : path.hasPrefix("UUID") ? .disk : .server
    let volume = try registry.add(
      VolumeRecord(
        in: .users, name: Array(name.utf8), kind: kind, path: Array(path.utf8),
        identity: ObjectIdentity(inode: 1, handle: [], created: 1), owner: nil, isReadOnly: false,
        added: added))
    try registry.note(owner: owner, ofHome: volume.id)
    try attach(name, of: owner)
    return volume
  }

  /// Has a home be there; away without an owner.
  private func attach(_ name: String, of owner: UInt32?) throws {
    let users = try fixture.store.tree.openDirectory("Users")
    var target: RedirectedNames.Target?
    if let owner {
      let home = try directory.makeDirectory("\(name)-\(owner)-\(UUIDText.random())", mode: 0o711)
      try #require(chown(home, owner, owner) == 0)
      let root = SharedFD(try FD.cwd.openFollowing(home, O_RDONLY | O_DIRECTORY))
      target = try RedirectedNames.Target(root: root, workshop: root, in: root)
      if !users.fd.has(name) { try fixture.store.link(name, to: directory.path) }
    }
    RedirectedNames.set(Array(name.utf8), in: try users.fd.status(), to: target)
  }

  private func record(_ identifier: String, in home: String, of user: UInt32) throws -> ContainerRecord {
    ContainerRecord(
      uuid: "\(identifier)-\(home)", kind: .data, identifier: try #require(AppIdentifier(identifier)),
      user: user, path: "Users/\(home)/Library/Containers/\(identifier)")
  }

  @discardableResult
  private func remove(
    _ identifier: String = "com.example.gone", in home: String, of user: UInt32
  ) throws -> RemovedContainer {
    let record = try record(identifier, in: home, of: user)
    let object = try fixture.store.object(ofHomeIn: record.path, registry)
    return try registry.noteRemoval(of: record, from: object, at: 7)
  }

  /// What a user can list, restore and delete.
  private func visible(_ user: UInt32) throws -> [Int64] {
    try fixture.store.removedContainers(ownedBy: user, registry).map(\.number)
  }

  private func row(_ removed: RemovedContainer) throws -> RemovedContainer? {
    try registry.removedContainers().first { $0.number == removed.number }
  }

  /// The attack: what anybody removes in a directory of homes is the first one's.
  @Test(arguments: ["/homes", "UUID=1234-5678", "nfs://server/homes"])
  func homesOfOnePlaceAreTwo(source: String) throws {
    let first = try add("anna", of: Self.anna, at: source)
    let second = try add("ben", of: Self.ben, at: source)
    let (hers, his) = (try remove(in: "anna", of: Self.anna), try remove(in: "ben", of: Self.ben))
    try fixture.store.followNumbers(in: registry)
    #expect(try visible(Self.anna) == [hers.number] && visible(Self.ben) == [his.number])
    let homes = try RemovedHomes(fixture.store, registry)
    #expect(homes.isFrom("anna", hers) && !homes.isFrom("anna", his) && homes.isFrom("ben", his))
    // Of each home so many are kept, also where both are one user's.
    try add("eva", of: Self.anna, at: source)
    for number in 0..<Registry.mostRemoved {
      try remove("com.example.n\(number)", in: "eva", of: Self.anna)
    }
    #expect(try registry.removedContainers().allSatisfy { !$0.isBeingDeleted })
    #expect(try registry.forgetHome("anna", on: first) == [hers.container.uuid])
    #expect(try row(hers)?.isBeingDeleted == true && row(his)?.isBeingDeleted == false)
    // The volume is the home's for good, whoever owns it by now.
    try registry.forgetOwner(ofHome: second.id)
    #expect(try visible(Self.ben).isEmpty)
    try attach("ben", of: Self.anna)
    try registry.note(owner: Self.anna, ofHome: second.id)
    try fixture.store.followNumbers(in: registry)
    #expect(try visible(Self.ben).isEmpty && visible(Self.anna).contains(his.number))
  }

  /// The attack: the next account of a name gets its home where the ejected one was.
  @Test(arguments: [false, true]) func anEjectedHomeIsNotItsNamesakes(isNoted: Bool) throws {
    let stranger: UInt32 = 4_000_000_123
    let first = try add("anna", of: Self.anna)
    let hers = try remove(in: "anna", of: Self.anna)
    try registry.ejectHome(first)
    let second = try add("anna", of: stranger)
    try remove("com.example.other", in: "anna", of: stranger)
    let before = try #require(try row(hers))
    try fixture.store.followNumbers(in: registry)
    #expect(try row(hers) == before && visible(stranger).count == 1 && visible(Self.anna).isEmpty)
    if isNoted {
      try registry.ejectHome(second)
    } else {
      #expect(try registry.forgetHome("anna", on: second) == ["com.example.other-anna"])
      try registry.removeVolume(second.id)
    }
    #expect(try row(hers)?.isBeingDeleted == false)
    // Its owner has it where it was.
    try add("anna", of: Self.anna)
    try fixture.store.followNumbers(in: registry)
    #expect(try visible(Self.anna) == [hers.number] && visible(stranger).isEmpty)
  }

  /// The attack: while a home is away, whoever has its owner's number has what was removed there.
  @Test func ofAHomeThatIsAwayItWaits() throws {
    try add("anna", of: Self.anna)
    try add("ben", of: Self.ben)
    let (hers, his) = (try remove(in: "anna", of: Self.anna), try remove(in: "ben", of: Self.ben))
    try attach("anna", of: nil)
    try fixture.store.followNumbers(in: registry)
    #expect(try visible(Self.anna).isEmpty && visible(Self.ben) == [his.number])
    // Nor does root delete it before anybody has looked.
    _ = try fixture.containers().delete(hers)
    #expect(try row(hers) == hers)
    // The same directory, which is somebody else's by now.
    try attach("anna", of: Self.ben)
    #expect(try visible(Self.anna).isEmpty && visible(Self.ben) == [his.number])
    try attach("anna", of: Self.anna)
    #expect(try visible(Self.anna) == [hers.number])
  }

  /// Another owner's home at the place of an ejected one is not that one come back.
  @Test func anEjectedHomeIsNotedBesideANamesakes() throws {
    try registry.ejectHome(add("anna", of: Self.anna))
    let second = try add("anna", of: Self.ben)
    #expect(try registry.ejectedHomes().map(\.owner) == [Self.anna])
    try registry.removeVolume(second.id)
    try add("anna", of: Self.anna)
    #expect(try registry.ejectedHomes().isEmpty)
  }

  /// The attack: a note on a disk says the UUID of what another user has removed.
  @Test func theUUIDOfAnothersContainerTakesNothing() throws {
    try add("anna", of: Self.anna)
    try add("ben", of: Self.ben)
    let hers = try remove(in: "anna", of: Self.anna)
    let mine = try record("com.example.gone", in: "ben", of: Self.ben)
    let forged = ContainerRecord(
      uuid: hers.container.uuid, kind: .data, identifier: mine.identifier, user: Self.ben, path: mine.path)
    #expect(storeError { _ = try registry.noteRemoval(of: forged, at: 9) } != nil)
    #expect(try registry.removedContainers() == [hers])
    // Once more for the same user it is the same row.
    _ = try registry.noteRemoval(of: hers.container, from: hers.home, at: 9)
    #expect(try visible(Self.anna).count == 1)
  }

  /// An earlier version has noted the place alone, and everything for the first home there.
  @Test func whatWasNotedForAPlaceIsOneHomes() throws {
    try add("anna", of: Self.anna)
    try add("ben", of: Self.ben)
    let place = ObjectIdentity(ofAllHomesAt: Array("/homes".utf8))
    let his = try registry.noteRemoval(
      of: record("com.example.gone", in: "ben", of: Self.anna), from: place, at: 7)
    // The home was added again since, and the one before was perhaps a namesake's.
    try add("eva", of: Self.ben, added: 9)
    let old = try registry.noteRemoval(
      of: record("com.example.gone", in: "eva", of: Self.ben), from: place, at: 7)
    #expect(try visible(Self.anna).isEmpty && visible(Self.ben).isEmpty)
    try fixture.store.followNumbers(in: registry)
    #expect(try visible(Self.anna).isEmpty && visible(Self.ben) == [his.number])
    #expect(try row(old) == old)
    // From now on it is the home's alone.
    #expect(try row(his)?.home == fixture.store.object(ofHomeIn: "Users/ben/x", registry))
  }

  /// What no version has noted the home of goes to no home elsewhere by the name of an account.
  @Test func aNameAloneIsNoHomeElsewhere() throws {
    let number: UInt32 = 4_000_000_123
    try add("anna", of: number)
    let hers = try registry.noteRemoval(of: record("com.example.gone", in: "anna", of: Self.anna), at: 7)
    try registry.change { (database) throws(StoreError) in
      try database.run(
        "INSERT INTO holders (user, name) VALUES (?, 'anna')", .integer(Int64(Self.anna)))
    }
    let directory = try TemporaryDirectory()
    let accounts = LocalAccounts(
      path: try directory.write("anna:x:\(number):\(number)::/nonexistent:/bin/sh\n", to: "passwd"))
    try fixture.store.followNumbers(in: registry, accounts)
    #expect(try row(hers) == hers && visible(number).isEmpty)
  }

  /// What lies beside an ejected home is not gone because it is not beside the next one of its name.
  @Test func whatIsNotBesideANamesakesHomeStays() throws {
    let place = try record("com.example.gone", in: fixture.account.name, of: fixture.account.uid)
    let own = try fixture.store.object(ofHomeIn: place.path, registry)
    let away = VolumeRecord(
      in: .users, name: Array(fixture.account.name.utf8), path: Array("UUID=1".utf8),
      identity: ObjectIdentity(inode: 0, handle: [], created: 0), owner: nil, isReadOnly: false, added: 1)
    let other = try registry.noteRemoval(
      of: place, from: ObjectIdentity(ofHome: away, of: Self.anna), at: 7)
    let gone = try registry.noteRemoval(
      of: record("com.example.more", in: fixture.account.name, of: fixture.account.uid), from: own, at: 7)
    try fixture.containers().forgetRestored()
    #expect(try row(other) == other && row(gone) == nil)
  }
}
