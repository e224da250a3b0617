// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

@Suite struct OpenerTests {
  private typealias Claim = AppDeclarations.Claim

  private func claim(
    _ rank: HandlerRank, _ types: [String], extensions: [String] = [], isPackage: Bool = false
  ) -> Claim {
    Claim(name: "", rank: rank, isPackage: isPackage, types: types, extensions: extensions)
  }

  private func openers(
    of name: String, _ form: TypeTable.Form = .file, among apps: [AppDeclarations]
  ) -> [Int] {
    let table = TypeTable.base.adding(TypeLayer(apps, over: .base))
    let type = table.type(of: name, form)
    return Openers(apps, in: table).of(type, nameExtension: NameExtension.of(name)).map(\.app)
  }

  @Test func ranksComeFirstThenWhoIsNearest() {
    let apps = [
      AppDeclarations(claims: [claim(.alternate, ["net.daringfireball.markdown"])]),
      AppDeclarations(claims: [claim(.default, ["public.text"])]),
      AppDeclarations(claims: [claim(.default, ["public.plain-text"])]),
      AppDeclarations(claims: [claim(.none, ["net.daringfireball.markdown"])]),
      AppDeclarations(claims: [claim(.default, ["public.image"])]),
      AppDeclarations(claims: [claim(.default, ["public.plain-text"])]),
    ]
    #expect(openers(of: "a.md", among: apps) == [2, 5, 1, 0])
    #expect(openers(of: "a.png", among: apps) == [4])
    #expect(openers(of: "a.mp3", among: apps) == [])
  }

  @Test func whoClaimsEverythingComesLastAndOwnsNothing() {
    let greedy = AppDeclarations(
      claims: [
        claim(.owner, ["public.item", "public.data", "public.content", "com.adobe.pdf"]),
        claim(.owner, [], extensions: ["*", "txt"]),
      ])
    let reader = AppDeclarations(claims: [claim(.default, ["com.adobe.pdf"])])
    let late = AppDeclarations(claims: [claim(.alternate, ["public.mp3"])])
    let apps = [reader, greedy, late]
    #expect(openers(of: "a.pdf", among: apps) == [0, 1])
    #expect(openers(of: "a.txt", among: apps) == [1])
    #expect(openers(of: "a.mp3", among: apps) == [2, 1])
    #expect(openers(of: "Folder", .folder, among: apps) == [])
    #expect(openers(of: "Notes.rtfd", .folder, among: apps) == [1])
  }

  @Test func onlyWhatIsExportedIsOwned() {
    let sketch = DeclaredType("com.a.sketch", parents: ["public.image"], extensions: ["sketch"])
    let thief = AppDeclarations(
      imported: [sketch],
      claims: [claim(.owner, ["com.a.sketch"]), claim(.owner, [], extensions: ["sketch"])])
    let owner = AppDeclarations(exported: [sketch], claims: [claim(.owner, ["com.a.sketch"])])
    #expect(openers(of: "x.sketch", among: [thief, owner]) == [1, 0])
    // Neither what the system has declared nor what another app has exported before.
    let pdf = DeclaredType("com.adobe.pdf", parents: ["public.data"], extensions: ["pdf"])
    let sketchAgain = DeclaredType("com.a.sketch", parents: ["public.image"])
    let reader = AppDeclarations(claims: [claim(.default, ["com.adobe.pdf"])])
    let robber = AppDeclarations(
      exported: [pdf, sketchAgain], claims: [claim(.owner, ["com.adobe.pdf", "com.a.sketch"])])
    #expect(openers(of: "x.pdf", among: [reader, robber]) == [0, 1])
    #expect(openers(of: "x.sketch", among: [owner, robber]) == [0, 1])
  }

  @Test func extensionsCountWhereThereAreNoTypes() {
    let old = AppDeclarations(claims: [claim(.default, [], extensions: ["xyzzy", "crate"])])
    let both = AppDeclarations(claims: [claim(.default, ["public.png"], extensions: ["xyzzy"])])
    let box = AppDeclarations(claims: [claim(.default, [], extensions: ["crate"], isPackage: true)])
    #expect(openers(of: "a.xyzzy", among: [both, old]) == [1])
    #expect(openers(of: "a.crate", .folder, among: [old]) == [])
    #expect(openers(of: "a.crate", .folder, among: [old, box]) == [0, 1])
  }

  @Test func foldersAreOpenedByWhoAsksForThem() {
    let browser = AppDeclarations(claims: [claim(.default, ["public.folder"])])
    let shelf = AppDeclarations(claims: [claim(.default, ["public.directory"])])
    #expect(openers(of: "Folder", .folder, among: [shelf, browser]) == [1, 0])
  }

  @Test func aThousandAppsThatClaimOneExtensionComeInTheirOrder() {
    let claims = [claim(.owner, ["public.png"]), claim(.owner, [], extensions: ["png", "*"])]
    let apps = (0..<1000).map { number in
      AppDeclarations(
        exported: [DeclaredType("com.a\(number).png", parents: ["public.png"], extensions: ["png"])],
        claims: claims)
    }
    #expect(openers(of: "a.png", among: apps) == Array(0..<1000))
  }

  @Test func theTextLeadsBack() {
    let all = AppDeclarations(
      exported: [
        DeclaredType(
          "com.a.x", parents: ["public.data", "public.text"], extensions: ["x", "y"], mimeTypes: ["a/b"],
          kind: "X file")
      ], imported: [DeclaredType("com.b.y", parents: [])],
      claims: [
        claim(.alternate, ["com.a.x"], extensions: ["*"], isPackage: true),
        Claim(name: "A name", rank: .owner, isPackage: false, types: [], extensions: []),
      ], opensInPlace: true)
    #expect(AppDeclarations(text: all.text) == all)
    #expect(AppDeclarations(text: "") == AppDeclarations())
    #expect(AppDeclarations(text: "E\nE\t\t\t\t\t\nZ\t1\nD\t\t\nI\ta") == AppDeclarations())
  }

  @Test func circlesAreFoundAndNamed() {
    func type(_ name: String, _ parents: String...) -> DeclaredType { DeclaredType(name, parents: parents) }
    #expect(TypeCircle.find(in: [type("a", "b", "public.data"), type("b", "public.text")]) == nil)
    #expect(TypeCircle.find(in: [type("a", "A")]) == ["a"])
    #expect(
      TypeCircle.find(in: [type("x", "a"), type("a", "b"), type("b", "c"), type("c", "a")]) == [
        "a", "b", "c",
      ])
    #expect(TypeCircle.find(in: [type("a", "b")], among: [type("b", "a")]) == ["a", "b"])
    #expect(TypeCircle.find(in: [type("a", "fine", "b"), type("b", "a"), type("fine")]) == ["a", "b"])
    // A circle of others is not these types' fault.
    #expect(TypeCircle.find(in: [type("x", "a")], among: [type("a", "b"), type("b", "a")]) == nil)
    // One of others on the way hides none, nor does the order of parents.
    #expect(
      TypeCircle.find(in: [type("x", "a", "y")], among: [type("a", "b"), type("b", "a"), type("y", "x")])
        == ["x", "y"])
    let long = (0..<2000).map { type("t\($0)", "t\(($0 + 1) % 2000)") }
    #expect(TypeCircle.find(in: long)?.count == 2000)
  }
}
