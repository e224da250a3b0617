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

  @Test func companionsLiveAsLongAsTheGrantedFile() {
    let file = ScopePlace("Users/ada/letter", [.read, .write, .revocable], isSubtree: false)
    var scope = Scope([file])
    let home = position(scope, "Users/ada")
    #expect(scope.reach(of: home) == [.read, .beside])
    #expect(reach(scope, "Users/ada/.swap") == .nothing)
    scope.addCompanion(".swap".utf8, in: home)
    #expect(reach(scope, "Users/ada/.swap") == [.read, .write, .revocable])
    scope.withdraw(file)
    #expect(reach(scope, "Users/ada/.swap") == .nothing)
    scope.admit(file)
    #expect(reach(scope, "Users/ada/.swap") == [.read, .write, .revocable])
    scope.removeCompanion(".swap".utf8, in: home)
    #expect(reach(scope, "Users/ada/.swap") == .nothing)
    #expect(reach(scope, "Users/ada/letter") == [.read, .write, .revocable])
  }

  @Test func fileGrantedForReadingHasNoCompanions() {
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
    decide(rights, on: object, in: parent, by: Subject(uid: uid, gid: 1)) { _ in .notMember }
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
    let before = ["Users/ada/a", "Users/ada/a/b", "Users/ada/a/file"].map { position(scope, $0) }
    let followed = scope.follow(
      [
        (old: folder, new: ScopePlace("Users/ada/c/d/b", reach)),
        (old: file, new: ScopePlace("Users/ada/c/d/file", reach, isSubtree: false)),
      ], [(old: ScopePlace("Users/ada/a", []).path, new: ScopePlace("Users/ada/c/d", []).path)])
    for old in before { #expect(scope.reach(of: old) == .nothing) }
    let after = ["Users/ada/c/d", "Users/ada/c/d/b", "Users/ada/c/d/file"].map { position(scope, $0) }
    #expect(before.map { followed[$0] } == after)
    #expect(after.map { scope.reach(of: $0) } == [[.read, .beside], reach, reach])
    #expect(
      self.reach(scope, "Users/ada/c/d/b/x") == reach && self.reach(scope, "Users/ada/c/d/x") == .nothing)
    #expect(self.reach(scope, "Users/ada/Downloads") == .read)
  }

  @Test func exchangedGrantsChangePlaces() {
    var scope = Self.app
    let one = ScopePlace("Users/ada/1/x", [.read, .revocable])
    let two = ScopePlace("Users/ada/2/y", [.read, .write, .revocable])
    for place in [one, two] { scope.admit(place) }
    let before = [position(scope, "Users/ada/1"), position(scope, "Users/ada/2")]
    let paths = ["Users/ada/1", "Users/ada/2"].map { ScopePlace($0, []).path }
    let followed = scope.follow(
      [
        (old: one, new: ScopePlace("Users/ada/2/x", one.reach)),
        (old: two, new: ScopePlace("Users/ada/1/y", two.reach)),
      ], [(old: paths[0], new: paths[1]), (old: paths[1], new: paths[0])])
    #expect(before.map { followed[$0] } == before.reversed())
    #expect(reach(scope, "Users/ada/2/x") == one.reach && reach(scope, "Users/ada/1/y") == two.reach)
    #expect(reach(scope, "Users/ada/1/x") == .nothing && reach(scope, "Users/ada/2/y") == .nothing)
  }
}
