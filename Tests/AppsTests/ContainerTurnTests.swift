// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing

/// Who waits for whom while containers are made.
@Suite(.enabled(if: Program.isRoot)) struct ContainerTurnTests {
  private struct Slow {
    var hasBegun = false
    var isReleased = false
  }

  /// The attack: a user installs an app whose containers take long, and nobody can install anything.
  @Test func usersDoNotWaitForTheContainersOfOthers() throws {
    let fixture = try AppFixture()
    let store = fixture.store
    let (slow, other) = (fixture.account, try #require(Account.named("daemon")))
    try Homes(tree: store.tree, path: fixture.tree, mode: store.description.mode).add(other.name)
    let bundle = try fixture.bundle()
    let state = Condition(Slow())
    let containers = try Containers(store, fixture.registry) { (directory, change) throws(Errno) in
      if try directory.status().st_uid == slow.uid {
        state.change { $0.hasBegun = true }
        _ = state.wait(milliseconds: 60_000) { $0.isReleased }
      }
      try change()
    }
    let installer = Installer(
      store, fixture.registry, containers: containers, trust: try StoreTrust.read(store))
    let install = { @Sendable (home: String) throws -> InstalledApp in
      let source = try TemporaryDirectory.open(bundle)
      return try installer.install(source.fd, named: "Editor.app", for: .user(home), by: .ourselves)
    }
    let first = try JoinableThread(name: "slow") { _ = try? install(slow.name) }
    defer {
      state.change { $0.isReleased = true }
      first.join()
    }
    try #require(state.wait(milliseconds: 20_000) { $0.hasBegun })
    let done = Condition([String]())
    let second = try JoinableThread(name: "other") {
      do {
        let app = try install(other.name)
        done.change { $0.append("installed") }
        _ = try installer.uninstall(app.identifier, of: .user(other.name), by: .ourselves)
        done.change { $0.append("uninstalled") }
      } catch {
        done.change { $0.append("\(error)") }
      }
    }
    #expect(done.wait(milliseconds: 20_000) { $0.count == 2 })
    #expect(done.withLock { $0 } == ["installed", "uninstalled"])
    state.change { $0.isReleased = true }
    second.join()
  }
}
