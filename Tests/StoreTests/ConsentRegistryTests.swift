// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// What users have decided, as the registry keeps it.
@Suite struct ConsentRegistryTests {
  private let made: TestStore
  private let registry: Registry

  init() throws {
    made = try TestStore()
    let store = try made.open()
    registry = try Registry(state: store.state, path: made.path + "/state")
  }

  private func consent(
    _ service: PrivacyService = .photos, to app: InstalledApp, user: UInt32 = 501, isAllowed: Bool = true
  ) -> ConsentRecord {
    ConsentRecord(
      app.identifier, user: user, team: app.signer, service, isAllowed: isAllowed, changed: 7)
  }

  @Test func consentComesBackAsItWent() throws {
    let app = try InstalledApp.example()
    try registry.add(app)
    let allowed = consent(to: app)
    try registry.put(allowed)
    try registry.put(consent(.contacts, to: app, user: 502))
    #expect(try registry.consents(of: 501) == [allowed])
    #expect(try registry.consents().count == 2)
    let denied = consent(to: app, isAllowed: false)
    try registry.put(denied)
    #expect(try registry.consents(of: 501) == [denied])
    try registry.removeConsent(app.identifier, of: 501, .contacts)
    #expect(try registry.consents(of: 501) == [denied])
    try registry.removeConsent(app.identifier, of: 501, .photos)
    #expect(try registry.consents(of: 501).isEmpty)
  }

  @Test func consentGoesWithTheApp() throws {
    let everyones = try InstalledApp.example()
    try registry.add(everyones)
    try registry.add(.example(user: 502, name: "Own"))
    for user in [501, 502] as [UInt32] { try registry.put(consent(to: everyones, user: user)) }
    try registry.update(everyones)
    #expect(try registry.consents().map(\.user) == [501, 502])
    // Who has one of their own has decided about that one.
    _ = try registry.remove(everyones.identifier, of: nil, keepingData: true)
    #expect(try registry.consents().map(\.user) == [502])
    _ = try registry.remove(everyones.identifier, of: 502, keepingData: true)
    #expect(try registry.consents().isEmpty)
  }

  /// The attack: a copy of everyone's app, which was refused, is installed for oneself and removed again.
  ///
  /// Two users, of whom one has a copy, and a copy of the same team or of another.
  @Test(arguments: [false, true]) func copyDoesNotTakeBackARefusal(isOthers: Bool) throws {
    let everyones = try InstalledApp.example()
    try registry.add(everyones)
    for user in [501, 502] as [UInt32] {
      try registry.put(consent(.photos, to: everyones, user: user, isAllowed: false))
      try registry.put(consent(.contacts, to: everyones, user: user))
    }
    var copy = try InstalledApp.example(user: 502, name: "Own")
    if isOthers { copy.root = [7] }
    try registry.add(copy)
    // Nothing was decided about another team's.
    #expect(try registry.consents(to: copy, of: 502).count == (isOthers ? 0 : 2))
    _ = try registry.remove(copy.identifier, of: 502, keepingData: false)
    // What is allowed goes with any app.
    let left = try registry.consents(to: everyones, of: 502)
    #expect(left == [consent(.photos, to: everyones, user: 502, isAllowed: false)])
    #expect(try registry.consents(to: everyones, of: 501).count == 2)
    _ = try registry.remove(everyones.identifier, of: nil, keepingData: false)
    #expect(try registry.consents().isEmpty)
  }

  /// The same where an administrator has named another root for the team, and only the copy is under that one
  /// already: it takes over what was refused, and leaves it when it goes.
  ///
  /// Two users who have refused before and after that, and everyone's app of the former root or an
  /// impostor's.
  @Test(arguments: [[1], [3]] as [[UInt8]], [false, true])
  func copyUnderAnotherRootDoesNotTakeBackARefusal(root: [UInt8], isLater: Bool) throws {
    var everyones = try InstalledApp.example()
    everyones.root = [1]
    try registry.add(everyones)
    func decide() throws {
      for user in [501, 502] as [UInt32] {
        try registry.put(consent(.photos, to: everyones, user: user, isAllowed: false))
        try registry.put(consent(.contacts, to: everyones, user: user))
      }
    }
    if !isLater { try decide() }
    try registry.pin("TEAM", to: [1])
    try registry.pin("TEAM", to: [9])
    if isLater { try decide() }
    var copy = try InstalledApp.example(user: 502, name: "Own")
    copy.root = [9]
    try registry.add(copy)
    #expect(try registry.consents(to: copy, of: 502).count == 2)
    if root != [1] {
      // Nobody has ever named that one.
      let changed = try Program.run([
        "sqlite3", made.path + "/state/insula.db", "UPDATE apps SET root = x'03' WHERE user IS NULL",
      ])
      try #require(changed.status == 0, "\(changed.errors)")
    }
    _ = try registry.remove(copy.identifier, of: 502, keepingData: false)
    let left = try registry.consents(of: 502)
    #expect(left.map(\.service) == (root == [1] ? [.photos] : []) && left.allSatisfy { !$0.isAllowed })
    #expect(try registry.consents(of: 501).count == 2)
  }

  /// A copy of the former root goes when everyone's app is under the one that was named since.
  @Test func refusalOutlivesACopyUnderTheFormerRoot() throws {
    var everyones = try InstalledApp.example()
    (everyones.root, everyones.version) = ([9], "8")
    var copy = try InstalledApp.example(user: 502, name: "Own")
    copy.root = [1]
    try registry.add(copy)
    try registry.pin("TEAM", to: [1])
    try registry.pin("TEAM", to: [9])
    try registry.add(everyones)
    try registry.put(consent(.photos, to: copy, user: 502, isAllowed: false))
    try registry.put(consent(.contacts, to: copy, user: 502))
    _ = try registry.remove(copy.identifier, of: 502, keepingData: false)
    #expect(try registry.consents().map(\.service) == [.photos])
  }

  /// A refusal of a copy goes with the copy where everyone's app is another team's.
  @Test func refusalOfACopyIsNoRefusalOfAnotherTeamsApp() throws {
    var everyones = try InstalledApp.example()
    everyones.root = [7]
    try registry.add(everyones)
    let copy = try InstalledApp.example(user: 502, name: "Own")
    try registry.add(copy)
    try registry.put(consent(to: copy, user: 502, isAllowed: false))
    _ = try registry.remove(copy.identifier, of: 502, keepingData: false)
    #expect(try registry.consents().isEmpty)
  }

  /// A user decides about an app while the app is removed: the decision comes too late to be noted.
  ///
  /// Two users with a copy each, and both answers.
  @Test(arguments: [false, true]) func decisionAboutARemovedAppIsRefused(isAllowed: Bool) throws {
    let apps = try ([501, 502] as [UInt32]).map { user in
      try InstalledApp.example(user: user, name: "Own \(user)")
    }
    for app in apps { try registry.add(app) }
    let identifier = apps[0].identifier
    let late = storeError {
      _ = try registry.remove(identifier, of: 501, keepingData: false)
      try registry.put(consent(to: apps[0], isAllowed: isAllowed))
    }
    #expect(late == .noApp(identifier: identifier.text))
    let other = consent(to: apps[1], user: 502, isAllowed: isAllowed)
    try registry.put(other)
    // Another team's app has its name by now.
    var stranger = apps[0]
    stranger.team = "OTHER"
    try registry.add(stranger)
    let strangers = storeError { try registry.put(consent(to: apps[0], isAllowed: isAllowed)) }
    #expect(strangers == .noApp(identifier: identifier.text))
    #expect(try registry.consents() == [other])
  }

  /// The user's own copy is removed, and everyone's copy of the same team is there still.
  @Test func decisionAboutARemovedCopyIsNotAboutEveryones() throws {
    let everyones = try InstalledApp.example()
    let copy = try InstalledApp.example(user: 501, name: "Own")
    for app in [everyones, copy] { try registry.add(app) }
    let ofEveryones = storeError { try registry.put(consent(to: everyones), about: everyones) }
    #expect(ofEveryones == .noApp(identifier: everyones.identifier.text))
    try registry.put(consent(to: copy), about: copy)
    _ = try registry.remove(copy.identifier, of: 501, keepingData: false)
    #expect(
      storeError { try registry.put(consent(to: copy), about: copy) }
        == .noApp(identifier: copy.identifier.text))
    #expect(try registry.consents() == [])
    try registry.put(consent(to: everyones), about: everyones)
    try registry.put(consent(to: everyones, user: 502), about: everyones)
    #expect(try registry.consents().map(\.user) == [501, 502])
  }

  @Test func otherTeamsStartAnew() throws {
    var app = try InstalledApp.example()
    try registry.add(app)
    try registry.put(consent(to: app))
    app.team = "OTHER"
    try registry.update(app)
    #expect(try registry.consents().isEmpty)
  }

  /// Whatever is in the table: an unknown service is nobody's consent, and what makes no sense is said.
  @Test func damagedRowsAreNoConsent() throws {
    let app = try InstalledApp.example()
    try registry.add(app)
    try registry.put(consent(to: app))
    func change(_ assignment: String) throws {
      let run = ["sqlite3", made.path + "/state/insula.db", "UPDATE consents SET \(assignment)"]
      try #require(try Program.run(run).status == 0)
    }
    try change("service = 'dreams'")
    #expect(try registry.consents().isEmpty)
    try change("service = 'photos', user = -5")
    #expect(throws: StoreError.self) { try registry.consents() }
    try change("user = 501, identifier = '../x'")
    #expect(throws: StoreError.self) { try registry.consents() }
    let unknown = ["sqlite3", made.path + "/state/insula.db", "UPDATE consents SET allowed = 7"]
    #expect(try Program.run(unknown).ending == Ending(19))
  }
}
