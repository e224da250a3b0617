// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing

/// The account of a home has got another number, or another account has got the home's name.
@Suite struct StrayAppTests {
  /// Whose number the home's owner had before.
  private static let gone: UInt32 = 4_000_000_001

  private let fixture: AppFixture

  init() throws {
    fixture = try AppFixture()
    for (name, identifier) in [("Editor.app", "org.example.editor"), ("Other.app", "org.example.other")] {
      try fixture.bundle(name) { $0.identifier = identifier }
      try fixture.install(name, for: fixture.users, by: fixture.owner)
    }
    for app in try fixture.registry.apps() { try #require(try fixture.registry.give(app, to: Self.gone)) }
  }

  private func users() throws -> [UInt32?] { try fixture.registry.apps().map(\.user) }

  @Test func theOwnerUpdatesAndRemovesThem() throws {
    try fixture.bundle { $0.version = "2" }
    try fixture.update(for: fixture.users, by: fixture.owner)
    #expect(try users() == [fixture.account.uid, fixture.account.uid])
    for identifier in ["org.example.editor", "org.example.other"] {
      try fixture.uninstall(identifier, of: fixture.users, by: fixture.owner)
    }
    #expect(try users() == [] && fixture.findings(deep: true) == [])
    #expect(try fixture.names("\(fixture.home)/Applications") == [])
  }

  /// Of what is there, none is installed over.
  @Test func theOwnerInstallsWhatIsGone() throws {
    let failure = AppFailure.alreadyInstalled(
      identifier: "org.example.other", path: "/\(fixture.home)/Applications/Other.app")
    #expect(
      appFailure { try fixture.install("Other.app", for: fixture.users, by: fixture.owner) } == failure)
    let app = try #require(try fixture.registry.apps().first { $0.identifier.text == "org.example.editor" })
    _ = try fixture.registry.give(app, to: Self.gone)
    let removed = try Program.run(["rm", "-r", "\(fixture.tree)/\(fixture.home)/Applications/Editor.app"])
    try #require(removed.ending == .ok)
    try fixture.install(for: fixture.users, by: fixture.owner)
    #expect(try users() == [fixture.account.uid, fixture.account.uid])
    #expect(try fixture.findings(deep: true) == [])
  }

  /// Another home of the name was on a disk, and was ejected.
  private func eject(homeOf owner: UInt32) throws {
    let volume = try fixture.registry.add(
      VolumeRecord(
        in: .users, name: Array(fixture.account.name.utf8), path: Array("/homes".utf8),
        identity: ObjectIdentity(inode: 1, handle: [], created: 1), owner: nil, isReadOnly: false, added: 1))
    try fixture.registry.note(owner: owner, ofHome: volume.id)
    try fixture.registry.ejectHome(volume)
  }

  private func remove(_ name: String, _ home: String? = nil) throws {
    let path = "\(fixture.tree)/\(home ?? fixture.home)/Applications/\(name)"
    try #require(try Program.run(["rm", "-r", path]).ending == .ok)
  }

  /// The bundle is not there because another home of the name is.
  ///
  /// What is noted of the one that was ejected stays; what lies in this one is its owner's.
  @Test func whatIsOfAnEjectedHomeStays() throws {
    try eject(homeOf: Self.gone)
    try remove("Editor.app")
    try fixture.bundle("Third.app") { $0.identifier = "org.example.third" }
    try fixture.install("Third.app", for: fixture.users, by: fixture.owner)
    #expect(try users() == [Self.gone, fixture.account.uid, fixture.account.uid])
  }

  /// What is noted of an ejected home can be neither updated nor removed in another one of its name.
  @Test func nobodyChangesWhatIsInAnEjectedHome() throws {
    for app in try fixture.registry.apps() {
      try #require(try fixture.registry.give(app, to: fixture.account.uid))
    }
    try eject(homeOf: fixture.account.uid)
    for name in ["Editor.app", "Other.app"] { try remove(name) }
    let before = try fixture.registry.apps()
    try fixture.bundle { $0.version = "2" }
    func failure(_ doing: String, _ name: String) -> AppFailure {
      .failed(
        doing: doing, path: "\(fixture.tree)/\(fixture.home)/Applications/\(name).app", errno: .ENOMEDIUM)
    }
    #expect(
      appFailure { try fixture.update(for: fixture.users, by: fixture.owner) } == failure("update", "Editor"))
    for (identifier, name) in [("org.example.editor", "Editor"), ("org.example.other", "Other")] {
      let found = appFailure { try fixture.uninstall(identifier, of: fixture.users, by: fixture.owner) }
      #expect(found == failure("remove", name))
    }
    #expect(try fixture.registry.apps() == before && fixture.registry.intents().isEmpty)
    #expect(try fixture.names("\(fixture.home)/Applications") == [])
  }

  /// The directory is root's, as where the disk of a home is not mounted, and the account is there.
  @Test(.enabled(if: Program.isRoot, "giving files away needs root")) func anEmptyHomeTakesNothing() throws {
    for app in try fixture.registry.apps() {
      try #require(try fixture.registry.give(app, to: fixture.account.uid))
    }
    try remove("Editor.app")
    let home = "\(fixture.tree)/\(fixture.home)"
    try #require(try Program.run(["chown", "-R", "0:0", home]).ending == .ok)
    try fixture.bundle("Third.app") { $0.identifier = "org.example.third" }
    try fixture.install("Third.app", for: fixture.users)
    #expect(
      try fixture.registry.apps().filter { $0.identifier.text == "org.example.editor" }.map(\.user) == [
        fixture.account.uid
      ])
  }

  /// The names of bundles that are gone are nobody's afterwards, also in what is mounted.
  @Test func namesOfWhatIsGoneAreFree() throws {
    let places = ["Editor", "Other"].map { "\(fixture.home)/Applications/\($0).app" }
    for name in ["Editor.app", "Other.app"] { try remove(name) }
    let recorder = Recorder()
    // One is forgotten as a stray, since another one is asked for.
    let other = try #require(try fixture.registry.apps().first { $0.identifier.text == "org.example.other" })
    try #require(try fixture.registry.give(other, to: fixture.account.uid))
    try fixture.uninstall("org.example.other", of: fixture.users, by: fixture.owner, observer: recorder)
    let gone = recorder.all.compactMap { change -> String? in
      if case .goes(let place, _) = change { place.path } else { nil }
    }
    #expect(gone.sorted() == places && recorder.all.count == 2)
    #expect(try users() == [])
  }

  /// Two accounts have exchanged their numbers, and both have the same app: the first change in one of the
  /// homes puts both right.
  @Test(.enabled(if: Program.isRoot, "giving files away needs root"), arguments: [true, false])
  func exchangedNumbersChangePlaces(inFirst: Bool) throws {
    let own = fixture.account.uid
    let editor = try #require(
      try fixture.registry.apps().first { $0.identifier.text == "org.example.editor" })
    let other = try #require(try fixture.registry.apps().first { $0.identifier.text == "org.example.other" })
    try #require(try fixture.registry.give(editor, to: own) && fixture.registry.give(other, to: own))
    let second = "\(fixture.tree)/Users/second"
    for path in [second, second + "/Applications"] {
      try #require(mkdir(path, 0o755) == 0 && lchown(path, Self.gone, Self.gone) == 0)
    }
    try fixture.install(for: .user("second"))
    func owners() throws -> [String: UInt32?] {
      let editors = try fixture.registry.apps().filter { $0.identifier.text == "org.example.editor" }
      return Dictionary(uniqueKeysWithValues: editors.map { ($0.path, $0.user) })
    }
    let paths = ["\(fixture.home)/Applications/Editor.app", "Users/second/Applications/Editor.app"]
    try #require(try owners() == [paths[0]: own, paths[1]: Self.gone])
    for (home, user) in [("\(fixture.tree)/\(fixture.home)", Self.gone), (second, own)] {
      try #require(try Program.run(["chown", "-R", "\(user):\(user)", home]).ending == .ok)
    }
    try fixture.bundle { $0.version = "2" }
    try fixture.update(for: inFirst ? fixture.users : .user("second"))
    #expect(try owners() == [paths[0]: Self.gone, paths[1]: own])
    try fixture.update(for: inFirst ? .user("second") : fixture.users)
    #expect(try owners() == [paths[0]: Self.gone, paths[1]: own])
    #expect(try fixture.registry.apps().filter { $0.version == "2" }.count == 2)
  }

  /// Where the owner has another copy, in another home, the one in this home can be removed.
  @Test func aSecondCopyIsRemovedByItsPlace() throws {
    let app = try #require(try fixture.registry.apps().first { $0.identifier.text == "org.example.editor" })
    let copy = InstalledApp(
      identifier: app.identifier, user: fixture.account.uid, name: "Copy", executable: "x", version: "1",
      shortVersion: "1", team: app.team, root: app.root, path: "Users/else/Applications/Copy.app",
      seal: app.seal, installed: 1)
    try fixture.registry.add(copy)
    try fixture.uninstall(of: fixture.users, by: fixture.owner)
    #expect(try fixture.registry.apps().map(\.name) == ["Copy", "Editor"])
    #expect(try fixture.names("\(fixture.home)/Applications") == ["Other.app"])
  }
}
