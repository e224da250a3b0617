// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Policy
internal import Testing

/// What an app has by its launch, by consent and by a grant is told apart.
@Suite struct ClaimMakerTests {
  private static let support = "Users/ada/Library/Application Support"
  private static let book = support + "/AddressBook"
  private static let all: Reach = [.read, .write, .revocable]
  private static let asking = PrivacyService.contacts.withoutConsent(home: "ada")
  private static let consented = PrivacyService.contacts.withConsent(home: "ada", writesChosenFiles: false)

  private func path(_ path: String) -> [[UInt8]] { ScopePlace(path, .nothing).path }

  private func reach(_ scope: Scope, _ path: String) -> Reach {
    scope.reach(of: scope.position(at: self.path(path)))
  }

  private static let moves: [[(old: String, new: String)]] = [
    [(support, "Users/ada/AS2")], [(book, support + "/B2")],
    [(support, "Users/ada/Public"), ("Users/ada/Public", support)],
  ]

  /// What was granted beside it, in it or as the place itself moves, and nothing of what was consented to.
  @Test(arguments: moves, [false, true])
  func consentStaysWithItsPath(moves: [(old: String, new: String)], ignoringCase: Bool) {
    let granted = ["Other/f", "AddressBook/card", "AddressBook/Groups"].map {
      ScopePlace("\(Self.support)/\($0)", Self.all, isSubtree: $0.hasSuffix("Groups"))
    }
    var scope = Scope(Self.consented + granted, names: TreeNames(ignoringCase: ignoringCase))
    let new = Self.book.replacing(moves[0].old, with: moves[0].new)
    let known = ["AddressBook", "AddressBook/other"].map {
      scope.position(at: path("\(Self.support)/\($0)"))
    }
    let followed = scope.follow(moves.map { (old: path($0.old), new: path($0.new)) })
    #expect(followed.isElsewhere)
    #expect(reach(scope, new + "/card") == Self.all && reach(scope, new + "/Groups/x") == Self.all)
    #expect(reach(scope, new + "/other") == .nothing && !scope.reach(of: known[0]).contains(.write))
    #expect(reach(scope, Self.book + "/other") == Self.all)
    for place in Self.consented { scope.withdraw(place) }
    scope.admit(Self.asking)
    #expect(reach(scope, Self.book) == .asks && reach(scope, Self.book + "/other") == .nothing)
    #expect(reach(scope, new + "/other") == .nothing && scope.reach(of: known[1]) == .nothing)
    #expect(reach(scope, new + "/card") == Self.all)
    scope.withdraw(Set([Self.asking]))
    #expect(!scope.hasPrivatePlaces && reach(scope, Self.book) == .nothing)
  }

  @Test func patternsStayWithTheirPath() {
    let granted = ScopePlace("Users/ada/Pictures/one.jpg", Self.all, isSubtree: false)
    let consented = PrivacyService.photos.withConsent(home: "ada", writesChosenFiles: false)
    var scope = Scope(consented + [granted])
    scope.follow([(old: path("Users/ada/Pictures"), new: path("Users/ada/P2"))])
    #expect(reach(scope, "Users/ada/P2/one.jpg") == Self.all)
    #expect(reach(scope, "Users/ada/P2/a.photoslibrary") == .nothing)
    #expect(reach(scope, "Users/ada/Pictures/a.photoslibrary/1") == Self.all)
    for place in consented { scope.withdraw(place) }
    #expect(reach(scope, "Users/ada/Pictures/a.photoslibrary/1") == .nothing)
  }

  /// A private place is not taken for a part of what was granted, and neither is what a signature opens,
  /// however the grant spells it.
  @Test(arguments: ["AddressBook", "addressbook"])
  func otherSpellingsStayWithTheirPath(spelling: String) {
    let spelled = "\(Self.support)/\(spelling)"
    var scope = Scope(
      [
        ScopePlace("Users/ada/Library", [.read, .write]), Self.asking,
        ScopePlace(Self.book, .apart, isSubtree: false), ScopePlace("Users/ada/Public", .read),
        ScopePlace(spelled + "/card", Self.all, isSubtree: false),
        ScopePlace("Users/ada/PUBLIC/letter", Self.all, isSubtree: false),
      ], names: TreeNames(ignoringCase: true))
    scope.follow([(old: path(spelled), new: path(Self.support + "/B2"))])
    scope.follow([(old: path("Users/ada/PUBLIC"), new: path("Users/ada/P2"))])
    #expect(reach(scope, Self.book).contains(.asks) && reach(scope, spelled + "/new") == .nothing)
    #expect(reach(scope, Self.support + "/B2/card") == [.read, .write])
    #expect(reach(scope, "Users/ada/P2/other") == .nothing && reach(scope, "Users/ada/Public/x") == .read)
    #expect(scope.path(ofPrivate: scope.position(at: path(spelled))) == path(Self.book))
    // What is decided afterwards finds it.
    for place in Self.consented { scope.admit(place) }
    scope.withdraw(Self.asking)
    #expect(!scope.hasPrivatePlaces && reach(scope, spelled + "/new") == Self.all)
  }

  /// One place, by two claims that say the same.
  @Test(arguments: [false, true])
  func eachTakesBackItsOwn(compacts: Bool) {
    let grant = ScopePlace(Self.book, Self.all)
    var scope = Scope(Self.consented)
    scope.admit(grant)
    if compacts { _ = scope.compact() }
    for place in Self.consented { scope.withdraw(place) }
    scope.admit(Self.asking)
    #expect(reach(scope, Self.book + "/card") == Self.all && !reach(scope, Self.book).contains(.asks))
    for place in Self.consented { scope.admit(place) }
    scope.withdraw(Self.asking)
    scope.withdraw(grant)
    #expect(reach(scope, Self.book + "/card") == Self.all)
    for place in Self.consented { scope.withdraw(place) }
    #expect(reach(scope, Self.book) == .nothing)
  }
}
