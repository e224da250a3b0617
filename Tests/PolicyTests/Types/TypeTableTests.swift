// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

@Suite struct TypeTableTests {
  private let table = TypeTable.base

  @Test(arguments: [
    ("Letter.txt", "public.plain-text", "plain text document"), ("a.b.PDF", "com.adobe.pdf", "PDF document"),
    ("photo.JpEg", "public.jpeg", "JPEG image"), ("main.swift", "public.swift-source", "Swift source"),
    ("x.tar.gz", "org.gnu.gnu-zip-archive", "gzip archive"),
    ("Talk.key", "com.apple.iWork.Keynote.sffkey", ""),
    (".bashrc", "public.data", "document"), ("..", "public.data", "document"), ("README", "public.data", ""),
    ("ends.", "public.data", ""), ("Chapter 1. The End", "public.data", ""),
    (".a.md", "net.daringfireball.markdown", ""),
    ("what.xyzzy", "dyn.ah62d4rv4ge81u8p4tm6u", "XYZZY document"),
    ("x.asp", "dyn.ah62d4rv4ge80c65u", "ASP document"),
    ("x.aspx", "dyn.ah62d4rv4ge80c65uta", "ASPX document"),
  ])
  func filesGoByTheirExtension(_ name: String, _ identifier: String, _ kind: String) {
    let type = table.type(of: name, .file)
    #expect(type.identifier == identifier)
    if !kind.isEmpty { #expect(table.kind(of: type) == kind) }
  }

  @Test(arguments: [
    ("Editor.app", "com.apple.application-bundle", true), ("Talk.key", "com.apple.iWork.Keynote.key", true),
    ("X.framework", "com.apple.framework", false), ("Notes.rtfd", "com.apple.rtfd", true),
    ("Letter.txt", "public.folder", false), ("Documents", "public.folder", false),
    (".app", "public.folder", false), ("X.photoslibrary", "com.apple.photos.library", true),
  ])
  func directoriesHaveTypesOfTheirOwn(_ name: String, _ identifier: String, _ isPackage: Bool) {
    #expect(table.type(of: name, .folder).identifier == identifier)
    #expect(table.isPackage(name) == isPackage)
    #expect(table.isPackage(name, hasBundleBit: true))
  }

  @Test func whatIsNoFileGoesByWhatItIs() {
    #expect(table.type(of: "a.txt", .link).identifier == "public.symlink")
    #expect(table.type(of: "a.txt", .volume).identifier == "public.volume")
    #expect(table.type(of: "a.txt", .special).identifier == "public.item")
    #expect(table.type(of: "ls", .program).identifier == "public.unix-executable")
    #expect(table.type(of: "run.sh", .program).identifier == "public.shell-script")
  }

  @Test func everyParentIsDeclaredAndNothingConformsToItself() {
    #expect(table.all.count >= 150)
    for type in table.all {
      for parent in type.parents {
        #expect(table.type(named: parent) != nil, "\(type.identifier): \(parent)")
        #expect(!table.conforms(parent, to: type.identifier), "\(type.identifier) is in a circle")
      }
    }
    #expect(Set(table.all.map { $0.identifier.lowercased() }).count == table.all.count)
  }

  @Test func everyExtensionLeadsBackToATypeThatHasIt() {
    for type in table.all {
      let isFolder = table.conforms(type.identifier, to: TypeTable.directory)
      for name in type.extensions {
        #expect(NameExtension.declared(name) == name)
        #expect(table.type(forExtension: name, isFolder: isFolder) == type, "\(name)")
      }
    }
  }

  @Test(arguments: [
    ("public.swift-source", "public.text"), ("com.apple.application-bundle", "com.apple.package"),
    ("public.png", "PUBLIC.IMAGE"), ("public.data", "public.data"),
    ("com.apple.iwork.keynote.KEY", "public.content"),
    ("dyn.ah62d4rv4ge8043a", "public.data"),
  ])
  func conformanceIsReflexiveAndTransitive(_ identifier: String, _ other: String) {
    #expect(table.conforms(identifier, to: other))
    #expect(!table.conforms(identifier, to: "public.audio"))
  }

  @Test func theNearestComesFirst() {
    let all = table.ancestors(of: "public.swift-source").map(\.identifier)
    #expect(
      all == [
        "public.swift-source", "public.source-code", "public.plain-text", "public.text", "public.data",
        "public.content", "public.item",
      ])
  }

  @Test func aLayerAddsAndTakesNothingOver() {
    let layer = TypeLayer(
      [
        DeclaredType("com.evil.text", parents: ["public.data"], extensions: ["txt", "evil"], kind: "evil"),
        DeclaredType("PUBLIC.png", parents: ["com.evil.text"], extensions: ["png"]),
        DeclaredType("com.a.one", parents: ["com.a.two"], extensions: ["one"]),
        DeclaredType("com.a.two", parents: ["com.a.one", "com.a.nothing"]),
        DeclaredType("com.a.box", parents: ["com.apple.package"], extensions: ["box"]),
      ], packages: ["crate"], over: table)
    let more = table.adding(layer)
    #expect(more.type(of: "a.txt", .file).identifier == "public.plain-text")
    #expect(more.type(of: "a.png", .file) == table.type(of: "a.png", .file))
    #expect(more.type(of: "a.evil", .file).identifier == "com.evil.text")
    #expect(more.ancestors(of: "com.a.one").map(\.identifier) == ["com.a.one", "com.a.two"])
    #expect(more.kind(of: more.type(of: "a.one", .file)) == "document")
    #expect(more.isPackage("x.box") && more.isPackage("x.crate") && !more.isPackage("x.evil"))
    #expect(!table.isPackage("x.box"))
  }

  @Test func dynamicIdentifiersLeadBack() {
    for name in ["md", "kra", "a", "markdown", "ä", "x-y_z", "0"] {
      let identifier = DynamicType.identifier(forExtension: name)
      #expect(DynamicType.nameExtension(of: identifier) == name)
    }
    #expect(DynamicType.identifier(forExtension: "md") == "dyn.ah62d4rv4ge8043a")
    for text in ["dyn.", "dyn.a", "dyn.ah62d4rv4ge8", "dyn.ah62d4rv4ge8!", "public.data", "dyn.zzzzzzzzzzzz"]
    {
      #expect(DynamicType.nameExtension(of: text) == nil, "\(text)")
    }
  }
}
