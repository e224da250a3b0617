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
