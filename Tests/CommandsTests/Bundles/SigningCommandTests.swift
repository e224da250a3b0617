// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import CLinux
@testable internal import Commands
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing

/// Apps, identities, roots and signatures, from the command line.
@Suite struct SigningCommandTests {
  private let shell: Shell

  init() throws { shell = try Shell() }

  private func mode(_ name: String) -> UInt32 {
    var status = FileStatus()
    return lstat(shell.temporary.appending(name), &status) == 0 ? UInt32(status.st_mode) & 0o7777 : 0
  }

  private func json(_ text: String) throws -> [[String: Any]] {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [[String: Any]])
  }

  // MARK: Apps

  @Test(arguments: [false, true])
  func newAppWorksAndCanBeSigned(isFlat: Bool) throws {
    let made = shell.run(["new-app", "My Note"] + (isFlat ? ["--flat"] : []))
    #expect(made.code == .ok && made.output.hasPrefix("Created My Note.app (org.example.my-note) and "))
    #expect(made.output.contains("insula sign 'My Note.app' --entitlements 'My Note.entitlements'"))
    #expect(
      try shell.temporary.names(in: "My Note.app")
        == (isFlat ? ["Info.plist", "My Note", "PkgInfo", "Welcome.txt"] : ["Contents"]))
    let program = shell.temporary.appending("My Note.app/" + (isFlat ? "My Note" : "Contents/MacOS/My Note"))
    // The home of an app is its container.
    try shell.temporary.makeDirectory("Data")
    let home = shell.temporary.appending("Data")
    let early = try Program.run([program], environment: ["HOME": home])
    #expect(early.status == 1 && early.errors.contains("There is no \(home)/Documents"))
    try shell.temporary.makeDirectory("Data/Documents")
    let first = try Program.run([program], environment: ["HOME": home])
    #expect(first.status == 0 && first.output.contains("Hello from My Note."), "\(first.errors)")
    #expect(first.output.contains("My container: \(home)\n"))
    #expect(first.output.contains("My bundle:    \(shell.temporary.appending("My Note.app"))\n"))
    #expect(try Program.run([program], environment: ["HOME": home]).output.contains("Started 2 times"))

    #expect(shell.run("identity", "new", "Anna").code == .ok)
    #expect(shell.run("trust", "add", "-").code == .failed)
    #expect(
      shell.run(["trust", "add", "-"], input: shell.run("identity", "export", "Anna").output).code == .ok)
    #expect(shell.run("sign", "My Note.app", "--entitlements", "My Note.entitlements").code == .ok)
    let report = try #require(try json(shell.run("verify", "--json", "My Note.app").output).first)
    #expect(report["good"] as? Bool == true && report["version"] as? String == "1")
    #expect(
      report["entitlements"] as? [String] == [
        "com.apple.security.app-sandbox", "com.apple.security.application-groups",
      ])
  }

  @Test func newAppOverwritesNothing() throws {
    try shell.temporary.write("mine", to: "Note.entitlements")
    let result = shell.run("new-app", "Note")
    #expect(result.code == .failed && result.errors.contains("nothing was changed"))
    #expect(try shell.temporary.names() == ["Note.entitlements"])
    #expect(shell.temporary.text(of: "Note.entitlements") == "mine")
    unlink(shell.temporary.appending("Note.entitlements"))
    try shell.temporary.makeDirectory("Note.app")
    #expect(shell.run("new-app", "Note").code == .failed)
    #expect(try shell.temporary.names() == ["Note.app"])
    #expect(try shell.temporary.names(in: "Note.app") == [])
    // Not through a link either.
    symlink("elsewhere", shell.temporary.appending("Other.app"))
    #expect(shell.run("new-app", "Other").code == .failed)
    #expect(try shell.temporary.names() == ["Note.app", "Other.app"])
  }

  @Test(arguments: [
    ["a/b"], [".hidden"], ["Note", "--identifier", "a/b"], ["Note", "--identifier", "a..b"], ["\u{1}"],
    ["\u{65e5}\u{8a18}"], [String(repeating: "a", count: 65)],
  ])
  func newAppWantsNamesThatCanBe(words: [String]) throws {
    #expect(shell.run(["new-app"] + words).code == .usage)
    #expect(try shell.temporary.names() == [])
  }

  // MARK: Identities

  @Test func identitiesAreTheirOwnersAlone() throws {
    #expect(shell.run("identity", "list").output.hasPrefix("There are no identities yet"))
    #expect(try shell.temporary.names() == [])
    #expect(shell.run("identity", "new", "Anna").code == .ok)
    for place in [".config", ".config/insula", ".config/insula/identities"] { #expect(mode(place) == 0o700) }
    for file in ["Anna.pem", "authority.pem"] { #expect(mode(".config/insula/identities/" + file) == 0o600) }
    #expect(shell.run("identity", "new", "Anna").errors.contains("the identity 'Anna' already exists"))
    #expect(shell.run("identity", "new", "../x").code == .usage)
    #expect(shell.run("identity", "new", "Bert", "--team", "a b").code == .usage)
    #expect(shell.run("identity", "new", "Bert", "--team", "TEAM1").code == .ok)
    #expect(shell.run("identity", "new", "Carl").code == .ok)

    let list = try json(shell.run("identity", "list", "--json").output)
    #expect(list.map { $0["name"] as? String } == ["Anna", "Bert", "Carl"])
    let teams = list.compactMap { $0["team"] as? String }
    // Without a name for it, the team is one's own: the same for all, and ten characters.
    #expect(teams.count == 3 && teams[0] == teams[2] && teams[0].count == 10 && teams[1] == "TEAM1")
    #expect(Set(list.compactMap { $0["rootFingerprint"] as? String }).count == 1)

    chmod(shell.temporary.appending(".config/insula/identities/Anna.pem"), 0o644)
    let open = shell.run("identity", "list")
    #expect(open.code == .problemsFound && open.output.contains("other users can read"))
    chmod(shell.temporary.appending(".config/insula/identities"), 0o777)
    #expect(shell.run("identity", "list").code == .notPermitted)
  }

  @Test func configurationIsWhereXDGHasIt() throws {
    let place = shell.temporary.appending("elsewhere")
    let environment = ["XDG_CONFIG_HOME": place, "HOME": shell.temporary.path]
    let made = try Program.run([Program.insula, "identity", "new", "Anna"], environment: environment)
    #expect(made.status == 0, "\(made.errors)")
    #expect(try shell.temporary.names(in: "elsewhere/insula/identities") == ["Anna.pem", "authority.pem"])
    #expect(try !shell.temporary.names().contains(".config"))
  }

  @Test func identitiesTravelUnderAPassphrase() throws {
    #expect(shell.run("identity", "new", "Anna").code == .ok)
    try shell.temporary.write("a passphrase\nand more\n", to: "secret")
    let exported = shell.run("identity", "export", "Anna", "--key", "anna.p12", "--passphrase-file", "secret")
    #expect(exported.code == .ok && mode("anna.p12") == 0o600)
    let again = shell.run("identity", "export", "Anna", "--key", "anna.p12", "--passphrase-file", "secret")
    #expect(again.code == .failed && again.errors.contains("already exists"))
    let opened = try Program.run(
      ["openssl", "pkcs12", "-in", "anna.p12", "-noenc", "-passin", "pass:a passphrase"],
      in: shell.temporary.path)
    #expect(opened.status == 0 && opened.output.contains("BEGIN PRIVATE KEY"))

    let other = try Shell()
    for name in ["anna.p12", "secret"] {
      #expect(rename(shell.temporary.appending(name), other.temporary.appending(name)) == 0)
    }
    let wrong = other.run(
      ["identity", "import", "Anna", "anna.p12", "--passphrase-file", "-"], input: "wrong\n")
    #expect(wrong.code == .failed && wrong.errors.contains("Anna"))
    #expect(other.run("identity", "import", "Anna", "anna.p12", "--passphrase-file", "secret").code == .ok)
    #expect(
      other.run("identity", "import", "Anna", "anna.p12", "--passphrase-file", "secret").code == .failed)
    #expect(
      other.run("identity", "export", "Anna", "--chain").output
        == shell.run("identity", "export", "Anna", "--chain").output)
  }

  @Test(arguments: [
    ["export", "Anna", "--key", "file"], ["export", "Anna", "--passphrase-file", "file"],
    ["export", "Anna", "--key", "a", "--passphrase-file", "b", "--certificate", "c"],
    ["import", "Anna", "file"],
  ])
  func optionsThatBelongTogether(words: [String]) {
    #expect(shell.run(["identity"] + words).code == .usage)
  }

  // MARK: Roots

  @Test func rootsAreTrustedAndTrustedNoMore() throws {
    #expect(shell.run("identity", "new", "Anna").code == .ok)
    #expect(shell.run("trust", "list").output.hasPrefix("There are no trusted roots yet"))
    #expect(shell.run("identity", "export", "Anna", "--certificate", "root.pem").code == .ok)
    #expect(shell.run("trust", "add", "root.pem").code == .ok)
    #expect(shell.run("trust", "add", "root.pem").errors.contains("already trusted"))
    let roots = try json(shell.run("trust", "list", "--json").output)
    let fingerprint = try #require(roots.first?["fingerprint"] as? String)
    #expect(roots.count == 1 && roots.first?["isValid"] as? Bool == true)
    #expect(shell.run("trust", "list").output.contains(fingerprint))
    // A key has no place among certificates, and a signer's is no root.
    let key = shell.temporary.appending(".config/insula/identities/Anna.pem")
    #expect(shell.run("trust", "add", key).errors.contains("contains a private key"))
    let chain = shell.run("identity", "export", "Anna", "--chain").output
    #expect(shell.run(["trust", "add", "-"], input: chain).errors.contains("exactly one certificate"))
    #expect(shell.run("trust", "remove", String(fingerprint.prefix(7))).code == .failed)
    #expect(shell.run("trust", "remove", String(fingerprint.prefix(8)).uppercased()).code == .ok)
    #expect(shell.run("trust", "list", "--json").output == "[\n\n]\n")
    #expect(shell.run("trust", "remove", fingerprint).code == .failed)
    chmod(shell.temporary.appending(".config/insula/trust"), 0o777)
    #expect(shell.run("trust", "list").code == .notPermitted)
  }

  /// A store trusts whom its owner trusts for it, and not whom he trusts himself.
  @Test func storesHaveRootsOfTheirOwn() throws {
    let app = try SignedApp()
    #expect(app.shell.run("init", "store").code == .ok)
    #expect(app.verify("--store", "store").code == .found(BundleProblem(.untrusted)))
    #expect(app.verify("--store", "store").errors.contains("insula trust add FILE --store store"))
    #expect(
      app.shell.run("trust", "list", "--store", "store").output.hasPrefix("There are no trusted roots yet"))
    // Looking has made nothing.
    #expect(try app.shell.temporary.names(in: "store/keys") == [])
    #expect(app.shell.run("trust", "remove", "12345678", "--store", "store").code == .failed)
    #expect(app.shell.run("trust", "add", "root.pem", "--store", "store").code == .ok)
    #expect(try app.shell.temporary.names(in: "store/keys/trust").count == 1)
    #expect(app.verify("--store", "store").code == .ok)
    #expect(app.shell.run("check", "store").code == .ok)
    #expect(app.verify("--store", "nowhere").code == .noStore)
  }

  @Test(.enabled(if: Program.isRoot, "becoming an ordinary user needs root"))
  func onlyTheOwnerOfAStoreChangesWhomItTrusts() throws {
    let app = try SignedApp()
    #expect(app.shell.run("init", "store").code == .ok)
    chmod(app.shell.temporary.path, 0o755)
    let root = app.shell.temporary.appending("root.pem")
    for words in [["add", root], ["list"], ["remove", "12345678"]] {
      let result = try Program.runAsNobody(
        [Program.insula, "trust"] + words + ["--store", app.shell.temporary.appending("store")],
        environment: ["HOME": "/nonexistent"])
      #expect(result.status == ExitCode.notPermitted.rawValue, "\(words): \(result.errors)")
    }
    #expect(try app.shell.temporary.names(in: "store/keys") == [])
  }

  /// All of it works for an ordinary user, as does looking at what is somebody else's.
  @Test(.enabled(if: Program.isRoot, "becoming an ordinary user needs root"))
  func ordinaryUsersSignAndVerify() throws {
    let temporary = try TemporaryDirectory(mode: 0o777)
    let script = """
      cd "$HOME" && insula new-app Note && insula identity new me && \
      insula identity export me | insula trust add - \
      && insula sign Note.app --entitlements Note.entitlements && insula verify Note.app && insula verify "$1"
      """
    let app = try SignedApp()
    chmod(app.shell.temporary.path, 0o755)
    let directory = URL(fileURLWithPath: Program.insula).deletingLastPathComponent().path
    let result = try Program.runAsNobody(
      ["sh", "-c", script, "sh", app.path],
      environment: [
        "HOME": temporary.path, "XDG_CONFIG_HOME": "", "PATH": "\(directory):/usr/bin:/bin",
      ])
    #expect(result.status == BundleProblem(.untrusted).number, "\(result.errors)")
    #expect(result.output.contains("Note.app: org.example.note 1, signed by 'me' of the team "))
    #expect(result.errors.contains("the signer is not trusted ('Anna'"))
  }

  // MARK: Signatures

  @Test func whatIsSignedIsSignedAnewOnlyByForce() throws {
    let app = try SignedApp()
    let before = try app.bytes(of: SignedApp.parts + "CodeDirectory")
    let refused = app.shell.run("sign", "Note.app")
    #expect(refused.code == .failed && refused.errors.contains("is already signed"))
    #expect(try app.bytes(of: SignedApp.parts + "CodeDirectory") == before)
    try app.write("new\n", to: "Contents/Resources/new")
    let signed = app.shell.run("sign", "--force", "Note.app")
    #expect(signed.code == .ok && signed.output.contains("Its entitlements were kept."))
    #expect(app.verify("--json").output.contains("com.apple.security.app-sandbox"))
    // Others take their place.
    try app.shell.temporary.write("<plist><dict/></plist>", to: "none")
    #expect(app.shell.run("sign", "--force", "Note.app", "--entitlements", "none").code == .ok)
    #expect(app.verify().code == .ok)
    #expect(!app.verify("--json").output.contains("app-sandbox"))
    try app.shell.temporary.write("nonsense", to: "bad")
    let bad = app.shell.run("sign", "--force", "Note.app", "--entitlements", "bad")
    #expect(bad.code == .found(BundleProblem(.badEntitlements)))
    #expect(app.shell.run("sign", "--force", "Note.app", "--entitlements", "missing").code == .failed)
    #expect(app.verify().code == .ok)
  }

  @Test func whoSignsMustBeClear() throws {
    let app = try SignedApp(isSigned: false)
    let other = try Shell()
    #expect(other.run("sign", app.path).errors.contains("'insula identity new NAME' creates one"))
    #expect(app.shell.run("identity", "new", "Bert").code == .ok)
    let unclear = app.shell.run("sign", "Note.app")
    #expect(unclear.code == .usage && unclear.errors.contains("Anna, Bert"))
    #expect(app.shell.run("sign", "Note.app", "--identity", "Carl").errors.contains("no identity 'Carl'"))
    let late = app.shell.run(["sign", "Note.app", "--identity", "Bert"], ahead: 6 * 365 * 86400)
    #expect(late.code == .failed && late.errors.contains("can't sign now"))
    #expect(app.verify().code == .found(BundleProblem(.unsigned)))
    #expect(app.shell.run("sign", "Note.app/", "--identity", "Bert").code == .ok)
    #expect(app.verify().output.contains("signed by 'Bert'"))
  }

  /// The line that Documentation/SIGNING.md gives.
  @Test func opensslAcceptsWhatIsSigned() throws {
    let app = try SignedApp()
    func openssl(_ place: String) throws -> ProgramResult {
      try Program.run(
        [
          "openssl", "cms", "-verify", "-binary", "-inform", "DER", "-in", "CodeSignature", "-content",
          "CodeDirectory", "-CAfile", app.shell.temporary.appending("root.pem"), "-purpose", "any", "-out",
          "/dev/null",
        ], in: app.full(place))
    }
    for place in ["Contents/_CodeSignature", "Contents/PlugIns/Help.bundle/Contents/_CodeSignature"] {
      let accepted = try openssl(place)
      #expect(accepted.status == 0, "\(accepted.errors)")
    }
    try app.write("nonsense", to: SignedApp.parts + "CodeDirectory")
    #expect(try openssl("Contents/_CodeSignature").ending == Ending(4))
  }

  /// A script of openssl's commands and Python's plistlib has made it, and no code of ours.
  @Test func whatOthersSignIsAccepted() throws {
    let script = Repository.root + "/Tests/Fixtures/hand-made-bundle/make.py"
    let made = try Program.run(["python3", script], in: shell.temporary.path)
    try #require(made.status == 0, "\(made.errors)")
    #expect(shell.run("verify", "Hand.app").code == .found(BundleProblem(.untrusted)))
    #expect(shell.run("trust", "add", "root.pem").code == .ok)
    let result = shell.run("verify", "Hand.app")
    #expect(result.output == "Hand.app: org.example.hand 7, signed by 'Hand' of the team HAND000001\n")
    // As SIGNING.md says, its files are an identity of ours too.
    let pem = ["leaf.key", "leaf.pem", "root.pem"].compactMap { shell.temporary.text(of: $0) }.joined()
    #expect(shell.run("identity", "new", "first").code == .ok)
    try shell.temporary.write(pem, to: ".config/insula/identities/Hand.pem")
    chmod(shell.temporary.appending(".config/insula/identities/Hand.pem"), 0o600)
    #expect(shell.run("sign", "--force", "Hand.app", "--identity", "Hand").code == .ok)
    #expect(shell.run("verify", "Hand.app").output == result.output)
    try shell.temporary.write("<p>Another page.</p>\n", to: "Hand.app/Contents/Resources/page.html")
    #expect(shell.run("verify", "Hand.app").code == .found(BundleProblem(.changed)))
  }

  /// Each step works after those before it, and what is done already is no step.
  @Test func stepsOfNewAppLeadToAnInstalledApp() throws {
    let store = try shell.temporary.makeDirectory("data") + "/insula"
    #expect(shell.run("init", store).code == .ok)
    func steps(_ name: String) throws -> [String] {
      let result = shell.run("new-app", name)
      #expect(result.code == .ok)
      return result.output.split(separator: "\n").filter { $0.hasPrefix("  ") }.map {
        String($0.dropFirst(2))
      }
    }
    let environment = [
      "HOME": shell.temporary.path, "XDG_DATA_HOME": shell.temporary.appending("data"), "XDG_CONFIG_HOME": "",
      "XDG_RUNTIME_DIR": "",
    ]
    // Root's own store is the machine's, which is none of a test's.
    func perform(_ step: String) throws -> ProgramResult {
      var words = step.replacing("insula ", with: "'\(Program.insula)' ").replacing(
        "/var/lib/insula", with: store)
      if step.hasPrefix("insula install") { words += " --store \(store)" }
      return try Program.run(["sh", "-c", words], environment: environment, in: shell.temporary.path)
    }
    let first = try steps("Note")
    #expect(first.count == 6)
    for step in first {
      let result = try perform(step)
      #expect(result.status == 0, "\(step): \(result.errors)")
    }
    let second = try steps("Other")
    #expect(!second.contains { $0.contains("identity new") || $0.hasSuffix("trust add -") }, "\(second)")
  }

  @Test func progressIsShownToWhoLooks() throws {
    let text = ProgressTexts()
    let console = Console(output: { _ in }, errors: { _ in }, progress: { text.add($0) })
    let isShown = ProgressLine.show(console, { "half" }, while: { eventually { text.all.hasSuffix("half") } })
    #expect(isShown && text.all.hasPrefix("\r\u{1b}[Khalf") && text.all.hasSuffix("half\r\u{1b}[K"))
    // What is soon over needs none.
    let quick = ProgressTexts()
    let other = Console(output: { _ in }, errors: { _ in }, progress: { quick.add($0) })
    ProgressLine.show(other, { "half" }, while: {})
    #expect(quick.all == "")
    #expect(
      [0, 999, 1000, 1_250_000, 999_999_999].map(\.asSize) == [
        "0 bytes", "999 bytes", "1.0 KB", "1.3 MB", "1000 MB",
      ])
  }
}

private final class ProgressTexts: Sendable {
  private let text = Mutex("")
  var all: String { text.withLock { $0 } }
  func add(_ words: [UInt8]) { text.withLock { $0 += String(decoding: words, as: UTF8.self) } }
}
