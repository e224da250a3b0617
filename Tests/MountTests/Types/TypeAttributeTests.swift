// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// What files are, as the mount says it in attributes.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct TypeAttributeTests {
  private static let sketches = """
    <key>UTExportedTypeDeclarations</key><array><dict>
    <key>UTTypeIdentifier</key><string>org.example.sketch</string>
    <key>UTTypeDescription</key><string>sketch</string>
    <key>UTTypeConformsTo</key><array><string>public.image</string></array>
    <key>UTTypeTagSpecification</key><dict><key>public.filename-extension</key>
    <array><string>sketch</string></array></dict></dict></array>
    """

  private let open: OpenFixture
  private var fixture: RunFixture { open.run }
  private var place: String { open.documents }

  init() throws { open = try OpenFixture() }

  /// The three attributes of something, in one line.
  private func said(of name: String) throws -> String {
    let line =
      "for a in type kind package; do getfattr -h --only-values -n system.insula.$a \"$0\"; echo; done"
    let result = try Program.run(["sh", "-c", line, name], in: place)
    return result.status == 0 ? result.output.split(separator: "\n").joined(separator: ", ") : result.errors
  }

  @Test func theyFollowTheName() throws {
    let made = try fixture.shell(
      """
      cd "$POINT/Users/\(fixture.user.name)/Documents" && touch a.md b.unknown run && chmod +x run &&
        mkdir Notes.rtfd plain && ln -s a.md link && mkfifo pipe
      """)
    try #require(made.status == 0, "\(made.errors)")
    #expect(try said(of: "a.md") == "net.daringfireball.markdown, Markdown document, 0")
    #expect(try said(of: "run") == "public.unix-executable, program, 0")
    #expect(try said(of: "Notes.rtfd") == "com.apple.rtfd, RTFD document, 1")
    #expect(try said(of: "plain") == "public.folder, folder, 0")
    #expect(try said(of: "link") == "public.symlink, symbolic link, 0")
    #expect(try said(of: "pipe") == "public.item, item, 0")
    #expect(try said(of: "b.unknown").hasPrefix("dyn.a"))
    #expect(try said(of: fixture.mounted.point).hasPrefix("public.folder"))
    _ = try Program.run(["mv", "a.md", "a.png"], in: place)
    #expect(try said(of: "a.png") == "public.png, PNG image, 0")
    // The Finder's bundle bit.
    let info = "0x" + String(repeating: "00", count: 8) + "2000" + String(repeating: "00", count: 22)
    _ = try Program.run(["setfattr", "-n", "user.com.apple.FinderInfo", "-v", info, "plain"], in: place)
    #expect(try said(of: "plain") == "com.apple.package, package, 1")
  }

  /// A directory whose name says nothing is what its Info.plist makes it, for those who may read that.
  @Test func anInfoPlistSaysWhatADirectoryIs() throws {
    let made = try fixture.shell(
      """
      cd "$POINT/Users/\(fixture.user.name)/Documents" || exit
      plist() {
        mkdir -p "$1"; echo "<plist version=\\"1.0\\"><dict><key>CFBundlePackageType</key>" \
          "<string>$2</string></dict></plist>" >"$1/Info.plist"
      }
      plist App/Contents APPL; plist Frame/Resources FMWK; plist Bundle BNDL; plist Other ODD
      plist Named.rtfd APPL; plist Closed APPL; chmod 600 Closed/Info.plist; chmod 711 .
      mkdir Link Pipe Big; ln -s ../Bundle/Info.plist Link/Info.plist; mkfifo Pipe/Info.plist
      head -c 1100000 /dev/zero >Big/Info.plist
      """)
    try #require(made.status == 0, "\(made.errors)")
    for (name, expected) in [
      ("App", "com.apple.application-bundle, application, 1"), ("Frame", "com.apple.framework, framework, 0"),
      ("Bundle", "com.apple.generic-bundle, bundle, 1"), ("Other", "public.folder, folder, 0"),
      ("Named.rtfd", "com.apple.rtfd, RTFD document, 1"), ("Link", "public.folder, folder, 0"),
      ("Pipe", "public.folder, folder, 0"), ("Big", "public.folder, folder, 0"),
    ] {
      #expect(try said(of: name) == expected, "\(name)")
    }
    // What another user may not read says nothing to them.
    let stranger = try TemporaryAccount()
    let asked = """
      cd '\(place)'; for d in Bundle Closed; do getfattr --only-values -n system.insula.type $d; echo; done
      """
    let theirs = try fixture.shell(asked, as: stranger.account)
    #expect(theirs.output == "com.apple.generic-bundle\npublic.folder\n", "\(theirs)")
  }

  @Test func theyAreOnlyToBeAskedFor() throws {
    _ = try Program.run(["touch", "a.md"], in: place)
    let listed = try Program.run(["getfattr", "-d", "-m", "-", "a.md"], in: place)
    #expect(!listed.output.contains("insula"), "\(listed.output)")
    for line in ["setfattr -n system.insula.type -v x a.md", "setfattr -x system.insula.type a.md"] {
      let result = try Program.run(["sh", "-c", line], in: place)
      #expect(result.ending == .failed && result.errors.contains("not supported"), "\(result)")
    }
    #expect(try Program.run(["getfattr", "-n", "system.insula.typo", "a.md"], in: place).ending == .failed)
    // One byte too little room for the value is ERANGE, and none asks for the length.
    let script = """
      import os, ctypes, errno
      libc = ctypes.CDLL(None, use_errno=True)
      value = ctypes.create_string_buffer(9)
      call = lambda size: libc.getxattr(b"a.md", b"system.insula.package", value, size)
      print(call(0), call(1))
      libc.getxattr(b"a.md", b"system.insula.type", value, 9)
      print(errno.errorcode[ctypes.get_errno()])
      """
    #expect(try Program.run(["python3", "-c", script], in: place).output == "1 1\nERANGE\n")
  }

  @Test func appsDeclareTypesWhileTheyAreInstalled() throws {
    _ = try Program.run(["sh", "-c", "touch a.sketch; mkdir a.crate; touch a.crate/inside"], in: place)
    #expect(try said(of: "a.sketch").hasPrefix("dyn."))
    try open.install("Sketcher", rank: "Default", extensions: ["crate"], isPackage: true, info: Self.sketches)
    #expect(try said(of: "a.sketch") == "org.example.sketch, sketch, 0")
    #expect(try said(of: "a.crate") == "com.apple.package, package, 1")
    // For a person it is one document, and no folder to look into.
    let shown = try fixture.shell(
      "cd '\(place)'; \"$INSULA\" ls --finder -R; \"$INSULA\" name a.crate")
    #expect(shown.status == 0 && !shown.output.includes("inside"), "\(shown)")
    #expect(shown.output.hasSuffix("a\n") && !shown.output.includes("a.crate"), "\(shown)")
    #expect(
      try fixture.mounted.run("uninstall", "org.example.sketcher", "--store", fixture.mounted.store).status
        == 0)
    #expect(try said(of: "a.sketch").hasPrefix("dyn."))
    let plain = try fixture.shell("cd '\(place)'; \"$INSULA\" ls --finder -R")
    #expect(plain.output.includes("inside"), "\(plain)")
  }

  /// An app is not to learn which other apps its user has: it knows the base system's types, and its own.
  @Test func anAppLearnsOfNoOthers() throws {
    try open.install("Diary", rank: "Default", extensions: ["crate"], isPackage: true, info: Self.sketches)
    let own = Self.sketches.split(separator: "sketch").joined(separator: "sheet")
    try open.install("Curious", rank: "Default", info: own)
    let asked = """
      APP=org.example.curious; run sh -c 'cd Documents; touch a.sketch b.sheet c.png; mkdir d.crate
      for a in type kind package name; do
        for f in a.sketch b.sheet c.png d.crate; do getfattr --only-values -n system.insula.$a $f; echo; done
      done'
      """
    let said = try fixture.shell(asked).output.split(separator: "\n").map(String.init)
    try #require(said.count == 16, "\(said)")
    #expect(said[0].hasPrefix("dyn."))
    #expect(Array(said[1...3]) == ["org.example.sheet", "public.png", "public.folder"])
    #expect(Array(said[4...7]) == ["SKETCH document", "sheet", "PNG image", "folder"])
    #expect(said[11] == "0" && said[15] == "d.crate", "\(said)")
    // The user outside knows all of them.
    _ = try Program.run(["touch", "a.sketch"], in: place)
    #expect(try self.said(of: "a.sketch").hasPrefix("org.example.sketch"))
  }

  /// What a user has installed for themselves says nothing of others' files.
  @Test func othersAppsDeclareNothing() throws {
    try fixture.mounted.temporary.makeDirectory("own", mode: 0o777)
    let own = fixture.mounted.temporary.appending("own")
    try fixture.succeed("new-app", "Sketcher", own)
    let place = "own/Sketcher.app/Contents/Info.plist"
    let text = try #require(fixture.mounted.temporary.text(of: place)).split(separator: "</dict>\n</plist>")
    try fixture.mounted.temporary.write(text[0] + Self.sketches + "</dict>\n</plist>", to: place)
    try fixture.succeed("sign", "\(own)/Sketcher.app", "--identity", "tester")
    _ = try Program.run(["chmod", "-R", "a+rX", own])
    let installed = try fixture.shell("insula install '\(own)/Sketcher.app'")
    try #require(installed.status == 0, "\(installed.errors)")
    let asked = """
      cd '\(self.place)'; touch a.sketch; getfattr --only-values -n system.insula.type a.sketch
      """
    #expect(try fixture.shell(asked).output == "org.example.sketch")
    #expect(try fixture.shell(asked, as: RunFixture.root).output.hasPrefix("dyn."))
    // An app that wants to be asked about, and is not this user's.
    let handlers = try fixture.shell("insula types org.example.sketch", as: RunFixture.root)
    #expect(handlers.status == 1 && handlers.errors.contains("there is no type 'org.example.sketch'"))
  }
}
