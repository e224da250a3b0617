// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Policy
internal import Testing

@Suite struct ScopeTests {
  private func reach(_ scope: Scope, _ path: String) -> Reach { scope.reach(of: position(scope, path)) }

  private func position(_ scope: Scope, _ path: String) -> Position {
    path.split(separator: "/").reduce(scope.root) { scope.position(of: $1.utf8, in: $0) }
  }

  private static let container = "Users/ada/Library/Containers/org.x/Data"

  private static let app = Scope([
    ScopePlace("Applications/X.app", [.read, .execute]),
    ScopePlace(container, [.read, .write]),
    ScopePlace("System", [.read, .execute]),
    ScopePlace("Users/ada/Downloads", .read),
  ])

  @Test func wholeTreeHasNothingToAskAbout() {
    #expect(Scope.wholeTree.root == .whole)
    #expect(reach(.wholeTree, "any/thing/at all") == .everything)
  }

  private static let reaches: [(String, Reach)] = [
    ("", .read), ("Applications", .read), ("Applications/X.app", [.read, .execute]),
    ("Applications/X.app/Contents/a", [.read, .execute]), ("Applications/Y.app", .nothing),
    ("Applications/Y.app/Contents", .nothing), ("Library", .nothing), ("Users/ada", .read),
    ("Users/ada/Documents", .nothing), ("Users/bob", .nothing), (container, [.read, .write]),
    (container + "/Documents/a", [.read, .write]), ("Users/ada/Library/Containers/org.y", .nothing),
    ("Users/ada/Downloads/a/b", .read), ("Users/ada/Downloads2", .nothing), ("users", .nothing),
  ]

  @Test(arguments: reaches)
  func onlyWhatIsNamedExists(path: String, expected: Reach) {
    #expect(reach(Self.app, path) == expected)
  }

  @Test func oneObjectIsNotWhatIsInIt() {
    let scope = Scope([ScopePlace("a/b", [.read, .write], isSubtree: false)])
    #expect(reach(scope, "a/b") == [.read, .write])
    #expect(reach(scope, "a/b/c") == .nothing)
  }

  @Test func grantComesAndGoes() {
    var scope = Self.app
    let place = ScopePlace("Users/ada/Documents/thesis", [.read, .write, .revocable])
    scope.admit(place)
    #expect(reach(scope, "Users/ada/Documents/thesis/one") == [.read, .write, .revocable])
    #expect(reach(scope, "Users/ada/Documents") == .read)
    #expect(reach(scope, "Users/ada/Documents/other") == .nothing)
    let known = position(scope, "Users/ada/Documents/thesis")
    scope.withdraw(place)
    #expect(scope.reach(of: known) == .nothing)
    #expect(reach(scope, "Users/ada/Documents") == .nothing)
    scope.admit(place)
    #expect(position(scope, "Users/ada/Documents/thesis") == known)
  }

  @Test func whatIsOwnedAnywayIsNotRevocable() {
    var scope = Self.app
    scope.admit(ScopePlace(Self.container + "/Documents", [.read, .revocable]))
    #expect(reach(scope, Self.container + "/Documents/a") == [.read, .write])
    scope.admit(ScopePlace("Users/ada/Downloads/in", [.read, .write, .revocable]))
    #expect(reach(scope, "Users/ada/Downloads/in/a") == [.read, .write, .revocable])
    scope.withdraw(ScopePlace("Users/ada/Downloads/in", [.read, .write, .revocable]))
    #expect(reach(scope, "Users/ada/Downloads/in/a") == .read)
  }

  @Test func twoGrantsOfOnePlaceAreKeptApart() {
    let reading = ScopePlace("Users/ada/a", [.read, .revocable])
    let writing = ScopePlace("Users/ada/a", [.read, .write, .revocable])
    var scope = Scope([reading, writing])
    #expect(reach(scope, "Users/ada/a/b") == [.read, .write, .revocable])
    scope.withdraw(writing)
    #expect(reach(scope, "Users/ada/a/b") == [.read, .revocable])
    scope.withdraw(reading)
    #expect(reach(scope, "Users/ada/a/b") == .nothing)
  }

  @Test func fileGrantedForReadingHasNoSiblings() {
    let scope = Scope([ScopePlace("Users/ada/letter", [.read, .revocable], isSubtree: false)])
    #expect(reach(scope, "Users/ada") == .read)
  }

  // MARK: What the gate makes of it

  private func object(_ reach: Reach, _ kind: Object.Kind = .file) -> Object {
    Object(uid: 1, gid: 1, mode: 0o777, kind: kind, zone: .user, reach: reach)
  }

  private func decision(_ rights: Rights, _ object: Object, in parent: Object? = nil, uid: UInt32 = 1)
    -> Decision
  {
    decide(rights, on: object, in: parent, by: Credentials(uid: uid, gid: 1)) { _ in .notMember }
  }

  @Test(arguments: [UInt32(0), 1])
  func nothingIsChangedWhereOnlyReadingIsInReach(uid: UInt32) {
    for right in [Rights.write, .append, .writeAttributes, .writeExtended, .writeSecurity, .link] {
      #expect(decision(right, object(.read), uid: uid) == .deny(.place))
      #expect(decision(right, object([.read, .write]), uid: uid) == .allow)
    }
    #expect(decision(.read, object(.read), uid: uid) == .allow)
    let passage = object(.read, .directory)
    #expect(decision([.list, .search], passage, uid: uid) == .allow)
    #expect(decision(.addFile, passage, uid: uid) == .deny(.place))
    #expect(decision(.delete, object([.read, .write]), in: passage, uid: uid) == .deny(.place))
    #expect(decision(.delete, object([.read, .write, .revocable]), in: passage, uid: uid) == .deny(.place))
  }

  @Test(arguments: [UInt32(0), 1])
  func besideAGrantedFileFilesComeAndGo(uid: UInt32) {
    let directory = object([.read, .beside], .directory)
    #expect(decision([.addFile, .search], directory, uid: uid) == .allow)
    #expect(decision(.addSubdirectory, directory, uid: uid) == .deny(.place))
    #expect(decision(.writeAttributes, directory, uid: uid) == .deny(.place))
    #expect(decision(.delete, object([.read, .write, .revocable]), in: directory, uid: uid) == .allow)
    #expect(decision(.delete, object([.read, .write]), in: directory, uid: uid) == .deny(.place))
  }

  @Test func onlyWhatIsInReachForItIsRun() {
    #expect(decision(.execute, object([.read, .write])) == .deny(.mode))
    #expect(decision(.execute, object([.read, .execute])) == .allow)
    #expect(decision(.search, object(.read, .directory)) == .allow)
  }

  @Test func movedGrantsLeaveNothingBehind() {
    var scope = Self.app
    let reach: Reach = [.read, .write, .revocable]
    let folder = ScopePlace("Users/ada/a/b", reach)
    let file = ScopePlace("Users/ada/a/file", reach, isSubtree: false)
    for place in [folder, file] { scope.admit(place) }
    let before = ["Users/ada/a", "Users/ada/a/b", "Users/ada/a/file", "Users/ada/a/b/x"].map {
      position(scope, $0)
    }
    scope.follow([(old: path("Users/ada/a"), new: path("Users/ada/c/d"))])
    for old in ["Users/ada/a", "Users/ada/a/b", "Users/ada/a/file", "Users/ada/a/b/x"] {
      #expect(self.reach(scope, old) == .nothing)
    }
    // What is known keeps its position, wherever it is now.
    let after = ["Users/ada/c/d", "Users/ada/c/d/b", "Users/ada/c/d/file", "Users/ada/c/d/b/x"].map {
      position(scope, $0)
    }
    #expect(before == after)
    #expect(after.map { scope.reach(of: $0) } == [[.read, .beside], reach, reach, reach])
    #expect(
      self.reach(scope, "Users/ada/c/d/b/x") == reach && self.reach(scope, "Users/ada/c/d/x") == .nothing)
    #expect(self.reach(scope, "Users/ada/Downloads") == .read)
    scope.withdraw([
      ScopePlace("Users/ada/c/d/b", reach), ScopePlace("Users/ada/c/d/file", reach, isSubtree: false),
    ])
    for old in before { #expect(scope.reach(of: old) == .nothing) }
  }

  @Test func exchangedGrantsChangePlaces() {
    var scope = Self.app
    let one = ScopePlace("Users/ada/1/x", [.read, .revocable])
    let two = ScopePlace("Users/ada/2/y", [.read, .write, .revocable])
    for place in [one, two] { scope.admit(place) }
    let before = [position(scope, "Users/ada/1"), position(scope, "Users/ada/2")]
    let paths = ["Users/ada/1", "Users/ada/2"].map(path)
    scope.follow([(old: paths[0], new: paths[1]), (old: paths[1], new: paths[0])])
    #expect(before == [position(scope, "Users/ada/2"), position(scope, "Users/ada/1")])
    #expect(reach(scope, "Users/ada/2/x") == one.reach && reach(scope, "Users/ada/1/y") == two.reach)
    #expect(reach(scope, "Users/ada/1/x") == .nothing && reach(scope, "Users/ada/2/y") == .nothing)
  }

  @Test func whatWasNotGrantedStaysWithItsPath() {
    var scope = Self.app
    scope.admit(ScopePlace("Users/ada/Downloads/in", [.read, .write, .revocable]))
    scope.follow([(old: path("Users/ada/Downloads"), new: path("Users/ada/Old"))])
    #expect(reach(scope, "Users/ada/Downloads/x") == .read && reach(scope, "Users/ada/Old/x") == .nothing)
    #expect(reach(scope, "Users/ada/Old/in/x") == [.read, .write, .revocable])
    #expect(reach(scope, "Users/ada/Downloads/in/x") == .read)
  }

  /// What is granted where something else comes to holds for that.
  @Test func twoPlacesThatBecomeOneHaveWhatIsSaidOfBoth() {
    let reading = ScopePlace("a/one", [.read, .revocable])
    let writing = ScopePlace("a/two", [.read, .write, .revocable])
    let below = ScopePlace("a/one/x/y", [.read, .write, .revocable], isSubtree: false)
    var scope = Scope([reading, writing, below])
    let replaced = position(scope, "a/one")
    scope.follow([(old: path("a/two"), new: path("a/one"))])
    #expect(reach(scope, "a/one") == [.read, .write, .revocable] && reach(scope, "a/two") == .nothing)
    #expect(scope.reach(of: replaced) == .nothing)
    scope.withdraw(ScopePlace("a/one", writing.reach))
    #expect(reach(scope, "a/one/z") == [.read, .revocable])
    #expect(reach(scope, "a/one/x/y") == [.read, .write, .revocable])
    scope.withdraw([reading, below])
    #expect(reach(scope, "a/one") == .nothing && reach(scope, "a") == .nothing)
  }

  // MARK: Room

  /// More names than a scope has numbers for, one after the other.
  @Test func namesOfYesterdayTakeNoRoom() {
    var scope = Self.app
    let place = ScopePlace("Users/ada/granted/x", [.read, .write, .revocable])
    scope.admit(place)
    var name = "granted"
    var known = position(scope, "Users/ada/granted/x")
    for number in 0..<70_000 {
      let new = "granted\(number)"
      scope.follow([(old: path("Users/ada/\(name)/x"), new: path("Users/ada/\(new)/x"))])
      name = new
      if scope.isCrowded, let followed = scope.compact()[known] { known = followed }
    }
    #expect(position(scope, "Users/ada/\(name)/x") == known && scope.reach(of: known) == place.reach)
    #expect(reach(scope, "Users/ada/\(name)/x/y") == place.reach)
    #expect(reach(scope, "Users/ada/granted") == .nothing)
    #expect(reach(scope, Self.container + "/a") == [.read, .write])
    #expect(scope.places.count < 10_000)
  }

  @Test func smallerScopeSaysTheSame() {
    let places = [
      ScopePlace("a/b/c", [.read, .write, .revocable]), ScopePlace("a/b/c/d", [.read, .write]),
      ScopePlace("a/f", [.read, .write, .revocable], isSubtree: false), ScopePlace("e", .read),
    ]
    var scope = Scope(places)
    scope.admit(ScopePlace("a/b/c/gone/deep", [.read, .write, .revocable]))
    let gone = position(scope, "a/b/c/gone")
    scope.withdraw(ScopePlace("a/b/c/gone/deep", [.read, .write, .revocable]))
    scope.addSibling(
      SiblingTests.object(1), "f~".utf8, in: position(scope, "a"),
      of: scope.owners(ofName: "f~".utf8, in: position(scope, "a")))
    let paths = ["a", "a/b", "a/b/c", "a/b/c/x", "a/b/c/d", "a/b/c/d/x", "a/f", "e", "e/x", "a/x", "g"]
    let before = paths.map { position(scope, $0) }
    let reaches = paths.map { reach(scope, $0) }
    let followed = scope.compact()
    #expect(paths.map { reach(scope, $0) } == reaches)
    #expect(paths.map { position(scope, $0) } == before.map { $0.throughout == nil ? followed[$0] : $0 })
    // What has no place any more is in the rest of what it is in.
    #expect(followed[gone] == position(scope, "a/b/c/x"))
    let found = scope.position(of: "f~".utf8, in: position(scope, "a"), object: SiblingTests.object(1))
    #expect(found == .sibling)
  }

  // MARK: Grants of their own

  @Test func eachGrantIsApart() {
    let reach: Reach = [.read, .write, .revocable]
    let scope = Scope([
      ScopePlace("a", reach), ScopePlace("b", reach), ScopePlace("a/nested", reach),
      ScopePlace("c/file", reach, isSubtree: false), ScopePlace("d/file", reach, isSubtree: false),
      ScopePlace("own", [.read, .write]),
    ])
    func grant(_ path: String) -> Position? { scope.grant(around: position(scope, path)) }
    #expect(grant("a/x") != nil && grant("a/x") == grant("a/y/z") && grant("a") == grant("a/x"))
    let apart = ["a", "b", "a/nested", "c", "d"].map(grant)
    #expect(!apart.contains(nil) && Set(apart).count == apart.count)
    #expect(grant("own") == nil && grant("own/x") == nil)
  }

  private func path(_ path: String) -> [[UInt8]] { ScopePlace(path, []).path }
}
