// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

/// What standard directories, apps and documents are called.
@Suite struct DisplayNameTests {
  private let temporary: TemporaryDirectory

  init() throws { temporary = try TemporaryDirectory() }

  private func make(_ files: [String: String]) throws {
    for (path, text) in files {
      let parts = path.split(separator: "/")
      for count in 1..<max(1, parts.count) {
        _ = mkdir(temporary.appending(parts.prefix(count).joined(separator: "/")), 0o755)
      }
      try temporary.write(text, to: path)
    }
  }

  private func name(
    _ name: String, _ language: String, hides: Bool = true,
    catalog: @escaping @Sendable (String) -> [UInt8]? = { _ in nil }
  ) throws -> String {
    let root = try temporary.open()
    let object = try root.fd.child(name)
    let isDirectory = try object.fd.status().isDirectory
    return DisplayNames(try #require(Languages(language)), catalog: catalog).name(
      of: DisplayNames.Named(
        name, FinderInfo(), isDocument: !isDirectory, hidesExtension: hides,
        contents: isDirectory ? DirectoryContents(of: object.fd) : nil))
  }

  @Test func standardDirectoriesHaveNamesWhereTheyAskForThem() throws {
    try make(["Documents/.localized": "", "Music/x": "", "Akten/.localized": "", "Public/.localized/x": ""])
    #expect(try name("Documents", "de") == "Dokumente")
    #expect(try name("Documents", "de-AT") == "Dokumente")
    #expect(try name("Documents", "pt-PT") == "Documentos")
    #expect(try name("Documents", "zh_TW.UTF-8") == "文件" && name("Documents", "zh-CN") == "文稿")
    #expect(try name("Documents", "en") == "Documents" && name("Documents", "xx") == "Documents")
    #expect(try name("Music", "de") == "Music", "without the file")
    #expect(try name("Akten", "de") == "Akten", "with another name")
    #expect(try name("Public", "de") == "Public", "with a directory in place of the file")
  }

  @Test func catalogsHaveNamesInMoreLanguages() throws {
    try make(["Movies/.localized": "", "Users/.localized": ""])
    let catalog = Self.catalog(["Desktop": "Tabula", "Videos": "Pelliculae"])
    #expect(try name("Movies", "la", catalog: { $0 == "la" ? catalog : nil }) == "Pelliculae")
    #expect(try name("Users", "la", catalog: { _ in catalog }) == "Users")
    #expect(try name("Movies", "la", catalog: { _ in Array(catalog.prefix(60)) }) == "Movies")
    for index in catalog.indices {
      var damaged = catalog
      damaged[index] ^= 0xff
      _ = MessageCatalog.translation(of: "Videos", in: damaged)
      _ = MessageCatalog.translation(of: "Videos", in: Array(catalog[..<index]))
    }
    let swapped = stride(from: 0, to: 28 + 32, by: 4).flatMap { catalog[$0..<$0 + 4].reversed() }
    #expect(MessageCatalog.translation(of: "Videos", in: swapped + catalog[60...]) == "Pelliculae")
  }

  /// A catalog as msgfmt writes it.
  private static func catalog(_ texts: [String: String]) -> [UInt8] {
    let entries = texts.sorted { $0.key < $1.key }
    func word(_ number: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } }
    let start = 28
    var bytes = [0x9504_12de, 0, entries.count, start, start + 8 * entries.count, 0, 0].flatMap(word)
    var texts: [UInt8] = []
    let textStart = start + 16 * entries.count
    for text in entries.map(\.key) + entries.map(\.value) {
      bytes += word(text.utf8.count) + word(textStart + texts.count)
      texts += Array(text.utf8) + [0]
    }
    return bytes + texts
  }

  private static func info(_ entries: String) -> String {
    """
    <?xml version="1.0"?><plist version="1.0"><dict>\(entries)</dict></plist>
    """
  }

  @Test func appsOfAMacHaveNamesInTheirLanguages() throws {
    let localized = "<key>LSHasLocalizedDisplayName</key><true/>"
    let own = "<key>CFBundleDisplayName</key><string>Notes</string>"
    let table = "\"CFBundleDisplayName\" = \"Notizen\";"
    try make([
      "Notes.app/Contents/Info.plist": Self.info(localized + own),
      "Notes.app/Contents/Resources/de.lproj/InfoPlist.strings": table,
      "Notes.app/Contents/Resources/French.lproj/InfoPlist.strings": "CFBundleName = Cahiers;",
      "Renamed.app/Contents/Info.plist": Self.info(localized + own),
      "Renamed.app/Contents/Resources/de.lproj/InfoPlist.strings": table,
      "Silent.app/Contents/Info.plist": Self.info("<key>CFBundleName</key><string>Silent</string>"),
      "Silent.app/Contents/Resources/de.lproj/InfoPlist.strings": table,
      "Broken.app/Contents/Info.plist": "<plist",
      "Folder.app/x": "",
    ])
    #expect(try name("Notes.app", "de_AT") == "Notizen" && name("Notes.app", "fr") == "Cahiers")
    #expect(try name("Notes.app", "it") == "Notes")
    #expect(try name("Renamed.app", "de") == "Renamed", "somebody has given it that name")
    #expect(try name("Silent.app", "de") == "Silent", "it does not say that it has others")
    #expect(try name("Broken.app", "de") == "Broken.app" && name("Folder.app", "de") == "Folder.app")
  }

  @Test func appsOfAPhoneAreCalledWhatTheyCallThemselves() throws {
    let own =
      "<key>CFBundleDisplayName</key><string>Notes</string>"
      + "<key>CFBundleDevelopmentRegion</key><string>en</string>"
    try make([
      "X1.app/Info.plist": Self.info(own),
      "X1.app/de.lproj/InfoPlist.strings": "CFBundleDisplayName=Notizen;",
      "X1.app/fr.lproj/InfoPlist.strings": "CFBundleDisplayName = \"\";",
      "X2.app/Info.plist": Self.info("<key>CFBundleIdentifier</key><string>x</string>"),
    ])
    #expect(try name("X1.app", "de") == "Notizen" && name("X1.app", "en") == "Notes")
    #expect(try name("X1.app", "fr") == "Notes", "no name is empty")
    #expect(try name("X2.app", "de") == "X2")
  }

  @Test func extensionsOfDocumentsAreHidden() throws {
    try make(["a.txt": "", "v1.2": "", ".bashrc": "", "b.tar.gz": "", "Mr. Smith": "", "my.folder/x": ""])
    let all = ["a.txt", "v1.2", ".bashrc", "b.tar.gz", "Mr. Smith", "my.folder"]
    #expect(
      try all.map { try name($0, "de") } == ["a", "v1.2", ".bashrc", "b.tar.gz", "Mr. Smith", "my.folder"])
    #expect(try all.map { try name($0, "de", hides: false) } == all)
  }

  /// Attacks: a program is not shown as a picture, nor an app as nothing.
  @Test func whatRemainsIsNoOtherKindOfFile() throws {
    func info(_ name: String) -> String {
      Self.info("<key>CFBundleDisplayName</key><string>\(name)</string>")
    }
    let struck = "a" + String(repeating: "\u{336}", count: 200)
    let apps: [(String, String)] = [
      ("blank", "  "), ("filled", "\u{3164}\u{2800}\u{200d}"), ("struck", struck),
      ("joined", "a\u{200d}.jp\u{200d}g"),
      ("picture", "Photo.png"),
    ]
    for (name, shown) in apps {
      try make(["\(name).app/Info.plist": info(shown)])
      let found = try self.name("\(name).app", "en")
      #expect(found == (["blank", "filled", "struck"].contains(name) ? name : "\(name).app"), "\(name)")
    }
    try make([
      "photo.jpg.command": "", "invoice.pdf.sh": "", "photo.jpg": "", "a.jpg .sh": "", "  .txt": "",
      "Photo.png.app/Contents/Info.plist": Self.info(""), "  .app/Contents/Info.plist": Self.info(""),
      "v1.2.txt": "", "Zoe\u{308}.txt": "",
    ])
    for name in ["photo.jpg.command", "invoice.pdf.sh", "a.jpg .sh", "  .txt", "Photo.png.app", "  .app"] {
      #expect(try self.name(name, "en") == name)
    }
    let plain = try ["photo.jpg", "v1.2.txt", "Zoe\u{308}.txt"].map { try name($0, "en") }
    #expect(plain == ["photo", "v1.2", "Zoë"])
    // Who has hidden it by the Finder's bit has not hidden it, either.
    var bits = [UInt8](repeating: 0, count: FinderInfo.size)
    bits[9] = 0x10
    let hidden = DisplayNames(try #require(Languages("en")), catalog: { _ in nil })
    func shown(_ name: String) -> String {
      hidden.name(
        of: DisplayNames.Named(name, FinderInfo(bits), isDocument: true, hidesExtension: false, contents: nil)
      )
    }
    #expect(shown("photo.jpg.command") == "photo.jpg.command" && shown("photo.jpg") == "photo")
  }

  /// Attacks: what others put into directories is read, and nothing else.
  @Test func nothingThatIsReadLeadsAstray() throws {
    let long = String(repeating: "x", count: 50_000)
    try make([
      "Long.localized/.localized/de.strings": "Long = \(long);", "Huge.app/Info.plist": "",
      "Links.localized/.localized/x": "", "Pipe.localized/.localized/x": "", "secret": "Links = secret;",
    ])
    #expect(try name("Long.localized", "de").count == 255)
    let links = temporary.appending("Links.localized/.localized")
    #expect(symlink("../../secret", links + "/de.strings") == 0)
    #expect(try name("Links.localized", "de") == "Links")
    #expect(mkfifo(temporary.appending("Pipe.localized/.localized/de.strings"), 0o644) == 0)
    #expect(try name("Pipe.localized", "de") == "Pipe")
    #expect(truncate(temporary.appending("Huge.app/Info.plist"), 64 << 20) == 0)
    #expect(try name("Huge.app", "de") == "Huge.app")
    for word in ["../de", "de/x", "", ".", "d", "de-" + long, "de\u{0}", "🇩🇪"] {
      #expect(Languages(word) == nil)
    }
  }
}
