// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// How much one user can put into the registry, which all users share.
///
/// 501 has as much as a user can have, and 502 has nothing.
@Suite struct UserLimitTests {
  private let fixture: TestFixture
  private var registry: Registry { fixture.registry }

  init() throws { fixture = try TestFixture() }

  /// Adds rows for the numbers from 1 on; in `values`, `i` is the number.
  private func fill(_ table: String, _ count: Int, _ columns: String, _ values: String) throws {
    let sql = """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
      INSERT INTO \(table) (\(columns)) SELECT \(values) FROM n
      """
    let filled = try Program.run(["sqlite3", fixture.path + "/state/insula.db", sql])
    try #require(filled.status == 0, "\(filled.errors)")
  }

  private func fillApps(_ count: Int, of user: UInt32) throws {
    try fill(
      "apps", count,
      "identifier, user, name, executable, version, short_version, team, path, seal, installed",
      "'app.u\(user).x' || i, \(user), 'n', 'e', '1', '1', 'T', 'Users/u\(user)/' || i || '.app', x'00', 1")
  }

  private func fillContainers(_ count: Int, of user: UInt32, identity: String = "NULL, NULL, NULL") throws {
    try fill(
      "containers", count, "uuid, kind, identifier, user, path, inode, handle, created",
      "'\(user)-' || i, 'cloud', 'cloud.x' || i, \(user), "
        + "'Users/\(fixture.account.name)/Library/Mobile Documents/\(user)-' || i, \(identity)")
  }

  private func fillConsents(_ count: Int, of user: UInt32) throws {
    try fill(
      "consents", count, "identifier, user, service, team, allowed, changed",
      "'app.x' || i, \(user), 'photos', 'T', 1, 1")
  }

  private func container(of user: UInt32, _ name: String = "new") throws -> ContainerRecord {
    ContainerRecord(
      uuid: "\(name)-\(user)", kind: .cloud, identifier: try #require(AppIdentifier("cloud.\(name)")),
      user: user, path: "Users/\(user)/\(name)")
  }

  private func install(of user: UInt32?) throws {
    let app = try InstalledApp.example(user: user)
    try registry.abandon(registry.begin(.install(app)))
  }

  @Test func appsOfOneUserAreLimited() throws {
    try fillApps(Registry.appLimitOfUser - 1, of: 501)
    try install(of: 501)
    try fill(
      "apps", 1, "identifier, user, name, executable, version, short_version, team, path, seal, installed",
      "'app.last', 501, 'n', 'e', '1', '1', 'T', 'Users/u501/last.app', x'00', 1")
    let failure = StoreError.tooManyApps(user: 501, limit: 1000)
    #expect(storeError { try install(of: 501) } == failure)
    #expect(failure.description.contains("uninstall apps first"))
    try install(of: 502)
    try install(of: nil)
    let own = try #require(AppIdentifier("app.last"))
    _ = try registry.remove(own, of: 501, keepingData: false)
    try install(of: 501)
  }

  @Test func containersOfOneUserAreLimited() throws {
    try fillContainers(Registry.containerLimitOfUser - 1, of: 501)
    let last = try registry.note(container(of: 501, "last"))
    let failure = StoreError.tooManyContainers(user: 501, limit: 10_000)
    #expect(storeError { _ = try registry.note(container(of: 501)) } == failure)
    #expect(failure.description.contains("insula uninstall"))
    // What is noted already is found.
    #expect(try registry.note(container(of: 501, "last")) == last)
    _ = try registry.note(container(of: 502))
    try registry.forget(last)
    _ = try registry.note(container(of: 501))
  }

  @Test func decisionsOfOneUserAreLimited() throws {
    let app = try InstalledApp.example()
    try registry.add(app)
    func decide(_ service: PrivacyService, _ user: UInt32 = 501, isAllowed: Bool = true) throws {
      try registry.put(
        ConsentRecord(
          app.identifier, user: user, team: app.signer, service, isAllowed: isAllowed, changed: 1))
    }
    try fillConsents(Registry.consentLimitOfUser - 1, of: 501)
    try decide(.photos)
    let failure = StoreError.tooManyConsents(user: 501, limit: 20_000)
    #expect(storeError { try decide(.contacts) } == failure)
    #expect(failure.description.contains("insula consent reset"))
    // Another answer to the same question is no further one.
    try decide(.photos, isAllowed: false)
    try decide(.contacts, 502)
    try registry.removeConsent(app.identifier, of: 501, .photos)
    try decide(.contacts)
  }

  /// The attack: an account decides under each of its 65,536 additional numbers, and no limit is its.
  ///
  /// An account whose number lies among them decides for itself.
  @Test(.enabled(if: getuid() == 0)) func additionalIDsDecideNothing() throws {
    let account = try TemporaryAccount()
    guard let first = account.firstAdditionalID else { return }
    let app = try InstalledApp.example()
    try registry.add(app)
    func decide(_ user: UInt32) throws {
      try registry.put(
        ConsentRecord(app.identifier, user: user, team: app.signer, .photos, isAllowed: true, changed: 1))
      _ = try registry.add(
        GrantRecord(
          identifier: app.identifier, user: user, team: app.signer, path: [[97]], isWritable: false,
          isDirectory: false, identity: ObjectIdentity(inode: 1, handle: [1], created: 1), granted: 1))
      try registry.choose(app, for: "a.type", of: user)
    }
    #expect(eventually { Payer(user: first + 7).user == account.account.uid })
    for user in [first, first + 7] {
      let failure = StoreError.additionalID(user: user, account: account.account.uid)
      for body in [
        { try self.registry.choose(app, for: "a.type", of: user) },
        { try decide(user) }, { try Registry.requireAccount(user, waiting: true) },
      ] {
        #expect(storeError { try body() } == failure)
      }
      #expect(failure.description.contains("additional ID of \(account.account.name) "))
      // What is there from before can be taken back.
      try registry.choose(nil, for: "a.type", of: user)
      try registry.removeConsent(app.identifier, of: user, .photos)
    }
    #expect(try registry.consents().isEmpty && registry.grants().isEmpty)
    let other = try TemporaryAccount(number: first + 2500)
    try Registry.requireAccount(other.account.uid, waiting: true)
    for user in [account.account.uid, other.account.uid] { try decide(user) }
    #expect(try registry.consents().count == 2 && registry.grants().count == 2)
  }

  /// Many users, or one of a store that an earlier version has let grow: that is no damage.
  @Test func allThatIsThereCanBeRead() throws {
    let count = 100_001
    for user in [501, 502] as [UInt32] {
      try fillApps(count / 2 + 1, of: user)
      try fillContainers(count / 2 + 1, of: user)
      try fillConsents(count / 2 + 1, of: user)
    }
    #expect(try registry.apps().count > count)
    #expect(try registry.containers().count > count)
    #expect(try registry.consents().count > count)
    #expect(storeError { try install(of: 502) } == .tooManyApps(user: 502, limit: 1000))
  }

  /// An app can be in a hundred groups: what others read of a user's apps is limited with them.
  @Test func groupsOfOneUsersAppsAreLimited() throws {
    try fillApps(100, of: 501)
    try fill("app_groups", 5000, "app, position, identifier", "1 + i % 50, i, 'group.x' || i")
    try fill("app_clouds", 4998, "app, position, identifier", "51 + i % 50, i, 'cloud.x' || i")
    var app = try InstalledApp.example(user: 501, groups: ["group.a"], clouds: ["cloud.a"])
    let noted = try registry.begin(.install(app))
    try registry.finish(noted)
    registry.leave(noted)
    let failure = StoreError.tooManyGroups(user: 501, limit: 10_000)
    #expect(failure.description.contains("uninstall apps first"))
    let other = try InstalledApp.example("com.example.other", user: 501, name: "Other", groups: ["group.b"])
    #expect(storeError { _ = try registry.begin(.install(other)) } == failure)
    // The app's next version may have as many, and no more.
    let before = app
    app.version = "8"
    try registry.abandon(registry.begin(.update(before, to: app)))
    app.groups.append(try #require(AppIdentifier("group.c")))
    #expect(storeError { _ = try registry.begin(.update(before, to: app)) } == failure)
    // Others, and everyone's apps, have their own.
    for user in [502, nil] as [UInt32?] {
      let theirs = try InstalledApp.example(
        "com.example.theirs", user: user, name: "Theirs", groups: ["group.d"], clouds: ["cloud.d"])
      try registry.abandon(registry.begin(.install(theirs)))
    }
    #expect(try registry.apps(seenBy: nil) == [])
    #expect(try registry.apps(seenBy: 502) == [] && registry.apps(seenBy: 501).count == 101)
  }

  /// iCloud's containers stay when an app goes, so their user must be able to make room.
  @Test func whatAUserHasRemovedMakesRoom() throws {
    let user = fixture.account.uid
    let app = try InstalledApp.example(clouds: ["iCloud.com.example.editor"])
    try registry.add(app)
    let containers = try fixture.containers()
    _ = try containers.make(for: app, home: fixture.account.name)
    // Those that are noted and not made yet stay.
    try fillContainers(Registry.containerLimitOfUser - 2, of: user)
    let more = try InstalledApp.example("com.example.more", name: "More", clouds: ["iCloud.com.example.more"])
    try registry.add(more)
    let failure = StoreError.tooManyContainers(user: user, limit: 10_000)
    #expect(storeError { _ = try containers.make(for: more, home: fixture.account.name) } == failure)
    let made = fixture.home + "/Library/Mobile Documents/iCloud~com~example~editor"
    try FileManager.default.removeItem(atPath: made)
    _ = try containers.make(.data, more.identifier, for: more, home: fixture.account.name)
    #expect(
      storeError { _ = try containers.make(for: more, home: fixture.account.name) } == failure,
      "one has gone, so there is room for one")
    // By their user's order they go too, and can be restored.
    let name = try #require(AppIdentifier("cloud.x7"))
    #expect(try registry.doomLeft(by: name, of: user, for: user) == 1)
    _ = try containers.removeMarked(of: user)
    _ = try containers.make(for: more, home: fixture.account.name)
  }
}
