// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Policy
internal import Testing

/// What is beside a granted file and in the view too.
@Suite struct SiblingTests {
  private static let file = ScopePlace("ada/letter", [.read, .write, .revocable], isSubtree: false)
  private static let other = ScopePlace("ada/other", [.read, .write, .revocable], isSubtree: false)

  static func object(_ number: UInt64, mark: UInt64? = 7) -> SiblingObject {
    SiblingObject(SiblingObject.Number(inode: number, device: 1), mark: mark.map { [$0] })
  }

  private func home(_ scope: Scope) -> Position { scope.position(of: "ada".utf8, in: scope.root) }

  private func reach(_ scope: Scope, _ name: String, _ object: SiblingObject?) -> Reach {
    scope.reach(of: scope.position(of: name.utf8, in: home(scope), object: object))
  }

  private func add(_ object: SiblingObject, _ name: String, to scope: inout Scope) {
    let home = home(scope)
    scope.addSibling(object, name.utf8, in: home, of: scope.owners(ofName: name.utf8, in: home))
  }

  @Test func siblingIsAnObjectAndNoName() {
    var scope = Scope([Self.file])
    #expect(scope.reach(of: home(scope)) == [.read, .beside])
    #expect(reach(scope, "letter~", Self.object(1)) == .nothing)
    add(Self.object(1), "letter~", to: &scope)
    #expect(reach(scope, "letter~", Self.object(1)) == [.read, .write, .revocable])
    // Another object of that name, a later one of that number, the same one by another name or elsewhere,
    // and none.
    #expect(reach(scope, "letter~", Self.object(2)) == .nothing)
    #expect(reach(scope, "letter~", Self.object(1, mark: 8)) == .nothing)
    #expect(reach(scope, "letter.tmp", Self.object(1)) == .nothing)
    #expect(scope.position(of: "letter~".utf8, in: scope.root, object: Self.object(1)) == .nowhere)
    #expect(reach(scope, "letter~", nil) == .nothing)
  }

  @Test func siblingGoesWithItsNameAndItsFile() {
    var scope = Scope([Self.file])
    add(Self.object(1), "letter~", to: &scope)
    add(Self.object(1), "letter.bak", to: &scope)
    scope.removeSibling(Self.object(1).number, "letter~".utf8, in: home(scope))
    #expect(reach(scope, "letter~", Self.object(1)) == .nothing)
    #expect(reach(scope, "letter.bak", Self.object(1)) == [.read, .write, .revocable])
    scope.withdraw(Self.file)
    #expect(reach(scope, "letter.bak", Self.object(1)) == .nothing)
    // Nor does it come back with another grant.
    scope.admit(Self.file)
    #expect(reach(scope, "letter.bak", Self.object(1)) == .nothing && !scope.hasSiblings)
  }

  @Test func siblingIsOfTheFilesThatItsNameIsFor() {
    var scope = Scope([Self.file, Self.other])
    add(Self.object(1), "letter~", to: &scope)
    add(Self.object(2), "4913", to: &scope)
    let home = home(scope)
    #expect(scope.owners(of: Self.object(1), named: "letter~".utf8, in: home).count == 1)
    #expect(scope.owners(of: Self.object(2), named: "4913".utf8, in: home).count == 2)
    #expect(scope.owners(ofName: "letter".utf8, in: home).count == 1)
    #expect(scope.owners(ofName: ".bash_profile".utf8, in: home).isEmpty)
    scope.withdraw(Self.file)
    #expect(reach(scope, "letter~", Self.object(1)) == .nothing)
    #expect(reach(scope, "4913", Self.object(2)) == [.read, .write, .revocable])
  }

  @Test func siblingStaysBesideAFileThatIsRenamedThere() {
    var scope = Scope([Self.file])
    add(Self.object(1), ".letter.swp", to: &scope)
    scope.follow([(old: Self.file.path, new: ScopePlace("ada/letter~", []).path)])
    scope.follow([(old: ScopePlace("ada/letter~", []).path, new: Self.file.path)])
    #expect(reach(scope, ".letter.swp", Self.object(1)) == [.read, .write, .revocable])
    scope.follow([(old: ScopePlace("ada", []).path, new: ScopePlace("bob", []).path)])
    let moved = scope.position(of: "bob".utf8, in: scope.root)
    #expect(scope.position(of: ".letter.swp".utf8, in: moved, object: Self.object(1)) == .sibling)
    scope.follow([(old: ScopePlace("bob/letter", []).path, new: ScopePlace("carl/letter", []).path)])
    #expect(!scope.hasSiblings)
  }

  @Test func fileGrantedForReadingHasNone() {
    var scope = Scope([ScopePlace("ada/letter", [.read, .revocable], isSubtree: false)])
    add(Self.object(1), "letter~", to: &scope)
    #expect(reach(scope, "letter~", Self.object(1)) == .nothing && !scope.hasSiblings)
  }

  // MARK: Names

  private static let names: [(file: String, siblings: [String], others: [String])] = [
    (
      "letter",
      [
        "letter~", ".letter~", ".letter.swp", ".letter.swo", ".letter.swx", ".letter.saa", "4913", "5036",
        "5159", "#letter#", ".#letter", ".#-emacsAb3dEf", "letter.~12~", ".goutputstream-AB12CD",
        ".~lock.letter#", "lu1234abcd.tmp", "sedAb3dEf", "tmpabc1_xyz", "tmp.AbCdEfGhIj", "letter.tmp",
        ".letter.tmp", "letter.new", "letter.bak", "letter.orig", "letter.old", "letter.part", "letter.lock",
        "letter.vsctmp", "letter.AbC123", ".letter.AbC1", ".letter.new", "letter.1234",
        "letter.AbCd1234.tmp", "letter.sb-1a2b3c4d-AbCdEf", "letter___jb_tmp___", "letter___jb_old___",
        "letter-journal", "letter-wal", "letter-shm", "letter-mj12345678A",
      ],
      [
        "letter", "", ".bash_profile", "letters", "other", "other~", "letter.", "letter..", ".letter",
        "letter.x", "letter.swp", "letter.html", "letter.sb-", "4912", "4914", "04913", "1000000", "sed",
        "sedAb3dE", "sed12345/", "tmp", "tmpabc", "authorized_keys", ".letter.config.json", "#letter",
        "letter#", "letter.~x~", "letter-journals", "xletter~", "letter~~", "lu.tmp", "luna.txt",
      ]
    ),
    (".vimrc", [".vimrc.swp", ".vimrc~", "..vimrc.swp", ".vimrc.tmp"], [".vim", ".vimrcx", ".viminfo.tmp"]),
    ("a.txt", ["a.txt~", ".a.txt.swp", "a.txt.bak"], ["a.bak", "a~", ".a.swp"]),
    ("bash", ["bash~"], [".bash_profile", ".bashrc", ".bash_logout"]),
    ("", [], ["~", ".tmp", "4913"]),
  ]

  @Test(arguments: names.indices) func onlyNamesThatEditorsUse(index: Int) {
    let (file, siblings, others) = Self.names[index]
    for name in siblings { #expect(isSiblingName(Array(name.utf8), of: Array(file.utf8)), "\(name)") }
    for name in others { #expect(!isSiblingName(Array(name.utf8), of: Array(file.utf8)), "\(name)") }
  }

  @Test func thereAreNotWithoutEnd() {
    var scope = Scope([Self.file])
    for number in 0..<UInt64(Scope.mostSiblings) {
      #expect(scope.hasRoomForSibling)
      add(Self.object(number), "letter.\(number)", to: &scope)
    }
    #expect(!scope.hasRoomForSibling)
  }
}
