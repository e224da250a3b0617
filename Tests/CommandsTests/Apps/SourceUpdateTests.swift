// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
@testable internal import Commands
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Updates from a directory of packed apps and its signed index, most of which are not what they should be.
@Suite struct SourceUpdateTests {
  private let app: SignedApp
  private var shell: Shell { app.shell }
  private let place: String
  private let apps: String
  private let now = Int64(time(nil))

  init() throws {
    app = try SignedApp()
    place = try app.shell.temporary.makeDirectory("unpacking", mode: 0o700)
    apps = try app.shell.temporary.makeDirectory("apps", mode: 0o755)
    #expect(app.shell.run("init", "store").code == .ok)
    #expect(app.shell.run("trust", "add", "root.pem", "--store", "store").code == .ok)
    #expect(app.shell.run("install", "Note.app", "--store", "store").code == .ok)
  }

  private func insula(_ words: String...) throws -> ProgramResult {
    try Program.run(
      [Program.insula] + words,
      environment: [
        "HOME": shell.temporary.path, "XDG_CONFIG_HOME": "", "XDG_RUNTIME_DIR": "", "TMPDIR": place,
      ],
      in: shell.temporary.path)
  }

  private func update(_ options: String...) throws -> ProgramResult { try update(options) }

  private func update(_ options: [String]) throws -> ProgramResult {
    try Program.run(
      [Program.insula, "update", "--all", "apps", "--store", "store"] + options,
      environment: [
        "HOME": shell.temporary.path, "XDG_CONFIG_HOME": "", "XDG_RUNTIME_DIR": "", "TMPDIR": place,
      ],
      in: shell.temporary.path)
  }

  /// Packs that version of the app.
  private func pack(_ version: String, as name: String = "Note.tar", by identity: String = "Anna") throws {
    try app.edit("Contents/Info.plist") { text in
      var lines = text.components(separatedBy: "\n")
      for index in lines.indices.dropLast()
      where lines[index].contains("<key>CFBundle")
        && lines[index].contains("Version") && !lines[index].contains("Info")
      {
        lines[index + 1] = "\t<string>\(version)</string>"
      }
      return lines.joined(separator: "\n")
    }
    let signed = shell.run("sign", "--force", "Note.app", "--identity", identity)
    try #require(signed.code == .ok, "\(signed.errors)")
    unlink(apps + "/" + name)
    let packed = shell.run("pack", "Note.app", "-o", "apps/\(name)")
    try #require(packed.code == .ok, "\(packed.errors)")
  }

  private func version() -> String {
    shell.run("apps", "--store", "store").output
      .split(separator: "\n").last.map {
        String($0.split(separator: " ", omittingEmptySubsequences: true)[1])
      } ?? ""
  }

  /// An entry as the index has it, to be spoiled.
  private func entry(
    _ identifier: String? = nil, version: String = "5", file: String = "Note.tar", size: Int64? = nil,
    digest: [UInt8]? = nil
  ) throws -> PackageIndex.App {
    let opened = try TemporaryDirectory.open(apps)
    let package = try opened.fd.open("Note.tar", O_RDONLY)
    let found = try PackageDigest.of(package.fd, atMost: .max)
    return PackageIndex.App(
      identifier: identifier ?? "org.example.note", version: version, shortVersion: version, file: file,
      size: size ?? found.size, digest: digest ?? found.digest)
  }

  private func write(
    _ list: [PackageIndex.App], issued: Int64? = nil, by name: String = "Anna", of shell: Shell? = nil
  ) throws {
    let home = shell ?? self.shell
    let keys = try TemporaryDirectory.open(home.temporary.appending(".config/insula/identities"))
    let identity = try IdentityDirectory(keys.fd).identity(named: name)
    let bytes = try PackageIndex(issued: issued ?? now, apps: list).signed(by: identity)
    try self.shell.temporary.write(String(decoding: bytes, as: UTF8.self), to: "apps/index.plist")
  }

  @Test func appIsUpdatedByTheIndex() throws {
    try pack("4", as: "Old.tar")
    try pack("5")
    let index = try insula("index", "apps", "--identity", "Anna")
    #expect(index.status == 0 && index.output.contains("with 1 app, of the team TEAM1"), "\(index)")
    #expect(index.errors.contains("Old.tar is not in the index"), "\(index.errors)")
    let plan = try update("--dry-run", "--json")
    #expect(plan.status == 0 && plan.output.contains(#""result" : "available""#), "\(plan)")
    #expect(version() != "5")
    let done = try update()
    #expect(done.status == 0 && done.output.contains("to 5."), "\(done)")
    #expect(version() == "5")
    #expect(try update().output == "All apps are up to date.\n")
    // One app.
    try pack("6")
    #expect(try insula("index", "apps").status == 0)
    let one = try insula("update", "org.example.note", "--from", "file://\(apps)", "--store", "store")
    #expect(one.status == 0 && version() == "6", "\(one)")
    let none = try insula("update", "org.example.none", "--from", "apps", "--store", "store")
    #expect(none.status == 1 && none.errors.contains("has no org.example.none"), "\(none)")
    #expect(try shell.temporary.names(in: "unpacking") == [])
    #expect(shell.run("check", "store").code == .ok)
  }

  @Test func earlierIndexIsRefused() throws {
    try pack("5")
    #expect(try insula("index", "apps").status == 0)
    let old = try #require(shell.temporary.text(of: "apps/index.plist"))
    try pack("6")
    #expect(try insula("index", "apps").status == 0)
    #expect(try update().status == 0 && version() == "6")
    try shell.temporary.write(old, to: "apps/index.plist")
    let refused = try update()
    #expect(refused.status == 1 && refused.errors.contains("was seen before"), "\(refused)")
    // A date that is ahead would have all later ones refused.
    try write([entry()], issued: now + 1_000_000)
    let ahead = try update()
    #expect(ahead.status == 1 && ahead.errors.contains("in the future"), "\(ahead)")
  }

  /// Something else in the place of what was noted does not count as nothing.
  @Test func noteThatCannotBeReadIsSaid() throws {
    try pack("5")
    #expect(try insula("index", "apps").status == 0 && update().status == 0)
    let notes = "store/state/sources"
    let note = try #require(try shell.temporary.names(in: notes).first)
    unlink(shell.temporary.appending("\(notes)/\(note)"))
    mkfifo(shell.temporary.appending("\(notes)/\(note)"), 0o600)
    let refused = try update()
    #expect(refused.status == 1 && refused.errors.contains("seen last"), "\(refused)")
  }

  @Test func indexThatLiesChangesNothing() throws {
    try pack("5")
    let before = version()
    func refused(_ words: String, _ list: [PackageIndex.App]) throws {
      try write(list)
      let result = try update()
      #expect(result.status == 1 && result.errors.contains(words), "\(words): \(result)")
      #expect(version() == before, "\(words)")
    }
    try refused("a file that can't be in its directory", [entry(file: "../Note.tar")])
    try refused("a file that can't be in its directory", [entry(file: "/etc/passwd")])
    try refused("a file that can't be in its directory", [entry(file: ".hidden")])
    try refused("a file that can't be in its directory", [entry(file: "index.plist")])
    try refused("has org.example.note twice", [entry("ORG.example.note"), entry("org.example.note")])
    try refused("size or digest", [entry(size: -1)])
    try refused("size or digest", [entry(size: .max)])
    try refused("size or digest", [entry(digest: [1])])
    try refused("longer than", [entry(size: 1000)])
    try refused("not the file that the index names", [entry(size: 1 << 30)])
    try refused("not the file that the index names", [entry(digest: Array(repeating: 7, count: 32))])
    try refused("another app or version", [entry(version: "9")])
    try refused("can't open", [entry(file: "missing.tar")])
    symlink(apps + "/Note.tar", apps + "/link.tar")
    try refused("symbolic link", [entry(file: "link.tar")])
    mkfifo(apps + "/pipe.tar", 0o666)
    try refused("not a regular file", [entry(file: "pipe.tar")])
    try refused("more than 10000", Array(repeating: entry(), count: 10_001))
    #expect(try shell.temporary.names(in: "unpacking") == [])
  }

  @Test func indexOfAnotherTeamIsNone() throws {
    try pack("5")
    let before = version()
    #expect(shell.run("identity", "new", "Eve", "--team", "TEAM2").code == .ok)
    try write([entry()], by: "Eve")
    // One root vouches for both, and yet it is not the app's team.
    let other = try update()
    #expect(other.status == 1 && other.errors.contains("signed by the team TEAM2"), "\(other)")
    // Her app under the other's name, in an index of the right team.
    try pack("6", by: "Eve")
    try write([entry(version: "6")])
    let evil = try update()
    #expect(evil.status == 1 && evil.errors.contains("TEAM2"), "\(evil)")
    #expect(version() == before)
    let index = try insula("index", "apps", "--identity", "Anna")
    #expect(index.status == 1 && index.errors.contains("is signed by the team TEAM2"), "\(index)")
    // The store trusts none of them any more.
    for name in try shell.temporary.names(in: "store/keys/trust") {
      unlink(shell.temporary.appending("store/keys/trust/\(name)"))
    }
    let untrusted = try update()
    let isUntrusted = ExitCode(rawValue: untrusted.status) == .found(BundleProblem(.untrusted))
    #expect(isUntrusted && untrusted.errors.contains("insula trust add"), "\(untrusted)")
  }

  /// Another root that the store trusts has somebody of the same team's name; its index would not be compared
  /// with those that were seen of the team.
  @Test func indexOfTheTeamsNameUnderAnotherRootIsNone() throws {
    try pack("4", as: "Note.tar")
    let earlier = try entry(version: "4")
    let before = version()
    let stranger = try Shell()
    #expect(stranger.run("identity", "new", "Anna", "--team", "TEAM1").code == .ok)
    #expect(stranger.run("identity", "export", "Anna", "--certificate", "root.pem").code == .ok)
    let root = stranger.temporary.appending("root.pem")
    #expect(shell.run("trust", "add", root, "--store", "store").code == .ok)
    try write([earlier], by: "Anna", of: stranger)
    for options in [[], ["--dry-run"]] {
      let result = try update(options)
      #expect(
        result.status == 1 && result.errors.contains("under another root than the app"),
        "\(options): \(result)")
    }
    #expect(version() == before)
    // Whom the administrator names speaks for the team.
    try write([earlier])
    #expect(try update().status == 0 && version() == "4")
  }

  @Test func damagedIndexIsRefused() throws {
    try pack("5")
    #expect(try insula("index", "apps").status == 0)
    let good = try #require(shell.temporary.text(of: "apps/index.plist"))
    let before = version()
    let spoiled = [
      "", "no list", String(good.dropLast(30)), good + "\n", good.replacingOccurrences(of: "\t", with: " "),
      good.replacingOccurrences(of: "Note.tar", with: "Evil.tar"),
      String(repeating: "x", count: PackageIndex.sizeLimit + 1),
    ]
    for text in spoiled {
      try shell.temporary.write(text, to: "apps/index.plist")
      let result = try update()
      // What can be read and is not what was signed is told as that.
      let code: ExitCode = text.contains("Evil.tar") ? .found(BundleProblem(.signatureMismatch)) : .failed
      #expect(ExitCode(rawValue: result.status) == code, "\(text.prefix(100)): \(result)")
    }
    #expect(version() == before)
    unlink(apps + "/index.plist")
    symlink(apps + "/Note.tar", apps + "/index.plist")
    #expect(try update().errors.contains("symbolic link"))
  }

  @Test(
    arguments: [
      ["update", "--all", "x", "Note.app"], ["update", "--all", "x", "--from", "y"],
      ["update", "--all", "x", "--allow-downgrade"], ["update", "x", "--dry-run"],
      ["update", "--all", "ftp://example.com/"], ["update", "--all", "https://"],
      ["update", "--all", "https://user@example.com/"], ["update", "--all", "http://-oX"],
      ["update", "--all", "http://a b/"], ["update", "--all", "http://example.com/?x"],
      ["update", "--cancel", "org.example.note", "--when-closed"], ["update", "--cancel"],
      ["update", "--from", "x"], ["install", "x", "--user", "a", "--everyone"],
    ])
  func whatMakesNoSenseIsRefused(words: [String]) {
    let result = shell.run(words)
    #expect(result.code == .usage && !result.errors.isEmpty, "\(result)")
  }
}
