// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// What is removed can be restored.
@Suite struct RemovedContainersTests {
  private let fixture: TestFixture
  private let containers: Containers
  private let app: InstalledApp
  private var library: String { fixture.home + "/Library" }
  private var letter: String { library + "/Containers/com.example.editor/Data/Documents/letter" }
  private var held: String { fixture.path + "/state/removed" }

  init() throws {
    fixture = try TestFixture()
    containers = try fixture.containers()
    app = try .example(groups: ["group.a"], clouds: ["iCloud.com.example.editor"])
    try install()
    try Data("mine".utf8).write(to: URL(fileURLWithPath: letter))
    #expect(chown(letter, fixture.account.uid, fixture.account.gid) == 0)
  }

  private func install() throws {
    try fixture.registry.add(app)
    _ = try containers.make(for: app, home: fixture.account.name)
  }

  private func uninstall() throws {
    _ = try fixture.registry.remove(app.identifier, of: nil, keepingData: false)
    #expect(try containers.removeMarked().left.isEmpty)
  }

  private func removed() throws -> [RemovedContainer] { try fixture.registry.removedContainers() }
  private func names(_ path: String) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
  }
  private func inode(_ path: String) -> UInt {
    var status = stat()
    return lstat(path, &status) == 0 ? UInt(status.st_ino) : 0
  }

  @Test func removedContainerIsOutOfReachAndComesBackAsItWas() throws {
    let before = try fixture.registry.containers().filter { $0.kind != .cloud }
    let number = inode(letter)
    try uninstall()
    #expect(names(library + "/Containers") == [] && names(library + "/Group Containers") == [])
    #expect(names(library + "/Mobile Documents") == ["iCloud~com~example~editor"])
    var status = stat()
    #expect(stat(held, &status) == 0 && status.st_mode & 0o7777 == 0o700 && status.st_uid == ProcessID.user)
    #expect(names(held) == before.map(\.uuid).sorted())
    #expect(try removed().map(\.container).sorted { $0.path < $1.path } == before)
    #expect(try fixture.registry.containers().map(\.kind) == [.cloud])
    for container in try removed() { _ = try containers.restore(container) }
    #expect(inode(letter) == number && names(held) == [])
    #expect(try removed() == [])
    let restored = try fixture.registry.containers().filter { $0.kind != .cloud }
    #expect(restored.map(\.identity) == before.map(\.identity))
    // They are other containers from now on, and say so themselves.
    #expect(Set(restored.map(\.uuid)).isDisjoint(with: before.map(\.uuid)))
    #expect(restored.map(\.team) == before.map(\.team) && restored.allSatisfy { $0.keeper == .owner })
    #expect(try fixture.findings().isEmpty)
    // The next installation has it, and it goes with that.
    try install()
    #expect(inode(letter) == number)
    try uninstall()
    #expect(try removed().count == 2)
  }

  /// Flags of the directory that containers are in: what is there stays, and nothing new gets there.
  @Test(arguments: [FileFlags.systemImmutable, .userImmutable, .systemAppend, .userAppend])
  func flagsOfTheDirectoryStandAgainstChanges(flag: FileFlags) throws {
    let directory = try TemporaryDirectory.open(library + "/Containers")
    let isImmutable = !flag.isDisjoint(with: [.systemImmutable, .userImmutable])
    func set(_ flags: FileFlags) throws { try containers.metadata.setFlags(flags, on: directory.fd) }
    func isRestrained(_ body: () throws -> Void) -> Bool {
      guard case .restrained(_, let reason)? = storeError(body) else { return false }
      return reason.contains("the directory that it is in has the flags")
    }
    try set(flag)
    _ = try fixture.registry.remove(app.identifier, of: nil, keepingData: false)
    let left = try containers.removeMarked().left
    #expect(left.count == 1 && left.first?.path.hasSuffix("Containers/com.example.editor") == true)
    #expect(left.first?.reason.contains("the directory that it is in has the flags") == true)
    #expect(names(library + "/Containers") == ["com.example.editor"])
    #expect(names(library + "/Group Containers") == [])
    try set([])
    #expect(try containers.removeMarked().left.isEmpty)
    try set(flag)
    let data = try #require(try removed().first { $0.container.kind == .data })
    #expect(isRestrained { _ = try containers.restore(data) } == isImmutable)
    #expect(names(library + "/Containers") == (isImmutable ? [] : ["com.example.editor"]))
    try fixture.registry.add(app)
    let make = { _ = try self.containers.make(for: self.app, home: self.fixture.account.name) }
    #expect(isRestrained(make) == isImmutable)
    #expect(names(library + "/Containers") == (isImmutable ? [] : ["com.example.editor"]))
    try set([])
    try make()
    #expect(names(library + "/Containers") == ["com.example.editor"])
  }

  /// A container that has such flags itself may lack a directory, which is not made.
  @Test func missingDirectoriesAreNotMadeInImmutableOnes() throws {
    let documents = library + "/Containers/com.example.editor/Data/Documents"
    let data = try TemporaryDirectory.open(library + "/Containers/com.example.editor/Data")
    try FileManager.default.removeItem(atPath: documents)
    try containers.metadata.setFlags(.userImmutable, on: data.fd)
    let failure = storeError { _ = try containers.make(for: app, home: fixture.account.name) }
    guard case .restrained(let path, _)? = failure else {
      Issue.record("\(failure as Any)")
      return
    }
    #expect(path.hasSuffix("/Data/Documents") && !names(library).isEmpty)
    #expect(!FileManager.default.fileExists(atPath: documents))
    try containers.metadata.setFlags([], on: data.fd)
    _ = try containers.make(for: app, home: fixture.account.name)
    #expect(FileManager.default.fileExists(atPath: documents))
  }

  /// The attack: an app was granted what one of that name had, and gets what the next one of that name has.
  @Test func whatWasGrantedOfAContainerGoesWithIt() throws {
    let registry = fixture.registry
    let home = "Users/\(fixture.account.name)"
    let places = [
      "\(home)/Library/Containers/com.example.editor/Data/Documents",
      "\(home)/Library/Containers/com.example.editorial/Data/Documents",
      "\(home)/Library/Mobile Documents/iCloud~com~example~editor/Documents",
      "\(home)/Library/Group Containers/group.a/x", "\(home)/Documents",
    ]
    func grant() throws {
      for (path, user) in places.map({ ($0, fixture.account.uid) }) + [(places[0], UInt32(1))] {
        _ = try registry.add(
          GrantRecord(
            identifier: #require(AppIdentifier("com.example.other")), user: user, team: app.signer,
            path: GrantPath.names(Array(path.utf8)), isWritable: true, isDirectory: true,
            identity: ObjectIdentity(inode: 7, handle: [], created: 0), granted: 7))
      }
    }
    func granted() throws -> [String] {
      try registry.grants().map { String(decoding: GrantPath.path($0.path), as: UTF8.self) }.sorted()
    }
    try grant()
    // Data that are imported are the same app's.
    let record = try #require(try registry.containers(kind: .data).first)
    var old = ContainerRecord(
      uuid: UUIDText.random(), kind: .data, identifier: record.identifier, user: record.user,
      path: record.path, team: record.team)
    old.identity = record.identity
    try registry.forget(registry.noteRemoval(of: old, at: 1))
    #expect(try granted().count == 6)
    try uninstall()
    #expect(try granted() == [places[1], places[2], places[4]].sorted())
    // What is restored is not what is there now, and may be another team's.
    try registry.removeGrants(registry.grants().map(\.id))
    try grant()
    for removed in try removed() { _ = try containers.restore(removed) }
    #expect(try granted() == [places[1], places[2], places[4]].sorted())
    // What turns out to be another team's was granted as somebody else's.
    try grant()
    let restored = try #require(try registry.containers(kind: .data).first)
    try registry.note(app.signer, of: restored)
    #expect(try granted().filter { $0 == places[0] }.count == 2)
    try registry.note(Team("OTHER", root: nil), of: restored)
    #expect(try granted().filter { $0 == places[0] }.isEmpty)
    try registry.forgetHome(fixture.account.name)
    #expect(try granted().isEmpty)
  }

  /// The attack: an app drops all of its groups at once, and with that what other teams' apps have left.
  @Test func droppedGroupsPushOutTheirOwnTeamsAlone() throws {
    let registry = fixture.registry
    func remove(_ number: Int, of team: Team, _ user: UInt32) throws {
      let name = "group.\(team.root?.first ?? 0).n\(number).u\(user)"
      try registry.noteRemoval(
        of: ContainerRecord(
          uuid: name, kind: .group, identifier: #require(AppIdentifier(name)), user: user, path: name,
          team: team), at: Int64(number))
    }
    let (victim, attacker) = (Team("GOOD", root: [1]), Team("GOOD", root: [2]))
    for user in [501, 502] as [UInt32] {
      for number in 0..<3 { try remove(number, of: victim, user) }
      for number in 0..<Registry.mostRemoved * 2 { try remove(number, of: attacker, user) }
      let left = try registry.removedContainers(of: user).filter { !$0.isBeingDeleted }
      #expect(left.count == Registry.mostRemoved)
      #expect(left.filter { $0.container.team == victim }.count == 3)
      // The latest ones of the team that has too many.
      #expect(left.first?.removed == Int64(Registry.mostRemoved * 2 - 1))
      #expect(left.filter { $0.container.team == attacker }.allSatisfy { $0.removed >= 103 })
    }
    // Of one team, or of two that have as many, the oldest go.
    for number in 0..<Registry.mostRemoved { try remove(1000 + number, of: victim, 501) }
    let left = try registry.removedContainers(of: 501).filter { !$0.isBeingDeleted }
    #expect(left.count == Registry.mostRemoved)
    #expect(left.filter { $0.container.team == victim }.count == Registry.mostRemoved / 2)
    #expect(left.filter { $0.container.team == victim }.allSatisfy { $0.removed >= 1050 })
  }

  /// What is there by now is not replaced.
  @Test func restoringRefusesByNameWhatIsThere() throws {
    try uninstall()
    try install()
    let first = try #require(try removed().first { $0.container.kind == .data })
    let place = library + "/Containers/com.example.editor"
    #expect(storeError { _ = try containers.restore(first) } == .containerIsThere(path: place))
    #expect("\(StoreError.containerIsThere(path: place))".contains(place))
    #expect(try removed().count == 2 && !FileManager.default.fileExists(atPath: letter))
    #expect(try fixture.registry.containers(kind: .data).count == 1)
    // Both are removed then, and either of them can come back.
    try uninstall()
    #expect(try removed().count == 4)
    // Something of the user's has the name.
    try #require(FileManager.default.createFile(atPath: place, contents: nil))
    #expect(storeError { _ = try containers.restore(first) } == .containerIsThere(path: place))
    #expect(unlink(place) == 0)
    _ = try containers.restore(first)
    #expect(FileManager.default.contents(atPath: letter) == Data("mine".utf8))
  }

  @Test func whatIsBeingDeletedIsNotRestored() throws {
    try uninstall()
    let all = try removed()
    #expect(all.count == 2)
    for container in all { #expect(try containers.delete(container).left.isEmpty) }
    #expect(names(held) == [])
    #expect(
      storeError { _ = try containers.restore(all[0]) } == .noRemovedContainer(number: all[0].number))
    // Once more is nothing.
    #expect(try containers.delete(all[0]).freed == FreedSpace())
    #expect(try fixture.registry.containers().map(\.kind) == [.cloud])
  }

  /// A deletion that was stopped is not a container that can be restored.
  @Test func deletionThatWasStoppedIsEnded() throws {
    try uninstall()
    let container = try #require(try removed().first { $0.container.kind == .data })
    #expect(
      storeError { _ = try containers.delete(container) { () throws(Errno) in throw .EINTR } } != nil)
    let rest = try #require(try removed().first { $0.number == container.number })
    #expect(rest.isBeingDeleted)
    #expect(
      storeError { _ = try containers.restore(rest) } == .noRemovedContainer(number: container.number))
    #expect(try fixture.deleteRemoved().isEmpty)
    #expect(names(held) == [])
    #expect(try removed() == [])
  }

  /// Nobody fills the disk of others, or the registry, by removing things again and again.
  @Test func oldestOfTooManyAreDeleted() throws {
    let other = try #require(AppIdentifier("com.example.other"))
    for (user, count) in [(501, Registry.mostRemoved + 3), (502, 2)] as [(UInt32, Int)] {
      for number in 0..<count {
        try fixture.registry.noteRemoval(
          of: ContainerRecord(
            uuid: "\(user)-\(number)", kind: .data, identifier: other, user: user, path: "Users/\(user)/x"),
          at: Int64(number))
      }
    }
    let deleted = try removed().filter(\.isBeingDeleted)
    #expect(deleted.map(\.container.uuid).sorted() == ["501-0", "501-1", "501-2"])
    #expect(try fixture.registry.removedContainers(of: 502).count == 2)
  }

  /// The registry was not reached before the process was stopped.
  @Test func removalThatWasStoppedAfterTheRenameIsEnded() throws {
    _ = try fixture.registry.remove(app.identifier, of: nil, keepingData: false)
    let record = try #require(try fixture.registry.containers(kind: .data).first)
    #expect(mkdir(held, 0o700) == 0)
    #expect(rename(library + "/Containers/com.example.editor", "\(held)/\(record.uuid)") == 0)
    #expect(try containers.removeMarked().left.isEmpty)
    let container = try #require(try removed().first { $0.container.kind == .data })
    _ = try containers.restore(container)
    #expect(FileManager.default.contents(atPath: letter) == Data("mine".utf8))
  }

  // MARK: A restoration that was stopped

  /// Uninstalls an app that has been installed again, and expects that what it had is removed beside what was
  /// removed before, which can still be restored.
  private func expectBothRemoved(_ first: RemovedContainer) throws {
    try Data("second".utf8).write(to: URL(fileURLWithPath: letter))
    #expect(chown(letter, fixture.account.uid, fixture.account.gid) == 0)
    try uninstall()
    #expect(names(library + "/Containers") == [] && names(library + "/Group Containers") == [])
    let both = try removed().filter { $0.container.kind == .data }
    #expect(both.count == 2 && Set(both.map(\.container.uuid)).count == 2)
    #expect(Set(names(held)) == Set(try removed().map(\.container.uuid)))
    for (container, text) in [(first, "mine"), (try #require(both.first { $0 != first }), "second")] {
      _ = try containers.restore(container)
      #expect(FileManager.default.contents(atPath: letter) == Data(text.utf8))
      _ = try fixture.registry.doomLeft(
        by: app.identifier, of: fixture.account.uid, for: fixture.account.uid)
      #expect(try containers.removeMarked().left.isEmpty)
    }
  }

  @Test func restorationThatWasStoppedBeforeTheRenameTakesNothingAlong() throws {
    try uninstall()
    let first = try #require(try removed().first { $0.container.kind == .data })
    _ = try fixture.registry.noteRestoration(of: first, at: first.container.path)
    try install()
    #expect(!FileManager.default.fileExists(atPath: letter))
    try expectBothRemoved(first)
  }

  /// An earlier version has restored under the old number, and has left two with one.
  @Test func twoOfOneNumberAreRemovedAsTwo() throws {
    try uninstall()
    let first = try #require(try removed().first { $0.container.kind == .data })
    try install()
    let sql = "UPDATE containers SET uuid = '\(first.container.uuid)' WHERE kind = 'data'"
    try #require(try Program.run(["sqlite3", fixture.path + "/state/insula.db", sql]).status == 0)
    try expectBothRemoved(first)
  }

  @Test func restorationThatWasStoppedAfterTheRenameIsEnded() throws {
    try uninstall()
    let all = try removed()
    let first = try #require(all.first { $0.container.kind == .data })
    _ = try fixture.registry.noteRestoration(of: first, at: first.container.path)
    let place = library + "/Containers/com.example.editor"
    try #require(rename("\(held)/\(first.container.uuid)", place) == 0)
    try containers.forgetRestored()
    #expect(try removed() == all.filter { $0 != first })
    try install()
    #expect(FileManager.default.contents(atPath: letter) == Data("mine".utf8))
    try uninstall()
    #expect(names(library + "/Containers") == [])
    #expect(try removed().count { $0.container.kind == .data } == 1)
  }
}
