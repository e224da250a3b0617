// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Policy
internal import Synchronization
internal import Testing

/// In a tree that ignores case, names on disks of their own are compared as these do.
@Suite struct TreeNamesTests {
  private static let all: Reach = [.read, .write, .revocable]
  private static let disks: Set<[[UInt8]]> = [path("volumes/work"), path("users/ada")]
  private static let names = TreeNames(ignoringCase: true) { disks.contains($0) }

  private static func path(_ path: String) -> [[UInt8]] { ScopePlace(path, .nothing).path }

  private func reach(_ scope: Scope, _ path: String) -> Reach {
    scope.reach(of: scope.position(at: Self.path(path)))
  }

  private static let pairs: [(one: String, other: String, areOne: Bool)] = [
    ("Volumes/work/a", "VOLUMES/Work/a", true), ("Volumes/work/a", "Volumes/work/A", false),
    ("Volumes/work", "Volumes/WORK", true), ("Users/ada/x/y", "users/ADA/x/Y", false),
    ("Users/eva/x/y", "Users/eva/X/Y", true), ("Users/eva/x", "Users/eva", false),
  ]

  @Test(arguments: pairs) func pathsAreCompared(pair: (one: String, other: String, areOne: Bool)) {
    let (one, other) = (Self.path(pair.one), Self.path(pair.other))
    #expect(Self.names.areOne(one, other) == pair.areOne && Self.names.areOne(other, one) == pair.areOne)
    #expect(Self.names.isPlace(one, atOrAbove: other + [[97]]) == pair.areOne)
    #expect(!TreeNames.bytes.areOne(one, other) && TreeNames.bytes.areOne(one, one))
  }

  /// One spelling is granted, and another one is not; also after a move, and when places have other numbers.
  @Test(arguments: ["Volumes/work", "Users/ada"], [false, true])
  func aGrantIsForOneSpellingThere(disk: String, compacts: Bool) {
    let granted = [
      ScopePlace("\(disk)/a", Self.all, isSubtree: false), ScopePlace("\(disk)/dir", Self.all),
      ScopePlace("Users/eva/a", Self.all, isSubtree: false),
    ]
    var scope = Scope([]).comparing(Self.names)
    for place in granted { scope.admit(place) }
    if compacts { _ = scope.compact() }
    let spelled = disk.uppercased()
    for path in ["a", "dir/x"] { #expect(reach(scope, "\(spelled)/\(path)") == Self.all) }
    for path in ["A", "DIR", "DIR/x"] { #expect(reach(scope, "\(disk)/\(path)") == .nothing, "\(path)") }
    #expect(reach(scope, "users/EVA/A") == Self.all)
    scope.follow([(old: Self.path("\(disk)/DIR"), new: Self.path("\(disk)/else"))])
    #expect(reach(scope, "\(disk)/dir/x") == Self.all && reach(scope, "\(disk)/else") == .nothing)
    scope.follow([(old: Self.path("\(spelled)/dir"), new: Self.path("\(disk)/Else"))])
    #expect(reach(scope, "\(disk)/dir/x") == .nothing && reach(scope, "\(disk)/Else/x") == Self.all)
    #expect(reach(scope, "\(disk)/else/x") == .nothing)
  }

  /// A home comes to be elsewhere while something is granted under its path, as of one that was ejected.
  @Test(arguments: [false, true]) func aPathBecomesADisks(compacts: Bool) {
    let isDisk = Atomic(false)
    let names = TreeNames(ignoringCase: true) {
      isDisk.load(ordering: .relaxed) && $0 == Self.path("users/ada")
    }
    var scope = Scope(
      ["A", "Dir/file"].map { ScopePlace("Users/ada/\($0)", Self.all, isSubtree: false) }, names: names)
    #expect(reach(scope, "Users/ada/a") == Self.all && reach(scope, "Users/ada/dir/FILE") == Self.all)
    isDisk.store(true, ordering: .relaxed)
    scope.compareBytes(below: Self.path("Users/ADA"))
    isDisk.store(false, ordering: .relaxed)
    // What has been told apart stays so.
    scope.admit(ScopePlace("Users/ada/a", .revocable.union(.read), isSubtree: false))
    if compacts { _ = scope.compact() }
    #expect(reach(scope, "Users/ada/A") == Self.all && reach(scope, "Users/ada/Dir/file") == Self.all)
    #expect(reach(scope, "Users/ada/a") == [.read, .revocable] && reach(scope, "Users/ada/dir") == .nothing)
    scope.withdraw(ScopePlace("Users/ada/A", Self.all, isSubtree: false))
    #expect(reach(scope, "Users/ada/A") == .nothing && reach(scope, "Users/ada/a") == [.read, .revocable])
  }
}

/// Names and patterns of one place say both what they say.
@Suite struct PatternClaimTests {
  private static let all: Reach = [.read, .write, .revocable]
  private static let library = "Users/ada/Pictures/P.photoslibrary"
  private static let consented = PrivacyService.photos.withConsent(home: "ada", writesChosenFiles: true)
  private static let granted = ScopePlace(
    "\(library)/originals/p.jpg", [.read, .revocable], isSubtree: false)

  private func path(_ path: String) -> [[UInt8]] { ScopePlace(path, .nothing).path }

  private func reach(_ scope: Scope, _ name: String) -> Reach {
    scope.reach(of: scope.position(at: path("\(Self.library)/originals/\(name)")))
  }

  private static let orders = [consented + [granted], [granted] + consented]

  /// A grant of one photo leaves the others to an app that may use all, whatever came first.
  @Test(arguments: orders, [false, true]) func aGrantInALibraryTakesNothing(
    order: [ScopePlace], compacts: Bool
  ) {
    var scope = Scope(order)
    if compacts { _ = scope.compact() }
    let before = reach(scope, "q.jpg")
    #expect(before.contains([.read, .revocable]) && reach(scope, "p.jpg") == before)
    scope.withdraw(Self.granted)
    #expect(reach(scope, "q.jpg") == before)
    scope.admit(Self.granted)
    for place in Self.consented { scope.withdraw(place) }
    #expect(reach(scope, "q.jpg") == .nothing && reach(scope, "p.jpg") == [.read, .revocable])
    for place in Self.consented { scope.admit(place) }
    #expect(reach(scope, "q.jpg") == before)
  }

  /// What moves has what is consented to where it is then.
  @Test func itIsWhatTheNameSays() {
    var scope = Scope(Self.consented + [Self.granted])
    scope.follow([(old: path(Self.library), new: path("Users/ada/Pictures/other"))])
    let moved = "Users/ada/Pictures/other/originals"
    #expect(scope.reach(of: scope.position(at: path("\(moved)/p.jpg"))) == [.read, .revocable])
    #expect(scope.reach(of: scope.position(at: path("\(moved)/q.jpg"))) == .nothing)
    scope.follow([(old: path("Users/ada/Pictures/other"), new: path("Users/ada/Pictures/Q.photoslibrary"))])
    let there = "Users/ada/Pictures/Q.photoslibrary/originals/q.jpg"
    #expect(scope.reach(of: scope.position(at: path(there))).contains(.read))
  }

  /// Documents of another app of which one was granted: the pattern stands for a name above.
  @Test func documentsOfOtherApps() {
    let containers = "Users/ada/Library/Containers"
    let places = PrivacyService.appData.consented(home: "ada").map {
      ScopePlace($0, Self.all, by: .consent)
    }
    let scope = Scope(
      places + [ScopePlace("\(containers)/org.a/Data/Documents/one", Self.all, isSubtree: false)])
    func reach(_ name: String) -> Reach { scope.reach(of: scope.position(at: path("\(containers)/\(name)"))) }
    #expect(reach("org.a/Data/Documents/two") == Self.all && reach("org.b/Data/Documents/two") == Self.all)
    #expect(reach("org.a/Data/Library") == .nothing && reach("org.b/Data/Library") == .nothing)
  }
}

/// A scope that has no room left.
@Suite struct FullScopeTests {
  private func path(_ path: String) -> [[UInt8]] { ScopePlace(path, .nothing).path }

  private func fill(_ scope: inout Scope) {
    var number = 0
    while scope.make(path("Filled/\(number)")) != nil { number += 1 }
  }

  /// What is private does not lose that it is apart.
  @Test func aPrivatePlaceWithoutRoomClosesTheView() {
    let support = "Users/ada/Library/Application Support"
    let asking = PrivacyService.contacts.withoutConsent(home: "ada")
    let file = ScopePlace("\(support)/f", [.read, .revocable], isSubtree: false)
    var scope = Scope([
      ScopePlace("", [.read, .write]), asking, ScopePlace(asking.path, .apart, isSubtree: false), file,
    ])
    let known = scope.position(at: path("Users/ada/Documents"))
    fill(&scope)
    // A grant that has no room is none, and takes nothing away.
    scope.admit(ScopePlace("Users/ada/x", [.read, .revocable]))
    #expect(scope.reach(of: known) == [.read, .write])
    let followed = scope.follow([(old: path(support), new: path("Users/ada/Library/AS2"))])
    #expect(followed.isElsewhere)
    for path in ["", "Users/ada/Documents", "\(support)/AddressBook", "Users/ada/Library/AS2/AddressBook"] {
      #expect(scope.reach(of: scope.position(at: self.path(path))) == .nothing, "\(path)")
    }
    #expect(scope.reach(of: known) == .nothing && scope.inside(known) == .nowhere)
    _ = scope.compact()
    #expect(scope.reach(of: scope.position(at: path("Users/ada/Documents"))) == .nothing)
  }
}
