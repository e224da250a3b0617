// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Policy
internal import Testing

/// What an Info.plist says of types and documents, which anybody may have written.
@Suite struct DeclarationTests {
  private func declarations(_ entries: String) throws -> AppDeclarations {
    let text =
      "<plist><dict><key>CFBundleIdentifier</key><string>org.example.a</string>\(entries)</dict></plist>"
    return try BundleInfo(reading: Array(text.utf8)).declarations()
  }

  private func list(_ texts: [String]) -> String {
    "<array>" + texts.map { "<string>\($0)</string>" }.joined() + "</array>"
  }

  private func type(
    _ identifier: String, _ parents: [String] = [], extensions: [String] = [], mimeTypes: [String] = [],
    kind: String = ""
  ) -> String {
    "<dict><key>UTTypeIdentifier</key><string>\(identifier)</string><key>UTTypeDescription</key>"
      + "<string>\(kind)</string><key>UTTypeConformsTo</key>\(list(parents))"
      + "<key>UTTypeTagSpecification</key><dict><key>public.filename-extension</key>\(list(extensions))"
      + "<key>public.mime-type</key>\(list(mimeTypes))</dict></dict>"
  }

  private func exported(_ types: String...) -> String {
    "<key>UTExportedTypeDeclarations</key><array>\(types.joined())</array>"
  }

  private func imported(_ types: String...) -> String {
    "<key>UTImportedTypeDeclarations</key><array>\(types.joined())</array>"
  }

  private func refusal(_ entries: String) throws -> String {
    do {
      _ = try declarations(entries)
      return ""
    } catch let finding as Finding {
      #expect(finding.kind == .badInfoPlist)
      return finding.detail
    }
  }

  @Test func whatIsDeclaredIsRead() throws {
    let found = try declarations(
      exported(
        type(
          "com.a.sketch", ["public.image"], extensions: ["Sketch", ".sk", "a b", "x.y"],
          mimeTypes: ["image/x-sketch", "no mime", "a/b/c"], kind: "Sketch\nfile"))
        + imported(type("public.heic", ["public.image"], extensions: ["heic"]))
        + "<key>LSSupportsOpeningDocumentsInPlace</key><true/><key>CFBundleDocumentTypes</key><array>"
        + "<dict><key>CFBundleTypeRole</key><string>Editor</string><key>LSHandlerRank</key>"
        + "<string>Owner</string><key>LSItemContentTypes</key>\(list(["com.a.sketch", "no type"]))</dict>"
        + "<dict><key>CFBundleTypeExtensions</key>\(list(["*", "SK", "a/b"]))"
        + "<key>LSTypeIsPackage</key><true/></dict>"
        + "<dict><key>CFBundleTypeRole</key><string>QLGenerator</string>"
        + "<key>LSItemContentTypes</key>\(list(["public.png"]))</dict></array>")
    #expect(
      found
        == AppDeclarations(
          exported: [
            DeclaredType(
              "com.a.sketch", parents: ["public.image"], extensions: ["sketch", "sk"],
              mimeTypes: ["image/x-sketch"], kind: "Sketch?file")
          ], imported: [DeclaredType("public.heic", parents: ["public.image"], extensions: ["heic"])],
          claims: [
            .init(name: "", rank: .owner, isPackage: false, types: ["com.a.sketch"], extensions: []),
            .init(name: "", rank: .default, isPackage: true, types: [], extensions: ["*", "sk"]),
          ], opensInPlace: true))
    #expect(AppDeclarations(text: found.text) == found)
    #expect(try declarations("") == AppDeclarations())
  }

  /// What apps say that are older than types.
  @Test func mimeTypesAreClaimedToo() throws {
    let found = try declarations(
      "<key>CFBundleDocumentTypes</key><array><dict><key>CFBundleTypeExtensions</key>\(list(["sk"]))"
        + "<key>CFBundleTypeMIMETypes</key>\(list(["image/PNG", "no/such", "none"]))</dict>"
        + "<dict><key>LSItemContentTypes</key>\(list(["public.jpeg"]))"
        + "<key>CFBundleTypeMIMETypes</key>\(list(["image/gif"]))</dict></array>")
    #expect(found.claims.map(\.types) == [[], ["public.png"], ["public.jpeg"]])
    #expect(found.claims.map(\.extensions) == [["sk"], [], []])
  }

  @Test(arguments: [
    ("UIFileSharingEnabled", true, false), ("UISupportsDocumentBrowser", true, true),
    ("LSSupportsOpeningDocumentsInPlace", false, true), ("UIFileSharing", false, false),
  ])
  func documentsAreSharedByTheirKeys(key: String, shares: Bool, inPlace: Bool) throws {
    let found = try declarations("<key>\(key)</key><true/>")
    #expect(found.sharesDocuments == shares && found.opensInPlace == inPlace)
    #expect(AppDeclarations(text: found.text) == found)
    #expect(try !declarations("<key>\(key)</key><false/>").sharesDocuments)
  }

  @Test(arguments: ["public.evil", "PUBLIC.png", "com.apple.application", "dyn.ah62d4rv4ge8043a"])
  func whatIsTheSystemsCantBeExported(_ identifier: String) throws {
    let reason = try refusal(exported(type(identifier)))
    #expect(reason.contains("'\(identifier)' is not the app's to declare"), "\(reason)")
    #expect(try refusal(imported(type(identifier))) == "")
  }

  @Test func circlesAreRefusedByName() throws {
    let reason = try refusal(
      exported(type("a.x", ["a.y"])) + imported(type("a.y", ["a.z"]), type("a.z", ["A.X"])))
    #expect(reason.contains("'a.x', which conforms to 'a.y', which conforms to 'a.z', which"), "\(reason)")
    #expect(try refusal(exported(type("a.x", ["a.x"]))).contains("circle"))
  }

  @Test func whatIsTooMuchIsRefused() throws {
    let many = (0...BundleInfo.DeclarationLimits.count).map { type("a.t\($0)") }.joined()
    #expect(try refusal(exported(many)) == "UTExportedTypeDeclarations has 501 entries; it may have 500")
    #expect(try refusal(imported(many)).contains("UTImportedTypeDeclarations has 501"))
    let claims = String(repeating: "<dict/>", count: 501)
    #expect(try refusal("<key>CFBundleDocumentTypes</key><array>\(claims)</array>").contains("501 entries"))
    let names = (0..<65).map { "e\($0)" }
    #expect(try refusal(exported(type("a.b", extensions: names))).contains("'a.b' has 65 extensions"))
    #expect(try refusal(exported(type("a.b", names))).contains("65 parents"))
    #expect(try refusal(exported(type("a.b", mimeTypes: names))).contains("65 MIME types"))
    let long = (0..<64).map { String(repeating: "x", count: 60) + "\($0)" }
    let fat = (0..<30).map { type("a.t\($0)", extensions: long) }.joined()
    #expect(try refusal(exported(fat)).contains("they may take 65536"))
  }

  @Test(arguments: ["", "a b", "a/b", "ä.b", String(repeating: "a", count: 201), "a\u{202e}b"])
  func whatIsNoIdentifierIsRefused(_ identifier: String) throws {
    #expect(try refusal(exported(type(identifier))).contains("no type: it may contain only"))
    #expect(try refusal(exported("<dict/>")).contains("a type has no UTTypeIdentifier"))
  }

  @Test func otherShapesSayNothing() throws {
    for value in ["<string>x</string>", "<true/>", "<array><string>x</string></array>", "<dict/>"] {
      for key in ["UTExportedTypeDeclarations", "CFBundleDocumentTypes", "LSSupportsOpeningDocumentsInPlace"]
      where !(key.hasPrefix("LS") && value == "<true/>") {
        #expect(try declarations("<key>\(key)</key>\(value)") == AppDeclarations(), "\(key) \(value)")
      }
    }
  }
}
