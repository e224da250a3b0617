// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
@testable internal import Commands
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Apps as one file: packed, installed, updated, and refused with nothing left.
@Suite struct PackCommandTests {
  private let app: SignedApp
  private var shell: Shell { app.shell }
  /// Where archives are unpacked.
  private let place: String

  init() throws {
    app = try SignedApp()
    place = try app.shell.temporary.makeDirectory("unpacking", mode: 0o700)
    #expect(app.shell.run("init", "store").code == .ok)
    #expect(app.shell.run("trust", "add", "root.pem", "--store", "store").code == .ok)
  }

  /// As a process of its own, which has a directory of its own to unpack in.
  private func insula(_ words: [String]) throws -> ProgramResult {
    try Program.run(
      [Program.insula] + words,
      environment: ["HOME": shell.temporary.path, "XDG_CONFIG_HOME": "", "TMPDIR": place],
      in: shell.temporary.path)
  }

  private func installed() -> String {
    shell.run("apps", "--store", "store", "--json").output
  }

  @Test func whatIsPackedIsInstalledAndUpdated() throws {
    let packed = shell.run("pack", "Note.app")
    #expect(packed.code == .ok && packed.output == "Packed Note.app as Note.app.tar.\n", "\(packed.errors)")
    let installed = try insula(["install", "Note.app.tar", "--store", "store"])
    #expect(installed.status == 0, "\(installed.errors)")
    #expect(installed.output.contains("Applications/Note.app"))
    #expect(shell.run("check", "store").code == .ok)
    let same = try Program.run(
      ["diff", "-r", "Note.app", "store/tree/Applications/Note.app"], in: shell.temporary.path)
    #expect(same.status == 0, "\(same.output)")
    // The same bytes again, and nothing is overwritten.
    #expect(shell.run("pack", "Note.app", "-o", "again.tar").code == .ok)
    let equal = try Program.run(["cmp", "Note.app.tar", "again.tar"], in: shell.temporary.path)
    #expect(equal.status == 0, "\(equal.output)")
    #expect(shell.run("pack", "Note.app", "-o", "again.tar").errors.contains("already exists"))

    try app.edit("Contents/Info.plist") { $0.replacing("<string>1</string>", with: "<string>2</string>") }
    #expect(shell.run("sign", "--force", "Note.app").code == .ok)
    #expect(shell.run("pack", "Note.app", "-o", "new.tar").code == .ok)
    // Through a pipe, as from a network.
    let updated = try Program.run(
      ["bash", "-c", "'\(Program.insula)' update --store store <(cat new.tar)"],
      environment: ["HOME": shell.temporary.path, "TMPDIR": place], in: shell.temporary.path)
    #expect(
      updated.status == 0 && updated.output.hasPrefix("Updated Note from "),
      "\(updated.output)\(updated.errors)")
    #expect(try shell.temporary.names(in: "unpacking") == [])
  }

  @Test func onlyWhatIsGoodIsPacked() throws {
    try app.write("new\n", to: "Contents/Resources/new")
    let refused = shell.run("pack", "Note.app")
    #expect(refused.code == .found(BundleProblem(.added)) && refused.errors.contains("was not packed"))
    #expect(shell.run("pack", "nowhere.app").code == .failed)
    #expect(shell.run("pack", "root.pem").code == .found(BundleProblem(.notABundle)))
    #expect(try !shell.temporary.names().contains { $0.hasSuffix(".tar") })
    let unsigned = try SignedApp(isSigned: false)
    #expect(unsigned.shell.run("pack", "Note.app").code == .found(BundleProblem(.unsigned)))
    #expect(try !unsigned.shell.temporary.names().contains { $0.hasSuffix(".tar") })
  }

  /// What was not signed, or was changed since, comes out of an archive as bad as it went in.
  @Test func aGoodArchiveOfABadBundleIsRefused() throws {
    try app.write("new\n", to: "Contents/Resources/new")
    let made = try Program.run(["tar", "-cf", "bad.tar", "Note.app"], in: shell.temporary.path)
    #expect(made.status == 0)
    let result = try insula(["install", "bad.tar", "--store", "store"])
    #expect(result.status == BundleProblem(.added).number, "\(result.errors)")
    #expect(result.errors.contains("Contents/Resources/new"))
    // Names that some take for one.
    try app.remove("Contents/Resources/new")
    try app.write("x\n", to: "Contents/Resources/welcome.TXT")
    _ = try Program.run(["tar", "-cf", "names.tar", "Note.app"], in: shell.temporary.path)
    let names = try insula(["install", "names.tar", "--store", "store"])
    #expect(
      names.status == BundleProblem(.ambiguousNames).number || names.status == BundleProblem(.added).number)
    #expect(installed().filter { !$0.isWhitespace } == "[]")
    #expect(try shell.temporary.names(in: "unpacking") == [])
  }

  private static let kinds = TarHeader.Kind.self

  /// A few of the attempts of `ArchiveTests`, as far as to what the command says and leaves.
  @Test func hostileArchivesLeaveNothing() throws {
    #expect(shell.run("pack", "Note.app", "-o", "good.tar").code == .ok)
    let parent = try shell.temporary.open()
    let good = try parent.fd.contents(of: "good.tar", limit: 1 << 24)
    let entries = Array(good.dropLast(1024))
    func with(_ path: String, _ kind: UInt8 = TarHeader.Kind.file, target: String = "", mode: UInt32 = 0o644)
      -> [UInt8]
    {
      let header = TarHeader(
        path: Array(path.utf8), kind: kind, mode: mode, size: 0, time: 0, target: Array(target.utf8))
      return entries + header.blocks + [UInt8](repeating: 0, count: 1024)
    }
    let victim = shell.temporary.appending("victim")
    for (bytes, words) in [
      (with(victim), "is absolute"), (with("Note.app/../victim"), "'..'"),
      (with("Note.app/l", Self.kinds.symlink, target: "../.."), "leads out of the bundle"),
      (with("Note.app/h", Self.kinds.hardLink, target: victim), "hard link"),
      (with("Note.app/d", Self.kinds.blockDevice), "is a device"),
      (with("Note.app/Contents/Info.plist"), "is in it twice"),
      (with("Note.app/s", mode: 0o4755), "setuid"), (with("Other.app", Self.kinds.directory), "one bundle"),
      (entries, "cut short"), (good + Array("x".utf8), "after its end"),
      (Array(good.dropFirst(1)), "not a tar"),
    ] {
      try parent.fd.replaceContents(of: "bad.tar", with: bytes, mode: 0o600)
      for verb in ["install", "update"] {
        let result = try insula([verb, "bad.tar", "--store", "store"])
        #expect(result.status == 1 && result.errors.contains(words), "\(words): \(result.errors)")
        #expect(result.errors.hasPrefix("insula: can't unpack bad.tar: "), "\(result.errors)")
      }
      #expect(try shell.temporary.names(in: "unpacking") == [])
    }
    #expect(try !shell.temporary.names().contains("victim"))
    #expect(installed().filter { !$0.isWhitespace } == "[]")
    // What is neither.
    #expect(try insula(["install", "/dev/null", "--store", "store"]).errors.contains("neither a bundle nor"))
  }

  /// A stream that does not go on, and a signal: nothing is left.
  @Test(arguments: [SIGINT, SIGTERM, SIGHUP])
  func aSignalLeavesNothing(number: Int32) throws {
    #expect(shell.run("pack", "Note.app", "-o", "good.tar").code == .ok)
    let script = """
      env --default-signal=INT "$INSULA" install --store store /dev/stdin \
        < <(head -c 3000 good.tar; exec sleep 60 2>/dev/null) & child=$!
      n=0; until [ -e "$TMPDIR"/*/Note.app/Contents ] || [ $n = 400 ]; do sleep 0.05; n=$((n + 1)); done
      ls -d "$TMPDIR"/*/Note.app; kill -\(number) $child
      (sleep 30; kill -9 $child) >/dev/null 2>&1 & guard=$!
      wait $child; echo "status $?"; kill $guard; ls -A "$TMPDIR"
      """
    let result = try Program.run(
      ["bash", "-c", script],
      environment: ["INSULA": Program.insula, "HOME": shell.temporary.path, "TMPDIR": place],
      in: shell.temporary.path)
    #expect(result.output.hasPrefix(place), "it was not unpacking: \(result.output)\(result.errors)")
    #expect(result.output.hasSuffix("status \(128 + number)\n"), "\(result.output)\(result.errors)")
    #expect(installed().filter { !$0.isWhitespace } == "[]")
  }

  /// One that was killed leaves something, which the next one removes.
  @Test func whatAKilledOneLeavesGoesNextTime() throws {
    let gone = try shell.temporary.makeDirectory("unpacking/insula-unpack-2147483000-X")
    try shell.temporary.write("x", to: "unpacking/insula-unpack-2147483000-X/file")
    try shell.temporary.write("x", to: "unpacking/other")
    try shell.temporary.makeDirectory("unpacking/insula-unpack-\(getpid())-Y")
    #expect(shell.run("pack", "Note.app", "-o", "good.tar").code == .ok)
    #expect(try insula(["install", "good.tar", "--store", "store"]).status == 0)
    #expect(access(gone, F_OK) != 0)
    #expect(try shell.temporary.names(in: "unpacking") == ["insula-unpack-\(getpid())-Y", "other"])
  }

  @Test(.enabled(if: Program.isRoot, "a small disk needs root"))
  func aFullDiskLeavesNothing() throws {
    let disk = try SmallDisk(bytes: 256 << 10, files: 200)
    try app.write(String(repeating: "0123456789abcdef", count: 40_000), to: "Contents/Resources/large")
    #expect(shell.run("sign", "--force", "Note.app").code == .ok)
    #expect(shell.run("pack", "Note.app", "-o", "large.tar").code == .ok)
    let result = try Program.run(
      [Program.insula, "install", "large.tar", "--store", "store"],
      environment: ["HOME": shell.temporary.path, "TMPDIR": disk.path], in: shell.temporary.path)
    #expect(result.status == 1 && result.errors.contains("No space left on device"), "\(result.errors)")
    #expect(result.errors.contains("TMPDIR can name a directory with more room"))
    let left = try TemporaryDirectory.open(disk.path)
    #expect(try left.fd.entries().isEmpty)
  }

  /// A file that only its owner can read is read by who installs, and by nobody else for them.
  @Test(.enabled(if: Program.isRoot, "becoming an ordinary user needs root"))
  func archivesAreReadByWhoInstalls() throws {
    #expect(shell.run("pack", "Note.app", "-o", "secret.tar").code == .ok)
    chmod(shell.temporary.appending("secret.tar"), 0o600)
    chmod(shell.temporary.path, 0o755)
    let result = try Program.runAsNobody(
      [
        Program.insula, "install", shell.temporary.appending("secret.tar"), "--store",
        shell.temporary.appending("store"),
      ],
      environment: ["HOME": "/nonexistent", "TMPDIR": "/tmp"])
    #expect(result.status == ExitCode.notPermitted.rawValue, "\(result.errors)")
  }
}
