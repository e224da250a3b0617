// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

// How a hostile app may keep another team's app from a user for ever: by an iCloud container or kept data of
// that app's names, which nobody could remove, or by what is noted of containers that are gone.

/// Containers that a team's apps have left make way for another team's app by their user's order, and can be
/// restored.
@Suite struct LeftContainerTests {
  private let fixture: AppFixture
  private var library: String { "\(fixture.home)/Library" }
  private var cloud: String { "\(library)/Mobile Documents/iCloud~one" }

  init() throws {
    fixture = try AppFixture()
    try fixture.addIdentity("stranger", team: "TEAM9")
    try fixture.bundle { $0.clouds = ["iCloud.one"] }
    try fixture.bundle("Squatter.app") {
      $0.identifier = "org.example.squatter"; $0.signer = "stranger"; $0.clouds = ["iCloud.one"]
    }
    try fixture.bundle("Strange.app") {
      $0.signer = "stranger"; $0.clouds = ["iCloud.one"]
    }
  }

  private func uninstall(_ identifier: String, keepingData: Bool = false) throws {
    try fixture.uninstall(identifier, of: fixture.users, by: fixture.owner, keepingData: keepingData)
  }

  private func install(_ name: String) throws -> InstalledApp {
    try fixture.install(name, for: fixture.users, by: fixture.owner)
  }

  private func expectOtherTeam(_ failure: AppFailure?, _ identifier: String) throws {
    guard case .store(.containerOfOtherTeam) = failure else {
      Issue.record("\(String(describing: failure))")
      return
    }
    let words = "\(try #require(failure))"
    #expect(
      words.contains("'insula uninstall \(identifier) --user \(fixture.account.name)' removes the container"),
      "\(words)")
  }

  private func expectNothingToRemove(_ identifier: String) throws {
    guard case .notInstalled = appFailure({ try uninstall(identifier) }) else {
      Issue.record("\(identifier) was removed")
      return
    }
  }

  /// What can be restored, as kinds and identifiers.
  private var removed: [String] {
    get throws {
      try fixture.registry.removedContainers(of: fixture.account.uid).map {
        "\($0.container.kind) \($0.container.identifier)"
      }
    }
  }

  /// Whether the registry still has a record of it does not matter.
  @Test(arguments: [false, true]) func containerInCloudMakesWay(isRecorded: Bool) throws {
    // Another user has the same name there, of the same team.
    let other = ContainerRecord(
      uuid: "other", kind: .cloud, identifier: try #require(AppIdentifier("iCloud.one")), user: 1,
      path: "Users/other/Library/Mobile Documents/iCloud~one", team: try install("Squatter.app").signer)
    _ = try fixture.registry.note(other)
    try fixture.write("mine", to: "store/tree/\(cloud)/Documents/letter")
    // While an app of its team is there, it is that app's.
    try expectNothingToRemove("iCloud.one")
    let failure = appFailure { _ = try install("Editor.app") }
    #expect(
      failure
        == .groupOfOtherTeam(
          group: "iCloud.one", app: "org.example.squatter", team: "TEAM9"), "\(String(describing: failure))")
    try uninstall("org.example.squatter")
    try expectOtherTeam(appFailure { _ = try install("Editor.app") }, "iCloud.one")
    #expect(fixture.text("\(cloud)/Documents/letter") == "mine")
    if !isRecorded { try fixture.sql("DELETE FROM containers WHERE user = \(fixture.account.uid)") }
    // Without a record it is known by the name of its directory.
    try uninstall(isRecorded ? "ICLOUD.ONE" : "iCloud.one")
    #expect(fixture.status(cloud) == nil)
    #expect(try removed.first?.lowercased() == "cloud icloud.one")
    try expectNothingToRemove("iCloud.one")
    let app = try install("Editor.app")
    let made = try fixture.registry.containers(kind: .cloud, user: fixture.account.uid)
    #expect(made.map(\.team) == [app.signer] && fixture.status("\(cloud)/Documents") != nil)
    #expect(try fixture.registry.containers(kind: .cloud, user: 1).map(\.uuid) == ["other"])
    // It is its user's to have again.
    try uninstall("org.example.editor")
    try uninstall("iCloud.one")
    let squatted = try #require(
      fixture.registry.removedContainers(of: fixture.account.uid).first {
        $0.container.kind == .cloud && $0.container.team?.text == "TEAM9"
      })
    _ = try fixture.installer().restore(squatted.number, by: fixture.owner)
    #expect(fixture.text("\(cloud)/Documents/letter") == "mine")
  }

  /// An administrator's order is about what is theirs: what others have in iCloud stays.
  @Test func nobodyElseRemovesContainersInCloud() throws {
    _ = try install("Squatter.app")
    try uninstall("org.example.squatter")
    let administrator = CallerIdentity(uid: 0, gid: 0, groups: [])
    if fixture.account.uid != 0 {
      guard
        case .notInstalled = appFailure({
          try fixture.uninstall("iCloud.one", of: .everyone, by: administrator)
        })
      else {
        Issue.record("it was removed")
        return
      }
      #expect(fixture.status(cloud) != nil)
    }
    // Root can do it for its user.
    try fixture.uninstall("iCloud.one", of: fixture.users, by: administrator)
    #expect(fixture.status(cloud) == nil)
    #expect(try removed.contains("cloud iCloud.one"))
  }

  /// Everyone's app of another team has the identifier of data that somebody has kept.
  @Test func keptDataMakesWayForEveryonesApp() throws {
    _ = try install("Editor.app")
    try fixture.write("mine", to: "store/tree/\(library)/Containers/org.example.editor/Data/Documents/letter")
    try uninstall("org.example.editor", keepingData: true)
    try fixture.shell("rm -r '\(fixture.tree)/\(cloud)'")
    let strange = try fixture.install("Strange.app", by: CallerIdentity(uid: 0, gid: 0, groups: []))
    let containers = try Containers(fixture.store, fixture.registry)
    func use() throws { _ = try containers.make(for: strange, home: fixture.account.name) }
    do {
      try use()
      Issue.record("it got the data")
    } catch let error as StoreError {
      #expect(
        error.description.contains(
          "'insula uninstall org.example.editor --user \(fixture.account.name)' removes the container"))
    }
    try uninstall("org.example.editor")
    #expect(try removed == ["data org.example.editor"])
    try use()
    // Now they are the app's that is there.
    try expectNothingToRemove("org.example.editor")
  }

  /// What is noted of a container that is gone keeps no other root of its team away.
  @Test func recordsAloneKeepNobodyAway() throws {
    try fixture.addIdentity("rotated", team: "TEAM9")
    _ = try install("Squatter.app")
    try uninstall("org.example.squatter")
    try fixture.bundle("New.app") {
      $0.identifier = "org.example.new"; $0.signer = "rotated"
    }
    guard case .store(.teamOfOtherRoot) = appFailure({ _ = try install("New.app") }) else {
      Issue.record("two roots speak for a team")
      return
    }
    try fixture.shell("rm -r '\(fixture.tree)/\(cloud)'")
    _ = try install("New.app")
  }
}
