// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// What apps say of types and documents, and what users have chosen, as the registry keeps it.
@Suite struct DeclarationRegistryTests {
  private let made: TestStore
  private let registry: Registry
  private let declared = AppDeclarations(
    exported: [DeclaredType("com.a.x", parents: ["public.data"], extensions: ["x"])], opensInPlace: true)

  init() throws {
    made = try TestStore()
    let store = try made.open()
    registry = try Registry(state: store.state, path: made.path + "/state")
  }

  private func texts(for user: UInt32) throws -> [String: String] {
    let all = try registry.documents(for: user)
    return Dictionary(uniqueKeysWithValues: all.map { ($0.path, $0.declarations) })
  }

  @Test func theyGoWithTheApp() throws {
    let app = try InstalledApp.example()
    try registry.add(app)
    #expect(try registry.undeclaredApps() == [app.path])
    #expect(try registry.documents(for: 501).isEmpty)
    var version = registry.typesVersion(for: 501)
    try registry.note(declared, of: app)
    #expect(registry.typesVersion(for: 501) != version)
    #expect(try registry.undeclaredApps().isEmpty)
    #expect(try registry.documents(for: 501).map(\.declarations) == [declared.text])
    // Another version says it anew.
    version = registry.typesVersion(for: 501)
    try registry.update(app)
    #expect(registry.typesVersion(for: 501) != version)
    #expect(try registry.undeclaredApps() == [app.path])
    try registry.note(declared, of: app)
    _ = try registry.remove(app.identifier, of: nil, keepingData: true)
    #expect(try registry.documents(for: 501).isEmpty && registry.undeclaredApps().isEmpty)
  }

  @Test func whatIsNotedOfAnotherBundleIsNot() throws {
    var app = try InstalledApp.example()
    try registry.add(app)
    app.seal = Array(repeating: 9, count: 32)
    try registry.note(declared, of: app)
    #expect(try registry.documents(for: 501).isEmpty)
  }

  @Test func usersHaveTheMachinesAndTheirOwn() throws {
    let everyones = try InstalledApp.example(),
      other = try InstalledApp.example("com.example.other", name: "Other")
    let own = try InstalledApp.example("com.EXAMPLE.editor", user: 501, name: "Own")
    for app in [everyones, other, own] {
      try registry.add(app)
      try registry.note(declared, of: app)
    }
    #expect(Set(try texts(for: 501).keys) == [other.path, own.path])
    #expect(Set(try texts(for: 502).keys) == [everyones.path, other.path])
    #expect(try registry.documents(of: nil).map(\.path) == [everyones.path, other.path])
  }

  private func addFat(_ number: Int, user: UInt32?) throws -> InstalledApp {
    let long = String(repeating: "x", count: 60 << 10)
    let app = try InstalledApp.example("com.example.a\(number)", user: user, name: "A\(number)")
    try registry.add(app)
    try registry.note(
      AppDeclarations(
        imported: [DeclaredType("com.a.fat", parents: [], kind: long)], opensInPlace: true,
        sharesDocuments: true), of: app)
    return app
  }

  /// Neither what counts of them grows without limit, nor the registry.
  @Test func oneUsersAppsAreBounded() throws {
    let apps = try (0..<8).map { try addFat($0, user: 501) }
    func declared() throws -> [AppDeclarations] {
      try registry.documents(of: 501).map { AppDeclarations(text: $0.declarations) }
    }
    #expect(try declared().map(\.imported.count) == [1, 1, 1, 1, 0, 0, 0, 0])
    #expect(try declared().allSatisfy { $0.opensInPlace && $0.sharesDocuments })
    let bytes = try registry.use { (database) throws(StoreError) in
      try database.rows("SELECT sum(length(text)) FROM declarations") { (row) throws(StoreError) in
        try row.integer(0)
      }
    }
    #expect(bytes[0] <= Registry.declarationBytes.own)
    // Others have their own room, and what is cut is asked again when there is some.
    _ = try addFat(8, user: 502)
    #expect(try registry.documents(of: 502).count == 1)
    #expect(try registry.undeclaredApps().isEmpty)
    _ = try registry.remove(apps[0].identifier, of: 501, keepingData: true)
    #expect(try registry.undeclaredApps() == Set(apps[4...].map(\.path)))
  }

  /// What one user has for themselves is no reason to read anew what others have; a choice is none at all.
  @Test func versionsAreThoseOfTheUser() throws {
    let everyones = try InstalledApp.example()
    let own = try InstalledApp.example("com.example.own", user: 501, name: "Own")
    func versions() -> [Int] { [nil, 501, 502].map(registry.typesVersion) }
    var before = versions()
    try registry.add(own)
    try registry.note(declared, of: own)
    #expect(zip(before, versions()).map(==) == [true, false, true])
    before = versions()
    try registry.choose(own, for: "public.png", of: 501)
    try registry.choose(nil, for: "public.png", of: 501)
    #expect(before == versions())
    try registry.add(everyones)
    #expect(zip(before, versions()).map(==) == [false, false, false])
  }

  @Test func anAppHasItsOwnDeclarations() throws {
    let everyones = try InstalledApp.example("com.example.a", name: "A")
    let own = try InstalledApp.example("com.EXAMPLE.a", user: 501, name: "Own")
    let identifier = everyones.identifier
    #expect(try registry.declarations(of: identifier, for: 501) == nil)
    try registry.add(everyones)
    #expect(try registry.declarations(of: identifier, for: 501) == nil)
    try registry.note(declared, of: everyones)
    #expect(try registry.declarations(of: identifier, for: 501) == declared)
    try registry.add(own)
    try registry.note(AppDeclarations(), of: own)
    #expect(try registry.declarations(of: identifier, for: 501) == AppDeclarations())
    #expect(try registry.declarations(of: identifier, for: 502) == declared)
  }

  @Test func choicesAreTheUsersAndNeedTheApp() throws {
    let app = try InstalledApp.example()
    try registry.add(app)
    try registry.choose(app, for: "public.png", of: 501)
    try registry.choose(app, for: "PUBLIC.PNG", of: 501)
    try registry.choose(app, for: "public.jpeg", of: 502)
    #expect(try registry.openers(of: 501) == ["PUBLIC.PNG": app.identifier.text])
    #expect(try registry.openers(of: 502) == ["public.jpeg": app.identifier.text])
    // An own app of that identifier and another team was not chosen.
    var own = try InstalledApp.example(user: 502, name: "Own")
    own.team = "OTHER"
    try registry.add(own)
    #expect(try registry.openers(of: 502).isEmpty)
    _ = try registry.remove(app.identifier, of: nil, keepingData: true)
    #expect(try registry.openers(of: 501).isEmpty)
    try registry.add(app)
    #expect(try registry.openers(of: 501).count == 1)
    try registry.choose(nil, for: "public.png", of: 501)
    #expect(try registry.openers(of: 501).isEmpty)
  }

  @Test func choicesAreBounded() throws {
    let app = try InstalledApp.example()
    try registry.add(app)
    for number in 0..<Registry.mostChoices { try registry.choose(app, for: "a.t\(number)", of: 501) }
    #expect(storeError { try registry.choose(app, for: "a.more", of: 501) } == .tooManyChoices(limit: 1000))
    try registry.choose(app, for: "a.t7", of: 501)
    try registry.choose(app, for: "a.more", of: 502)
  }
}
