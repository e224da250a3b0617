// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Foundation
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// The link in a container leads to the bundle of the app that its user has: their own copy, or everyone's.
@Suite(.enabled(if: Program.isRoot)) struct BundleLinkTests {
  private let fixture: AppFixture
  private let own: InstalledApp
  private let shared: InstalledApp
  private let ours = "../../../../Applications/Editor.app"
  private let everyones = "../../../../../../Applications/Editor.app"

  init() throws {
    fixture = try AppFixture()
    try fixture.bundle()
    shared = try fixture.install()
    own = try fixture.install(for: fixture.users, by: fixture.owner)
    try #require(try link() == ours)
  }

  private var path: String {
    "\(fixture.tree)/\(fixture.home)/Library/Containers/org.example.editor/Data/Editor.app"
  }

  private func link() throws -> String { try FileManager.default.destinationOfSymbolicLink(atPath: path) }

  private func found(for app: InstalledApp) throws -> ContainerRecord? {
    try fixture.store.wholeContainer(
      .data, app.identifier, of: fixture.account.uid, home: fixture.account.name, for: app, fixture.registry)
  }

  @Test func containerWithALinkToAnotherCopyIsMadeWhole() throws {
    #expect(try found(for: own) != nil)
    try fixture.uninstall(of: fixture.users, by: fixture.owner, keepingData: false)
    _ = try Containers(fixture.store, fixture.registry).make(for: shared, home: fixture.account.name)
    #expect(try found(for: shared) != nil && link() == everyones)
    // As whoever left it who was stopped.
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: ours)
    #expect(try found(for: shared) == nil)
    _ = try Containers(fixture.store, fixture.registry).make(for: shared, home: fixture.account.name)
    #expect(try found(for: shared) != nil && link() == everyones)
  }

  /// Whoever removes the own copy is stopped when it is gone.
  @Test func removalThatWasStoppedIsEndedWithTheLink() throws {
    let noted = try fixture.registry.begin(.uninstall(own, keepingData: false))
    try FileManager.default.removeItem(atPath: "\(fixture.tree)/\(own.path)")
    fixture.registry.leave(noted)
    try fixture.installer().recover()
    #expect(try fixture.registry.intents().isEmpty)
    #expect(try fixture.registry.apps().map(\.path) == [shared.path])
    #expect(try link() == everyones)
  }
}
