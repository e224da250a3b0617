// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// Containers whose names differ by case alone, and containers that can't be removed.
@Suite struct ContainerNamesTests {
  private static let kinds: [ContainerKind] = [.data, .group, .cloud]

  private func app(_ identifier: String, team: String, of kind: ContainerKind) throws -> InstalledApp {
    var app = try InstalledApp.example(
      kind == .data ? identifier : "com.example.\(team.lowercased())",
      groups: kind == .group ? [identifier] : [], clouds: kind == .cloud ? [identifier] : [])
    app.team = team
    return app
  }

  /// Where they are one name, the app of another team would have the first one's container.
  @Test(arguments: kinds, [false, true])
  func containerOfOtherSpellingIsRefused(kind: ContainerKind, ignoresCase: Bool) throws {
    let fixture = try TestFixture(ignoresCase: ignoresCase)
    let containers = try fixture.containers()
    let other = try #require(AppIdentifier("ICLOUD.org.secret"))
    let first = try app("iCloud.org.secret", team: "TEAM1", of: kind)
    let second = try app(other.text, team: "TEAM2", of: kind)
    func make(_ app: InstalledApp) throws { _ = try containers.make(for: app, home: fixture.account.name) }
    try make(first)
    let before = try fixture.registry.containers()
    let refusal = storeError { try make(second) }
    guard ignoresCase else {
      #expect(refusal == nil)
      return
    }
    let path = "Users/\(fixture.account.name)/\(ContainerLayout.path(of: other, kind))"
    #expect(refusal == .containerOfOtherSpelling(path: "\(fixture.path)/tree/\(path)"))
    #expect(!FileManager.default.fileExists(atPath: "\(fixture.path)/tree/\(path)"))
    // Nothing is noted of it, and the first one's is as it was.
    #expect(try fixture.registry.containers().filter { $0.path == path }.isEmpty)
    #expect(try fixture.registry.containers().filter { before.contains($0) } == before)
    try make(first)
    #expect(try fixture.findings().isEmpty)
  }

  /// A removed container does not come back beside one of another spelling.
  @Test func restoringRefusesOtherSpelling() throws {
    let fixture = try TestFixture(ignoresCase: true)
    let containers = try fixture.containers()
    let first = try app("org.secret", team: "TEAM1", of: .data)
    let second = try app("ORG.secret", team: "TEAM2", of: .data)
    try fixture.registry.add(first)
    _ = try containers.make(for: first, home: fixture.account.name)
    _ = try fixture.registry.remove(first.identifier, of: nil, keepingData: false)
    #expect(try containers.removeMarked().left.isEmpty)
    _ = try containers.make(for: second, home: fixture.account.name)
    let removed = try #require(try fixture.registry.removedContainers().first)
    let path = "\(fixture.home)/Library/Containers/org.secret"
    #expect(storeError { _ = try containers.restore(removed) } == .containerOfOtherSpelling(path: path))
    #expect(try fixture.registry.removedContainers().map(\.number) == [removed.number])
  }

  /// What an app has protected against its removal is not used by the next installation: it would go while
  /// that runs.
  @Test func containerThatStaysIsNotUsedAgain() throws {
    let fixture = try TestFixture()
    let containers = try fixture.containers()
    let app = try InstalledApp.example()
    func make() throws -> [ContainerRecord] { try containers.make(for: app, home: fixture.account.name) }
    try fixture.registry.add(app)
    let old = try #require(try make().first)
    let path = "\(fixture.home)/Library/Containers/com.example.editor"
    let flags = Program.isRoot ? "trusted.insula.flags" : "user.insula.flags"
    #expect(try Program.run(["setfattr", "-n", flags, "-v", "0x00000002", path]).status == 0)
    _ = try fixture.registry.remove(app.identifier, of: nil, keepingData: false)
    let reason = try #require(try containers.removeMarked().left.first?.reason)
    #expect(reason.contains("uchg"), "\(reason)")
    try fixture.registry.add(app)
    #expect(storeError { _ = try make() } == .containerStays(path: path, reason: reason))
    #expect(try Program.run(["setfattr", "-x", flags, path]).status == 0)
    let new = try #require(try make().first)
    #expect(new.uuid != old.uuid && !new.isMarkedForRemoval)
    // What another removal finds marked is not this one.
    #expect(try containers.removeMarked().records.isEmpty)
    #expect(FileManager.default.fileExists(atPath: path))
  }
}
