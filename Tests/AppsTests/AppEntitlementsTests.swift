// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
internal import Policy
internal import PropertyLists
internal import Store
internal import Testing

/// What entitlements make of the part of the tree that an app gets.
struct AppEntitlementsTests {
  private func entitlements(_ entries: [(key: String, value: PropertyList)]) throws -> AppEntitlements {
    let signed = try #require(
      PropertyList.Dictionary(entries.map { (key: "com.apple.security." + $0.key, value: $0.value) }))
    return try AppEntitlements(signed)
  }

  private func launch(_ entitlements: AppEntitlements) throws -> AppLaunch {
    let app = InstalledApp(
      identifier: try #require(AppIdentifier("com.example.editor")), user: nil, name: "Editor",
      executable: "Editor",
      version: "1", shortVersion: "1.0", team: "TEAM", path: "Applications/Editor.app", seal: [],
      installed: 0,
      groups: [try #require(AppIdentifier("group.com.example"))],
      clouds: [try #require(AppIdentifier("iCloud.com.x"))])
    return AppLaunch(
      app, home: "anna", entitlements, executable: "Applications/Editor.app/Contents/MacOS/Editor")
  }

  private func scope(_ entitlements: AppEntitlements) throws -> Scope {
    Scope(try launch(entitlements).places)
  }

  /// What may be done at a path.
  private func reach(_ path: String, _ scope: Scope) -> Reach {
    var position = scope.root
    for name in path.split(separator: "/") { position = scope.position(of: Array(name.utf8), in: position) }
    return scope.reach(of: position)
  }

  @Test func appHasItsBundleItsContainersAndTheSystem() throws {
    let scope = try scope(AppEntitlements())
    let library = "Users/anna/Library"
    for (path, expected) in [
      ("Applications/Editor.app/Contents/Info.plist", [.read, .execute]),
      ("System/Library/x", [.read, .execute]), ("Library/Frameworks/x", [.read, .execute]),
      ("\(library)/Containers/com.example.editor/Data/Documents/x", [.read, .write]),
      ("\(library)/Group Containers/group.com.example/x", [.read, .write]),
      ("\(library)/Mobile Documents/iCloud~com~x/Documents", [.read, .write]),
      ("Applications/Other.app", .nothing), ("\(library)/Containers/com.example.other", .nothing),
      ("\(library)/Preferences", .nothing), ("Users/anna/Downloads", .nothing), ("Users/ben", .nothing),
      // It leads to what is in it.
      ("Library", .read), ("Library/Preferences", .nothing), ("Users/Shared", .nothing),
    ] as [(String, Reach)] {
      #expect(reach(path, scope) == expected, "\(path)")
    }
    #expect(try launch(AppEntitlements()).data == "\(library)/Containers/com.example.editor/Data")
  }

  @Test(arguments: [
    ("files.downloads", "Downloads"), ("assets.music", "Music"), ("assets.movies", "Movies"),
    ("assets.pictures", "Pictures"),
  ])
  func directoriesOfTheHome(key: String, name: String) throws {
    let service: PrivacyService =
      switch name {
      case "Downloads": .downloads
      case "Pictures": .photos
      default: .mediaLibrary
      }
    for (access, expected) in [("read-only", [.read]), ("read-write", [.read, .write])] as [(String, Reach)] {
      let launch = try launch(entitlements([("\(key).\(access)", .boolean(true))]))
      #expect(launch.services.contains(service))
      // The entitlement lets the app ask, and its user decides.
      let asking = Scope(launch.places + launch.places(without: service))
      #expect(reach("Users/anna/\(name)", asking).contains(.asks))
      #expect(reach("Users/anna/\(name)/x", asking) == .nothing)
      let given = Scope(launch.places + launch.places(with: service))
      #expect(reach("Users/anna/\(name)/x", given) == expected.union(.revocable))
      #expect(reach("Users/anna/Documents", given) == .nothing)
    }
    #expect(try entitlements([("\(key).read-only", .boolean(false))]) == AppEntitlements())
  }

  /// No entitlement stands for consent; and without one, an app can't ask for what only entitlements open.
  @Test func entitlementsLetAppsAsk() throws {
    func asks(_ key: String, _ value: PropertyList = .boolean(true)) throws -> [PrivacyService] {
      try launch(entitlements([(key, value)])).services
    }
    let usual: [PrivacyService] = [
      .mediaLibrary, .photos, .photosAdd, .contacts, .calendars, .reminders,
    ]
    #expect(try asks("none") == usual)
    for key in ["music.read-only", "pictures.read-write", "movies.read-write"] {
      #expect(try asks("assets.\(key)") == usual)
    }
    #expect(try asks("files.downloads.read-only") == usual + [.downloads])
    let everything = PropertyList.array([.string("/")])
    let home = "temporary-exception.files.home-relative-path.read-only"
    #expect(try asks(home, everything) == usual + [.desktop, .documents, .downloads, .appData])
    let absolute = "temporary-exception.files.absolute-path.read-write"
    #expect(try asks(absolute, everything) == PrivacyService.allCases)
    #expect(try asks(absolute, .array([.string("/Users/")])).contains(.appData))
    #expect(try !asks(absolute, .array([.string("/Users")])).contains(.appData))
  }

  @Test func exceptionsAreSubtreesWithASlashAndOneObjectWithout() throws {
    let prefix = "temporary-exception.files."
    let launch = try launch(
      entitlements([
        (prefix + "home-relative-path.read-write", .array([.string("/Notes/"), .string("/Documents/one")])),
        (
          prefix + "absolute-path.read-only",
          .array([.string("/Library/Fonts/"), .string("/Users/Shared/x")])
        ),
      ]))
    #expect(reach("Users/anna/Documents/one", Scope(launch.places)) == .nothing)
    let scope = Scope(launch.places + launch.places(with: .documents))
    #expect(reach("Users/anna/Notes/deep/er", scope) == [.read, .write])
    #expect(reach("Users/Shared/x", scope) == .read && reach("Users/Shared/y", scope) == .nothing)
    #expect(reach("Users/anna/Documents/one", scope) == [.read, .write, .revocable])
    #expect(reach("Users/anna/Documents/one/below", scope) == .nothing)
    #expect(reach("Users/anna/Documents/two", scope) == .nothing)
    #expect(reach("Library/Fonts/x", scope) == .read && reach("Library/Other", scope) == .nothing)
  }

  @Test func networkAndWritableCode() throws {
    #expect(try !entitlements([("app-sandbox", .boolean(true)), ("files.all", .boolean(true))]).hasNetwork)
    #expect(try entitlements([("network.client", .boolean(true))]).hasNetwork)
    #expect(try entitlements([("network.server", .boolean(true))]).hasNetwork)
    let free = try entitlements([("cs.disable-library-validation", .boolean(true))])
    #expect(
      reach("Users/anna/Library/Containers/com.example.editor/Data/x", try scope(free)) == [
        .read, .write, .execute,
      ])
  }

  @Test func whatMakesNoSenseIsRefused() throws {
    let exception = "temporary-exception.files.absolute-path.read-only"
    for (key, value) in [
      ("network.client", .string("true")), ("network.server", .integer(1)),
      ("files.downloads.read-only", .array([])),
      (exception, .string("/x")), (exception, .array([.integer(1)])), (exception, .array([.string("x")])),
      (exception, .array([.string("")])), (exception, .array([.string("/a/../b")])),
      (exception, .array([.string("/./a")])), (exception, .array([.string("/a\0b")])),
      (exception, .array([.string("/" + String(repeating: "x", count: 256))])),
      (exception, .array(Array(repeating: .string("/x"), count: 101))),
    ] as [(String, PropertyList)] {
      #expect(throws: AppFailure.self, "\(key)") { try entitlements([(key, value)]) }
    }
  }
}
