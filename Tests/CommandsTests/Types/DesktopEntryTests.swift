// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// What is written for a desktop, of apps that may say anything.
@Suite(.enabled(if: Program.isRoot, "the store is root's")) struct DesktopEntryTests {
  private let mounted: MountedStore
  private let registry: Registry
  private let data: String

  init() throws {
    mounted = try MountedStore(owner: nil)
    let store = try Store(opening: mounted.store, .inspect)
    registry = try Registry(state: store.state, path: mounted.store + "/state")
    data = mounted.temporary.appending("data")
  }

  @discardableResult
  private func add(_ identifier: String, name: String, _ declarations: AppDeclarations) throws -> InstalledApp
  {
    let app = InstalledApp(
      identifier: try #require(AppIdentifier(identifier)), user: nil, name: name, executable: "x",
      version: "1",
      shortVersion: "1", team: "TEAM", path: "Applications/\(identifier).app", seal: Array(0..<32),
      installed: 1)
    try registry.add(app)
    try registry.note(declarations, of: app)
    return app
  }

  private func write(_ words: [String] = ["handlers", "--desktop"]) throws -> ProgramResult {
    try Program.run(
      [Program.insula] + words + ["--store", mounted.store],
      environment: ["HOME": mounted.temporary.path, "XDG_DATA_HOME": data, "XDG_RUNTIME_DIR": ""])
  }

  private func entry(_ identifier: String) -> [String] {
    (mounted.temporary.text(of: "data/applications/insula-\(identifier).desktop") ?? "")
      .split(separator: "\n").map(String.init)
  }

  private func claim(_ types: [String] = [], extensions: [String] = []) -> AppDeclarations.Claim {
    .init(name: "", rank: .default, isPackage: false, types: types, extensions: extensions)
  }

  @Test func hostileNamesStayNames() throws {
    // A mark behind it makes another letter of it, but no other byte.
    let kind = "<b>\"&\u{202e}<\u{200d}&\u{301}"
    try add(
      "org.example.evil", name: " Evil\\n\nExec=rm -rf ~\n[Desktop Action x]\u{202e}",
      AppDeclarations(
        exported: [
          DeclaredType(
            "org.example.evil", parents: ["public.data"], extensions: ["e<v>&il", "a*"], kind: kind)
        ],
        claims: [claim(["org.example.evil"])]))
    let result = try write()
    #expect(result.status == 0, "\(result.errors)")
    let lines = entry("org.example.evil")
    #expect(lines.filter { $0.hasPrefix("Exec=") || $0.hasPrefix("[") }.count == 2, "\(lines)")
    #expect(lines.contains("Name=\\sEvil\\\\n?Exec=rm -rf ~?[Desktop Action x]?"), "\(lines)")
    #expect(lines.contains("MimeType=application/x-insula-org.example.evil;"))
    let xml = try #require(mounted.temporary.text(of: "data/mime/packages/insula.xml"))
    #expect(xml.contains("<glob pattern=\"*.e&lt;v&gt;&amp;il\"/>") && !xml.contains("*.a*"), "\(xml)")
    #expect(xml.contains("<comment>&lt;b&gt;&quot;&amp;?&lt;\u{200d}&amp;\u{301}</comment>"), "\(xml)")
    let parsed = try Program.run(
      [
        "python3", "-c", "import sys, xml.dom.minidom as m; m.parse(sys.argv[1])",
        "\(data)/mime/packages/insula.xml",
      ])
    #expect(parsed.status == 0, "\(parsed.errors)")
  }

  @Test func marksHideNoBackslash() throws {
    try add("org.example.a", name: " \u{301}\\\u{301}n", AppDeclarations(claims: [claim(["public.png"])]))
    let place = mounted.temporary.appending("a\u{201c}%\u{301}$\u{301}")
    _ = try Program.run(["mv", mounted.store, place])
    let result = try Program.run(
      [Program.insula, "handlers", "--desktop", "--store", place],
      environment: ["HOME": mounted.temporary.path, "XDG_DATA_HOME": data, "XDG_RUNTIME_DIR": ""])
    #expect(result.status == 0, "\(result.errors)")
    let lines = entry("org.example.a").map { Array($0.utf8) }
    #expect(lines.contains(Array("Name=\\s\u{301}\\\\\u{301}n".utf8)), "\(entry("org.example.a"))")
    let quoted = Array("%%\u{301}\\\\$\u{301}\"".utf8)
    let end = " --with org.example.a -- %F".utf8
    #expect(
      lines.contains { $0.starts(with: "Exec=".utf8) && $0.suffix(quoted.count + end.count) == quoted + end })
    _ = try Program.run(["mv", place, mounted.store])
  }

  @Test func aStoreWithABlankIsQuoted() throws {
    try add("org.example.a", name: "A", AppDeclarations(claims: [claim(["public.png"])]))
    let place = mounted.temporary.appending("a $b\"%c")
    _ = try Program.run(["mv", mounted.store, place])
    let result = try Program.run(
      [Program.insula, "handlers", "--desktop", "--store", place],
      environment: ["HOME": mounted.temporary.path, "XDG_DATA_HOME": data, "XDG_RUNTIME_DIR": ""])
    #expect(result.status == 0, "\(result.errors)")
    let exec = entry("org.example.a").first { $0.hasPrefix("Exec=") } ?? ""
    #expect(exec.contains("/a \\\\$b\\\\\"%%c\" --with org.example.a -- %F"), "\(exec)")
    if try Program.run(["sh", "-c", "command -v desktop-file-validate"]).status == 0 {
      let file = "\(data)/applications/insula-org.example.a.desktop"
      let checked = try Program.run(["desktop-file-validate", file])
      #expect(checked.status == 0, "\(checked.output)\(checked.errors)")
    }
    _ = try Program.run(["mv", place, mounted.store])
  }

  /// Each MIME type is one app's, and what is nobody's any more goes.
  @Test func entriesFollowTheApps() throws {
    try add("org.example.a", name: "A", AppDeclarations(claims: [claim(["public.png", "public.jpeg"])]))
    let second = try add(
      "org.example.b", name: "B",
      AppDeclarations(claims: [claim(["public.png"]), claim(extensions: ["xyzzy"])]))
    try mounted.temporary.makeDirectory("data")
    try mounted.temporary.makeDirectory("data/applications")
    try mounted.temporary.write("[Desktop Entry]\nName=Mine\n", to: "data/applications/insula-mine.desktop")
    #expect(try write().status == 0)
    #expect(entry("org.example.a").contains("MimeType=image/jpeg;image/png;"))
    let xyzzy = "application/x-insula-\(DynamicType.identifier(forExtension: "xyzzy"));"
    #expect(entry("org.example.b").contains("MimeType=\(xyzzy)"), "\(entry("org.example.b"))")
    #expect(try write(["handlers", ".png", "--set", "org.example.b"]).status == 0)
    #expect(entry("org.example.a").contains("MimeType=image/jpeg;"))
    #expect(entry("org.example.b").contains("MimeType=\(xyzzy)image/png;"))
    _ = try registry.remove(second.identifier, of: nil, keepingData: true)
    #expect(try write().status == 0)
    let names = try mounted.temporary.names(in: "data/applications").filter { $0.hasSuffix(".desktop") }
    #expect(names == ["insula-mine.desktop", "insula-org.example.a.desktop"])
    #expect(entry("org.example.a").contains("MimeType=image/jpeg;image/png;"))
  }

  /// Attack: a type lists the MIME types of other files, of folders and of links.
  @Test func nobodyTakesOthersMIMETypes() throws {
    let others = [
      "text/plain", "TEXT/html", "application/pdf", "image/png", "inode/directory", "x-scheme-handler/https",
      "x-content/video-dvd", "application/octet-stream", "application/x-executable",
      "application/x-sharedlib",
      "application/x-insula-org.example.other", "application/x-krita",
    ]
    try add(
      "org.example.evil", name: "Evil",
      AppDeclarations(
        exported: [
          DeclaredType(
            "org.example.evil", parents: ["public.data"], extensions: ["evildoc", "txt"], mimeTypes: others,
            kind: "E"),
          DeclaredType(
            "org.example.own", parents: ["public.data"], extensions: ["owndoc"],
            mimeTypes: ["application/x-own-evil"]),
        ], claims: [claim(["org.example.evil", "org.example.own"])]))
    try add("org.example.good", name: "Good", AppDeclarations(claims: [claim(["public.plain-text"])]))
    #expect(try write().status == 0)
    let line = entry("org.example.evil").first { $0.hasPrefix("MimeType=") } ?? ""
    #expect(line == "MimeType=application/x-insula-org.example.evil;application/x-own-evil;")
    #expect(
      entry("org.example.good").first { $0.hasPrefix("MimeType=") }?.split(separator: "=").last?
        .split(separator: ";").contains("text/plain") == true)
    // Nor is one that the machine has said anew.
    let xml = try #require(mounted.temporary.text(of: "data/mime/packages/insula.xml"))
    for name in others where name != "application/x-insula-org.example.evil" {
      #expect(!xml.includes("<mime-type type=\"\(name.lowercased())\""), "\(xml)")
    }
    #expect(xml.includes("<mime-type type=\"application/x-insula-org.example.evil\">"))
  }

  /// Attack: root comes with a user's XDG_DATA_HOME, as by su, and the user has put links there.
  @Test func rootWritesThroughNobodysLinks() throws {
    let nobody: UInt32 = 65534
    try add("org.example.a", name: "A", AppDeclarations(claims: [claim(["public.png"])]))
    try mounted.temporary.makeDirectory("victim", mode: 0o700)
    try mounted.temporary.write("precious", to: "victim/file")
    let victim = mounted.temporary.appending("victim")
    let made = try Program.run([
      "sh", "-c",
      """
      cd "$0" && mkdir -p u/mime/packages u/applications links/mime && touch u/mime/packages/insula.xml &&
        ln -s "$1/file" u/mime/globs2.new && ln -s "$1" links/applications &&
        ln -s "$1" links/mime/packages &&
        ln -s "$1" link && chown -hR \(nobody) u links link
      """, mounted.temporary.path, victim,
    ])
    try #require(made.status == 0, "\(made.errors)")
    for place in ["u", "links", "u/more/new"] {
      let result = try Program.run(
        [Program.insula, "handlers", "--desktop", "--store", mounted.store],
        environment: [
          "HOME": mounted.temporary.path, "XDG_DATA_HOME": mounted.temporary.appending(place),
          "XDG_RUNTIME_DIR": "",
        ])
      #expect(
        result.ending == .notPermitted && result.errors.includes("set HOME and XDG_DATA_HOME to your own"),
        "\(result)")
    }
    // What brings entries up to date leaves others' alone, and says nothing of it.
    let chosen = try Program.run(
      [Program.insula, "handlers", ".png", "--set", "org.example.a", "--store", mounted.store],
      environment: [
        "HOME": mounted.temporary.path, "XDG_DATA_HOME": mounted.temporary.appending("u"),
        "XDG_RUNTIME_DIR": "",
      ])
    #expect(chosen.status == 0 && chosen.errors.isEmpty, "\(chosen.errors)")
    #expect(mounted.temporary.text(of: "victim/file") == "precious")
    #expect(try mounted.temporary.names(in: "victim") == ["file"])
    #expect(try mounted.temporary.names(in: "u/applications").isEmpty)
    #expect(try !mounted.temporary.names(in: "u").contains("more"))
  }

  /// Only who has asked for entries once gets them from then on.
  @Test func nothingIsWrittenUnasked() throws {
    try add("org.example.a", name: "A", AppDeclarations(claims: [claim(["public.png"])]))
    #expect(try write(["handlers", ".png", "--set", "org.example.a"]).status == 0)
    #expect(try !mounted.temporary.names().contains("data"))
  }
}
