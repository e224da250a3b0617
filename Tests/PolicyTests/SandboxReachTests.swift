// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Policy
internal import Testing

/// What entitlements open is the one half of what an app reaches, and consent the other.
@Suite struct SandboxReachTests {
  private static let own = "Users/ada/Library/Containers/org.example.own"
  private static let other = "Users/ada/Library/Containers/org.example.other"
  private static let library = "Users/ada/Library"

  private func reach(_ scope: Scope, _ path: String) -> Reach {
    scope.reach(of: scope.position(at: ScopePlace(path, .nothing).path))
  }

  /// The scope of an app with these entitlements, whose user has consented to these services.
  private func scope(
    _ claims: [ScopePlace], consenting: [PrivacyService] = [], granted: [ScopePlace] = [],
    isChooser: Bool = false, ignoringCase: Bool = false
  ) -> Scope {
    let sandbox = SandboxReach(home: "ada", claims, isChooser: isChooser)
    let decided = sandbox.services.flatMap { service in
      consenting.contains(service)
        ? sandbox.places(with: service, writesChosenFiles: false, allMusic: false)
        : sandbox.places(without: service)
    }
    let places = [ScopePlace(Self.own, [.read, .write])] + sandbox.permanent + decided + granted
    let scope = Scope(places)
    return ignoringCase ? scope.comparing(TreeNames(ignoringCase: true)) : scope
  }

  private static let everything = [
    [ScopePlace("", [.read, .write])], [ScopePlace("Users", [.read, .write])],
    [ScopePlace("Users/ada", [.read, .write])], [ScopePlace("users/ADA", [.read, .write])],
    [ScopePlace("Users/ada/Library", [.read, .write]), ScopePlace("Users/ada", [.read, .write])],
  ]

  private static let privatePlaces: [(path: String, service: PrivacyService)] = [
    ("Users/ada/Music", .mediaLibrary), ("Users/ada/Movies", .mediaLibrary), ("Users/ada/Pictures", .photos),
    ("\(library)/Application Support/AddressBook", .contacts), ("\(library)/Calendars", .calendars),
    ("\(library)/Reminders", .reminders), ("Users/ada/Desktop", .desktop),
    ("Users/ada/Documents", .documents), ("Users/ada/Downloads", .downloads),
  ]

  /// An exception for everything opens what is around private places, and nothing of them.
  @Test(arguments: everything, [false, true])
  func exceptionsEndAtPrivatePlaces(claims: [ScopePlace], ignoringCase: Bool) {
    let scope = scope(claims, ignoringCase: ignoringCase || claims[0].path.first == Array("users".utf8))
    for path in ["Users/ada/Public/x", "\(Self.library)/Preferences/x", "Users/ada/x"] {
      #expect(reach(scope, path) == [.read, .write], "\(path)")
    }
    for (path, _) in Self.privatePlaces {
      #expect(reach(scope, path) == .asks, "\(path)")
      #expect(reach(scope, path + "/x") == .nothing, "\(path)")
    }
    for name in ["Containers", "Group Containers", "Mobile Documents"] {
      #expect(reach(scope, "\(Self.library)/\(name)").contains(.asks))
      #expect(reach(scope, "\(Self.library)/\(name)/x") == .nothing)
    }
    #expect(reach(scope, Self.own + "/Data/x") == [.read, .write])
    for path in ["Users/ben", "Users/ben/Public", "Users/ben/Music/x", ".Trash/1000/x", "Users/.removed"] {
      #expect(reach(scope, path) == .nothing, "\(path)")
    }
  }

  /// With consent an app has what its entitlements open of the place, and it can be taken back.
  @Test func consentOpensWhatTheSandboxReaches() {
    for (path, service) in Self.privatePlaces {
      for (access, expected) in [(Reach.read, Reach.read), ([.read, .write], [.read, .write])] {
        let given = scope([ScopePlace("", access)], consenting: [service])
        // Some services give as much by themselves.
        let isWritable = [.contacts, .calendars, .reminders].contains(service)
        let expected = isWritable ? [.read, .write] : expected
        #expect(reach(given, path + "/x") == expected.union(.revocable), "\(path)")
        #expect(reach(given, path + "/x/y") == expected.union(.revocable), "\(path)")
        // What was granted lies apart from what can't be taken back.
        #expect(
          decideCrossing(from: reach(given, path), to: reach(given, "Users/ada"), isOneGrant: true)
            == .deny(.boundary), "\(path)")
        for (other, otherService) in Self.privatePlaces where otherService != service {
          #expect(reach(given, other + "/x") == .nothing, "\(other)")
        }
      }
    }
    // Without the entitlement it has what the service gives by itself.
    let alone = scope([], consenting: PrivacyService.allCases)
    #expect(reach(alone, "Users/ada/Pictures/x.photoslibrary/y") == [.read, .write, .revocable])
    #expect(reach(alone, "Users/ada/Pictures/x") == .nothing && reach(alone, "Users/ada/Movies") == .nothing)
    #expect(reach(alone, Self.other) == .nothing && reach(alone, "Users/ada/Desktop") == .nothing)
    let narrow = scope([ScopePlace("Users/ada/Pictures/Raw", .read)], consenting: [.photos])
    #expect(reach(narrow, "Users/ada/Pictures/Raw/x") == [.read, .revocable])
    #expect(reach(narrow, "Users/ada/Pictures/x") == .nothing)
  }

  /// Of other apps, consent opens documents alone, and of groups nothing.
  @Test func consentOpensDocumentsOfOtherApps() {
    let asking = scope([ScopePlace("", [.read, .write])])
    let given = scope([ScopePlace("", [.read, .write])], consenting: [.appData])
    for (path, isOpened) in [
      ("\(Self.other)/Data/Documents/x", true), ("\(Self.other)/Data/Library/x", false),
      ("\(Self.other)/Data/tmp/x", false), ("\(Self.other)/x", false),
      ("\(Self.library)/Mobile Documents/iCloud~x/Documents/x", true),
      ("\(Self.library)/Mobile Documents/iCloud~x/Data/x", false),
      ("\(Self.library)/Group Containers/group.x/Documents/x", false),
      ("\(Self.library)/Group Containers/group.x/Data/Documents/x", false),
    ] {
      #expect(reach(asking, path) == .nothing, "\(path)")
      #expect(reach(given, path) == (isOpened ? [.read, .write, .revocable] : .nothing), "\(path)")
    }
    #expect(reach(given, Self.own + "/Data/Library/x") == [.read, .write])
    // One that names it has that, and no more.
    let named = scope(
      [
        ScopePlace("\(Self.other)/Data/Documents/Shared", .read),
        ScopePlace("\(Self.other)/Data/Library", .read),
      ],
      consenting: [.appData])
    #expect(reach(named, "\(Self.other)/Data/Documents/Shared/x") == [.read, .revocable])
    #expect(reach(named, "\(Self.other)/Data/Documents/x") == .nothing)
    #expect(reach(named, "\(Self.other)/Data/Library/x") == .nothing)
    // Without an entitlement that reaches it, nobody can ask.
    #expect(!SandboxReach(home: "ada", [], isChooser: true).services.contains(.appData))
  }

  /// A grant in a container, or in the home of somebody else, is no way into the rest of it.
  @Test func grantsOpenNothingBesideThem() {
    let letter = "\(Self.other)/Data/Documents/letter"
    let granted = [letter, "Users/ben/Public/letter", "Users/ada/Desktop/letter", ".Trash/1000/letter"].map {
      ScopePlace($0, [.read, .write, .revocable], isSubtree: false)
    }
    let scope = scope([ScopePlace("", [.read, .write])], granted: granted)
    for place in granted { #expect(scope.reach(of: scope.position(at: place.path)) == place.reach) }
    for path in [
      "\(Self.other)/Data/Documents/x", "\(Self.other)/Data/Library/x", "\(Self.other)/x", "Users/ben/x",
      "Users/ben/Public/x", "Users/ada/Desktop/x", ".Trash/1000/x",
    ] { #expect(reach(scope, path) == .nothing, "\(path)") }
  }

  /// Under another name a private place, or what leads to it, would be a part of what is around it.
  @Test func privatePlacesKeepTheirNames() {
    let scope = scope([ScopePlace("", [.read, .write])], consenting: PrivacyService.allCases)
    let caller = Credentials(uid: 1000, gid: 1000)
    func mayGo(_ path: String) -> Decision {
      func object(_ path: String) -> Object {
        Object(
          uid: 1000, gid: 1000, mode: 0o700, kind: .directory, zone: .user, reach: reach(scope, path))
      }
      let above = path.split(separator: "/").dropLast().joined(separator: "/")
      return decide(.delete, on: object(path), in: object(above), by: caller) { _ in .notMember }
    }
    for path in [
      "Users/ada/Music", "Users/ada/Pictures", "\(Self.library)/Application Support",
      "\(Self.library)/Application Support/AddressBook", "\(Self.library)/Calendars", "Users/ada/Downloads",
      Self.library, "\(Self.library)/Containers", "Users/ada",
    ] { #expect(mayGo(path) == .deny(.place), "\(path)") }
    for path in ["Users/ada/Music/x", "\(Self.library)/Preferences", "Users/ada/Public"] {
      #expect(mayGo(path) == .allow, "\(path)")
    }
  }

  /// What was decided changes what is open, in both directions, and ends where it began.
  @Test func decisionsAreTakenBack() {
    let sandbox = SandboxReach(home: "ada", [ScopePlace("", [.read, .write])], isChooser: true)
    var scope = Scope([ScopePlace(Self.own, [.read, .write])] + sandbox.permanent)
    let before = sandbox.services.flatMap { sandbox.places(without: $0) }
    for place in before { scope.admit(place) }
    let known = Self.privatePlaces.map { $0.path + "/x" } + [Self.other + "/Data/Documents/x"]
    for _ in 0..<3 {
      for service in sandbox.services {
        let given = sandbox.places(with: service, writesChosenFiles: true, allMusic: false)
        for place in given { scope.admit(place) }
        scope.withdraw(Set(sandbox.places(without: service)))
        for path in Self.privatePlaces where path.service == service {
          #expect(reach(scope, path.path + "/x") == [.read, .write, .revocable])
        }
        for place in sandbox.places(without: service) { scope.admit(place) }
        scope.withdraw(Set(given))
      }
      for path in known { #expect(reach(scope, path) == .nothing, "\(path)") }
      _ = scope.compact()
    }
    #expect(reach(scope, "Users/ada/x") == [.read, .write])
  }
}
