// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing

/// An app is started for the first time while its user restores what another team's app of that identifier
/// has left.
@Suite(.enabled(if: Program.isRoot)) struct ContainerRaceTests {
  private let fixture: AppFixture
  private let own: InstalledApp
  private let strange: InstalledApp
  private let removed: RemovedContainer
  private var letter: String { "\(fixture.home)/Library/Containers/org.example.editor/Data/Documents/letter" }

  init() throws {
    fixture = try AppFixture()
    try fixture.addIdentity("stranger", team: "TEAM9")
    try fixture.bundle()
    try fixture.bundle("Strange.app") { $0.signer = "stranger" }
    own = try fixture.install(for: fixture.users, by: fixture.owner)
    try fixture.write(
      "secret", to: "store/tree/\(fixture.home)/Library/Containers/org.example.editor/Data/Documents/letter")
    try fixture.uninstall(of: fixture.users, by: fixture.owner)
    removed = try #require(try fixture.registry.removedContainers(of: fixture.account.uid).first)
    // Everyone's, whose containers in this home are made when its user starts it.
    strange = try fixture.install("Strange.app")
    try #require(strange.signer != own.signer && fixture.text(letter) == nil)
  }

  /// Containers that have something done when the container of the home's app is about to get its name.
  private func containers(_ meanwhile: @escaping @Sendable () -> Void) throws -> Containers {
    let parent = try TemporaryDirectory.open("\(fixture.tree)/\(fixture.home)/Library/Containers")
    let inode = try parent.fd.status().st_ino
    let isDone = Condition(false)
    return try Containers(fixture.store, fixture.registry) { (directory, change) throws(Errno) in
      let isFirst = try directory.status().st_ino == inode && !isDone.withLock { $0 }
      if isFirst {
        isDone.change { $0 = true }
        meanwhile()
      }
      try change()
    }
  }

  /// Whoever takes no turn at all, as another process.
  @Test func restoredContainerStaysItsTeams() throws {
    let others = try Containers(fixture.store, fixture.registry)
    let containers = try containers { [removed] in _ = try? others.restore(removed) }
    var refusal: StoreError?
    do throws(StoreError) {
      _ = try containers.make(for: strange, home: fixture.account.name)
    } catch {
      refusal = error
    }
    guard case .containerOfOtherTeam = refusal else {
      Issue.record("another team's app has got what was restored: \(String(describing: refusal))")
      return
    }
    #expect(fixture.text(letter) == "secret")
    let path = removed.container.path
    #expect(fixture.store.notedTeam(ofContainerAt: path) == own.signer)
    let rows = try fixture.registry.containers(kind: .data, user: fixture.account.uid)
    #expect(rows.map(\.team) == [own.signer])
    // Its own team's app has it when it is installed again.
    try fixture.uninstall()
    try fixture.install(for: fixture.users, by: fixture.owner)
    #expect(fixture.text(letter) == "secret")
  }

  /// What has lost its row is no container of anybody's: whoever makes it begins again.
  @Test func containerThatHasLostItsRowIsMadeAgain() throws {
    let (registry, user) = (fixture.registry, fixture.account.uid)
    let containers = try containers {
      for record in (try? registry.containers(kind: .data, user: user)) ?? [] { try? registry.forget(record) }
    }
    var failure: StoreError?
    do throws(StoreError) {
      _ = try containers.make(for: strange, home: fixture.account.name)
    } catch {
      failure = error
    }
    #expect(failure == .appBusy(identifier: strange.identifier.text))
    let made = try containers.make(for: strange, home: fixture.account.name)
    #expect(made.map(\.team) == [strange.signer])
    #expect(try fixture.registry.containers(kind: .data, user: fixture.account.uid) == made)
  }

  /// What is noted on the directory counts more than the row, whichever way the two came to differ.
  @Test func restoredContainerIsWhoseItsDirectorySays() throws {
    try fixture.uninstall()
    try fixture.sql("UPDATE removed SET team = 'TEAM9', root = NULL")
    let removed = try #require(try fixture.registry.removedContainers(of: fixture.account.uid).first)
    let record = try Containers(fixture.store, fixture.registry).restore(removed)
    #expect(record.team == own.signer)
    #expect(fixture.store.notedTeam(ofContainerAt: record.path) == own.signer)
    let rows = try fixture.registry.containers(kind: .data, user: fixture.account.uid)
    #expect(rows.map(\.team) == [own.signer])
  }

  /// Nothing would ever remove a container without an app.
  @Test func appThatIsUninstalledMeanwhileGetsNone() throws {
    let user = fixture.account.uid
    let queries = AppQueries(fixture.store, fixture.registry)
    #expect(throws: StoreError.noApp(identifier: strange.identifier.text)) {
      _ = try queries.path(of: .documents, strange.identifier, for: user) { () throws(StoreError) in
        _ = try fixture.registry.remove(strange.identifier, of: nil, keepingData: false)
        return try Containers(fixture.store, fixture.registry)
      }
    }
    #expect(try fixture.registry.containers(user: user).isEmpty)
    #expect(try fixture.names("\(fixture.home)/Library/Containers") == [])
  }

  /// The same of one that is started, where the start takes so long that nothing keeps the app any more.
  @Test func appThatIsUninstalledWhileItStartsGetsNone() throws {
    let (registry, user) = (fixture.registry, fixture.account.uid)
    var failure: AppFailure?
    do throws(AppFailure) {
      _ = try AppLauncher(fixture.store).launch(strange, for: user, registry) { () throws(StoreError) in
        _ = try registry.remove(strange.identifier, of: nil, keepingData: false)
        return try Containers(fixture.store, registry)
      }
    } catch {
      failure = error
    }
    guard case .store(.noApp(identifier: strange.identifier.text)) = failure else {
      Issue.record("it was started: \(String(describing: failure))")
      return
    }
    #expect(try registry.containers(user: user).isEmpty)
    #expect(try fixture.names("\(fixture.home)/Library/Containers") == [])
  }

  /// The same of one that root uninstalls before its user's installation has made them, and of everyone's.
  @Test(arguments: [false, true]) func appThatIsUninstalledWhileItIsInstalledGetsNone(isOwn: Bool) throws {
    let (registry, user) = (fixture.registry, fixture.account.uid)
    try fixture.uninstall()
    let domain = isOwn ? fixture.users : fixture.everyones
    let caller = isOwn ? fixture.owner : CallerIdentity.ourselves
    let app = try fixture.install(for: domain, by: caller)
    try fixture.uninstall(of: domain, by: caller)
    try #require(registry.containers(user: user).isEmpty)
    try fixture.installer().makeContainers(for: app, by: fixture.owner)
    #expect(try registry.containers(user: user).isEmpty)
    #expect(try fixture.names("\(fixture.home)/Library/Containers") == [])
  }

  enum Way: CaseIterable {
    case launch, path
  }

  /// In one process each of them has its turn.
  @Test(arguments: Way.allCases) func restorationWaitsForItsUsersTurn(_ way: Way) throws {
    let outcome = Condition<AppFailure??>(nil)
    let installer = try fixture.installer()
    let restoring = Condition<JoinableThread?>(nil)
    let owner = fixture.owner
    let containers = try containers { [removed] in
      let thread = try? JoinableThread(name: "restore") {
        do throws(AppFailure) {
          _ = try installer.restore(removed.number, by: owner)
          outcome.change { $0 = .some(nil) }
        } catch {
          outcome.change { $0 = error }
        }
      }
      restoring.change { $0 = thread }
      // Without turns it is done in a moment.
      #expect(!outcome.wait(milliseconds: 1_000) { $0 != nil })
    }
    let user = fixture.account.uid
    switch way {
    case .launch:
      _ = try AppLauncher(fixture.store).launch(strange, for: user, fixture.registry) { containers }
    case .path:
      let queries = AppQueries(fixture.store, fixture.registry)
      _ = try queries.path(of: .documents, strange.identifier, for: user) { containers }
    }
    try #require(restoring.withLock { $0 }).join()
    guard case .some(.some(.store(.containerIsThere))) = outcome.withLock({ $0 }) else {
      Issue.record("restored beside what was just made")
      return
    }
    #expect(fixture.text(letter) == nil)
    #expect(fixture.store.notedTeam(ofContainerAt: removed.container.path) == strange.signer)
    #expect(try fixture.registry.removedContainers(of: user).map(\.number) == [removed.number])
  }
}
