// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
@testable internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// Homes that are not there, and come back with what lies in them and beside them.
@Suite struct EjectedHomeTests {
  private let fixture: TestFixture
  private let containers: Containers
  private let app: InstalledApp
  private var registry: Registry { fixture.registry }
  private var user: UInt32 { fixture.account.uid }
  private var held: String { fixture.path + "/state/removed" }
  private var away: String { fixture.path + "/state/away" }

  init() throws {
    fixture = try TestFixture()
    containers = try fixture.containers()
    app = try .example(groups: ["group.a"])
    // One container is removed, and one is only marked.
    for _ in 0..<2 {
      try registry.add(app)
      _ = try containers.make(for: app, home: fixture.account.name)
      _ = try registry.remove(app.identifier, of: nil, keepingData: false)
      if try registry.removedContainers().isEmpty { try containers.removeMarked() }
    }
    try FileManager.default.createDirectory(atPath: away, withIntermediateDirectories: true)
  }

  private func names(_ path: String) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
  }

  private func source(_ name: String, _ path: String) -> VolumeRecord {
    VolumeRecord(
      in: .users, name: Array(name.utf8), path: Array(path.utf8),
      identity: ObjectIdentity(inode: 1, handle: [], created: 1), owner: nil, isReadOnly: false, added: 1)
  }

  /// Adds the volume of a home and ejects it.
  private func eject(_ name: String, of owner: UInt32?, from path: String = "/homes") throws {
    let volume = try registry.add(source(name, path))
    if let owner { try registry.note(owner: owner, ofHome: volume.id) }
    try registry.ejectHome(volume)
    #expect(try !registry.volumes().contains { $0.id == volume.id })
  }

  /// The home goes, and with it what lies beside it.
  private func take() throws {
    try #require(rename(fixture.home, away + "/home") == 0 && rename(held, away + "/held") == 0)
  }

  private func bringBack() throws {
    _ = mkdir(held, 0o700)
    try #require(rename(away + "/home", fixture.home) == 0)
    for name in names(away + "/held") { try #require(rename("\(away)/held/\(name)", "\(held)/\(name)") == 0) }
  }

  private func marked() throws -> Int { try registry.containers(isMarkedForRemoval: true).count }

  /// Whether it was ejected, or root has moved it away.
  @Test(arguments: [true, false]) func whatIsNotThereWaits(isEjected: Bool) throws {
    let removed = try registry.removedContainers()
    try #require(try removed.count == 2 && marked() == 2)
    try take()
    if isEjected { try eject(fixture.account.name, of: user) }
    let looked = try containers.removeMarked()
    #expect(looked.records.isEmpty && looked.left.isEmpty)
    try containers.forgetRestored()
    try containers.endStoppedReplacements()
    #expect(try registry.removedContainers() == removed && marked() == 2)
    // Its user deletes one of them, which is done as soon as it is there again.
    if isEjected {
      _ = try containers.delete(removed[0])
      #expect(try registry.removedContainers().map(\.isBeingDeleted) == [true, false])
    }
    try bringBack()
    try containers.forgetRestored()
    #expect(try containers.removeMarked().records.count == 2 && marked() == 0)
    _ = try containers.restore(removed[1])
    #expect(access(fixture.path + "/tree/" + removed[1].container.path, F_OK) == 0)
    if isEjected {
      _ = try containers.delete(try #require(registry.removedContainers().first { $0.isBeingDeleted }))
      #expect(!names(held).contains(removed[0].container.uuid))
    }
  }

  /// Another home of the name has nothing to do with what lies beside the first one.
  @Test(arguments: [true, false]) func anotherHomeOfTheNameTakesNothingAway(isEjected: Bool) throws {
    try take()
    if isEjected { try eject(fixture.account.name, of: user) }
    let homes = try Homes(tree: fixture.store.tree, path: fixture.path + "/tree", mode: .system)
    try homes.add(fixture.account.name)
    try containers.removeMarked()
    try containers.forgetRestored()
    #expect(try registry.removedContainers().count == (isEjected ? 2 : 0))
    #expect(try marked() == (isEjected ? 2 : 0))
  }

  /// The users 501 and 502 have the homes `eva` and `ben`.
  @Test func ejectedHomesAreTheirOwners() throws {
    func holder(_ user: UInt32, _ name: String) throws -> NumberHolder {
      try registry.holder(of: user, named: name, homeIsBack: false)
    }
    for (user, name) in [(501, "eva"), (502, "ben")] as [(UInt32, String)] {
      _ = try registry.note(
        ContainerRecord(
          uuid: "\(user)", kind: .data, identifier: app.identifier, user: user,
          path: "Users/\(name)/Library/Containers/\(app.identifier)"))
      #expect(try holder(user, name) == .former)
      // A home of the account's that somebody else has, and that it adopts.
      #expect(try registry.holder(of: user, named: name, homeIsBack: true) == .account)
      #expect(try registry.holder(of: user, named: "x" + name, homeIsBack: true) == .former)
    }
    try eject("eva", of: 501)
    #expect(try holder(501, "eva") == .account && holder(502, "ben") == .former)
    // The number has another account by now, or the name another number.
    #expect(try holder(501, "emil") == .former && holder(502, "eva") == .former)
    #expect(try holder(503, "eva") == .unknown)
    // Of one that nobody has seen, it counts whose things are noted there.
    try eject("ben", of: nil)
    #expect(try holder(502, "ben") == .account && holder(501, "ben") == .former)
    // Its owner has it until it comes back, and not from another place.
    #expect(try fixture.store.ownership(of: 501, registry) == .yes)
    let ignoring = try fixture.store.ownership(of: 501, registry, countingEjected: false)
    #expect(ignoring == .no)
    try registry.note(owner: 501, ofHome: registry.add(source("eva", "/elsewhere")).id)
    #expect(try registry.isInEjectedHome("Users/eva/x"))
    try registry.note(owner: 501, ofHome: registry.add(source("eva", "/homes")).id)
    #expect(try !registry.isInEjectedHome("Users/eva/x") && registry.isInEjectedHome("Users/ben/x"))
    #expect(try holder(501, "eva") == .former)
    // With its owner's number it is forgotten.
    try eject("ben", of: 502, from: "/more")
    _ = try registry.forget(user: 502)
    #expect(try registry.ejectedHomes().map(\.owner) == [nil])
    try registry.forgetHome("ben")
    #expect(try registry.ejectedHomes().isEmpty)
  }

  /// Another account has the number by now: what is noted in the home is not that one's.
  @Test(.enabled(if: Program.isRoot, "accounts need root")) func theNextHolderOfTheNumberHasNothing() throws {
    let (next, same) = (try TemporaryAccount(), try TemporaryAccount())
    for (account, home) in [(next, "gone"), (same, same.account.name)] {
      let user = account.account.uid
      var own = try InstalledApp.example("com.example.own", user: user, name: "Own")
      own.path = "Users/\(home)/Applications/Own.app"
      try registry.add(own)
      for kind in [ContainerKind.data, .cloud] {
        let record = ContainerRecord(
          uuid: "\(kind)-\(user)", kind: kind, identifier: try #require(AppIdentifier("com.example.left")),
          user: user, path: "Users/\(home)/Library/Containers/\(kind)")
        #expect(try registry.note(record) == record)
      }
      try eject(home, of: user)
    }
    let identifier = try #require(AppIdentifier("com.example.own"))
    let left = try #require(AppIdentifier("com.example.left"))
    for (account, count) in [(next, 0), (same, 1)] {
      let user = account.account.uid
      #expect(try registry.apps(for: user).count == count && registry.apps(seenBy: user).count == count)
      #expect(try (registry.app(identifier, for: user) == nil) == (count == 0))
      #expect(try registry.containers(user: user).count == 2 * count)
      #expect(try registry.containers(kind: .data, identifier: left, user: user).count == count)
      #expect(try registry.doomLeft(by: left, of: user, for: user) == count)
    }
    let containers = try registry.containers(identifier: left)
    #expect(Set(containers.map(\.user)) == [next.account.uid, same.account.uid])
    #expect(containers.filter(\.isMarkedForRemoval).map(\.user) == [same.account.uid])
    // Everyone's app is theirs.
    try registry.add(.example("com.example.own", name: "Everyones"))
    #expect(try registry.app(identifier, for: next.account.uid)?.user == nil)
    #expect(try registry.app(identifier, for: next.account.uid) != nil)
  }

  /// What may be a former user's is nobody's but root's afterwards, and all of it is there.
  @Test func whatIsSetAsideIsKept() throws {
    let trash = fixture.path + "/tree/.Trash/\(user)"
    try FileManager.default.createDirectory(atPath: trash, withIntermediateDirectories: true)
    try #require(chown(trash, user, fixture.account.gid) == 0)
    try #require(FileManager.default.createFile(atPath: trash + "/letter", contents: nil))
    // Somebody else's.
    let stranger = ContainerRecord(
      uuid: "of-502", kind: .data, identifier: app.identifier, user: 502, path: "Users/ben/x")
    try registry.noteRemoval(of: stranger, at: 1)
    try #require(mkdir(held + "/of-502", 0o700) == 0)
    // What is known to be from a home that is not there comes back with that one.
    let waiting = ContainerRecord(
      uuid: "waiting", kind: .data, identifier: app.identifier, user: user, path: "Users/away/x")
    try registry.noteRemoval(of: waiting, from: ObjectIdentity(inode: 7, handle: [7], created: 7), at: 1)
    try #require(mkdir(held + "/waiting", 0o700) == 0)
    let before = names(held)
    #expect(try containers.setAside(of: 503) == [] && names(fixture.path + "/state/former") == [])
    let moved = try containers.setAside(of: user)
    try #require(moved.count == 3 && moved[0].path.hasSuffix("/trash"), "\(moved)")
    for left in moved { #expect(access("\(fixture.path)/\(left.path)", F_OK) == 0, "\(left)") }
    #expect(access("\(fixture.path)/\(moved[0].path)/letter", F_OK) == 0 && access(trash, F_OK) == -1)
    #expect(try registry.removedContainers().map(\.container.uuid) == ["waiting", "of-502"])
    #expect(names(held) == ["of-502", "waiting"] && before.count == 4)
    _ = try registry.forget(user: user)
    #expect(try registry.removedContainers(of: user).map(\.isBeingDeleted) == [false])
    #expect(try fixture.store.removedContainers(ownedBy: user, registry) == [])
    #expect(try containers.setAside(of: user) == [])
    let found = try fixture.findings().filter { $0.path.contains("/state/former/") }
    #expect(found.count == 1 && found[0].problem.contains("uid \(user) "), "\(found)")
  }

  /// Removed containers without a row are found, in the store and beside homes in a directory.
  @Test func lostContainersAreFound() throws {
    func lost() throws -> [String] {
      try fixture.findings().filter { $0.problem.contains("the store has lost") }.map(\.path)
    }
    #expect(try lost() == [])
    let source = fixture.made.path + "/keys/homes"
    let place = "\(source)/.insula/\(fixture.store.description.uuid)/removed"
    try FileManager.default.createDirectory(atPath: place + "/one", withIntermediateDirectories: true)
    try #require(mkdir(held + "/two", 0o700) == 0)
    #expect(try lost() == [held + "/two"])
    let keys = try fixture.store.directory.openDirectory("keys")
    let identity = try ObjectIdentity(of: "homes", in: keys.fd)
    let notes = VolumeNotes(of: fixture.store)
    for name in ["eva", "ben"] {
      let home = VolumeRecord(
        in: .users, name: Array(name.utf8), path: Array(source.utf8), identity: identity, owner: nil,
        isReadOnly: false, added: 1)
      _ = try registry.add(home)
      // What was not added on this machine is not even looked for.
      #expect(try lost() == [held + "/two"] + (name == "eva" ? [] : [place + "/one"]))
      try notes.add([home])
    }
    defer { for home in (try? registry.volumes()) ?? [] { try? notes.remove(home) } }
    #expect(try lost() == [held + "/two", place + "/one"])
    // What has a row is not lost, and another directory at that path is not the one that was added.
    let removed = ContainerRecord(
      uuid: "one", kind: .data, identifier: app.identifier, user: 502, path: "Users/ben/x")
    try registry.noteRemoval(of: removed, at: 1)
    #expect(try lost() == [held + "/two"])
    try #require(mkdir(place + "/three", 0o700) == 0)
    #expect(try lost() == [held + "/two", place + "/three"])
    try #require(rename(source, source + ".old") == 0)
    try FileManager.default.createDirectory(atPath: place + "/four", withIntermediateDirectories: true)
    #expect(try lost() == [held + "/two"])
  }
}
