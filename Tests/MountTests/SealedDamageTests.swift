// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Someone changes an installed app behind the daemon.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct SealedDamageTests {
  /// Something that is done to an app's directory, in which the script begins.
  struct Damage: CustomTestStringConvertible {
    let name: String
    let script: String
    /// What can't be read any more: names, or beginnings of paths that end in a slash.
    let lost: [String]
    /// The same where all was read before, and the seal is loaded: what has been found good stays good.
    let lostWhileMounted: [String]
    /// What is allowed to be as it was, or to fail.
    let undetermined: [String]
    /// Part of the line in the log; empty if there is none.
    let told: String
    var testDescription: String { name }

    init(
      _ name: String, _ script: String, lost: [String], whileMounted: [String]? = nil,
      undetermined: [String] = [],
      told: String
    ) {
      self.name = name
      self.script = script
      self.lost = lost
      lostWhileMounted = whileMounted ?? lost
      self.undetermined = undetermined
      self.told = told
    }

    func isLost(_ file: String, whileMounted: Bool) -> Bool {
      (whileMounted ? lostWhileMounted : lost).contains {
        file == $0 || $0.hasSuffix("/") && file.hasPrefix($0)
      }
    }
  }

  /// Changes a byte and lets the time look as it did.
  private static func flip(_ path: String, at offset: Int = 7) -> String {
    """
    touch -r '\(path)' ../stamp; byte=$(dd if='\(path)' bs=1 skip=\(offset) count=1 2>/dev/null | od -An -tu1)
    printf "\\\\$(printf %03o $((byte ^ 1)))" | dd of='\(path)' bs=1 seek=\(offset) conv=notrunc 2>/dev/null
    touch -r ../stamp '\(path)'; rm ../stamp
    """
  }

  private static let page = "Contents/Resources/page.html"
  private static let first = "Contents/Resources/first.html"
  private static let help = "Contents/PlugIns/Help.bundle/"
  private static let signature = "Contents/_CodeSignature/"

  static let damages = [
    Damage("a bit", flip(page), lost: [page, first], told: page),
    Damage(
      "the last bit", flip("Contents/Resources/large", at: SealedFixture.largeSize - 1),
      lost: ["Contents/Resources/large"], told: "Contents/Resources/large"),
    Damage(
      "cut off", "truncate -s 2 'Contents/Resources/two words.txt'",
      lost: ["Contents/Resources/two words.txt"], told: "two words.txt"),
    Damage("longer", "echo more >> \(page)", lost: [page, first], told: page),
    Damage(
      "another file in its place", "cp -p \(page) x; echo other > x; mv x \(page)",
      lost: [page, first], told: page),
    Damage(
      "swapped",
      "mv \(page) x; mv Contents/Resources/deep/er/data \(page); mv x Contents/Resources/deep/er/data",
      lost: [page, first, "Contents/Resources/deep/er/data"],
      // The kernel knows which is which.
      whileMounted: [], undetermined: [page, first, "Contents/Resources/deep/er/data"], told: page),
    Damage("missing", "rm \(page)", lost: [page, first], told: page),
    Damage(
      "a directory that is missing", "rm -r Contents/Resources/deep",
      lost: ["Contents/Resources/deep/er/data"], told: "Contents/Resources/deep"),
    Damage("a directory instead of a file", "rm \(page); mkdir \(page)", lost: [page, first], told: page),
    Damage(
      "a link instead of a file",
      "cp \(page) Contents/Resources/.DS_Store; rm \(page); ln -s .DS_Store \(page)",
      lost: [page, first], undetermined: ["Contents/Resources/.DS_Store"], told: page),
    Damage("a pipe instead of a file", "rm \(page); mkfifo \(page)", lost: [page, first], told: page),
    Damage(
      "a file instead of a link", "cp \(page) x; rm \(first); mv x \(first)", lost: [first], whileMounted: [],
      undetermined: [first], told: first),
    Damage(
      "a file instead of a directory", "rm -r Contents/Resources/deep; touch Contents/Resources/deep",
      lost: ["Contents/Resources/deep/er/data"], told: "Contents/Resources/deep"),
    Damage(
      "a link that leads elsewhere", "ln -sfn 'two words.txt' \(first)", lost: [first], whileMounted: [],
      undetermined: [first], told: first),
    Damage(
      "the executable", flip("Contents/MacOS/note"), lost: ["Contents/MacOS/note"],
      told: "Contents/MacOS/note"),
    Damage(
      "the executable, cut off", ": > Contents/MacOS/note", lost: ["Contents/MacOS/note"],
      told: "Contents/MacOS/note"),
    // Without it nobody knows what the executable is called.
    Damage(
      "Info.plist", flip("Contents/Info.plist", at: 60),
      lost: ["Contents/Info.plist", "Contents/MacOS/note"],
      whileMounted: ["Contents/Info.plist"], told: "Contents/Info.plist"),
    Damage(
      "the seal", flip(signature + "CodeResources", at: 400), lost: ["Contents/"],
      whileMounted: [signature + "CodeResources"], told: "Note.app"),
    Damage(
      "the code directory", flip(signature + "CodeDirectory", at: 200), lost: ["Contents/"],
      whileMounted: [signature + "CodeDirectory"], told: "Note.app"),
    Damage(
      "the signature", flip(signature + "CodeSignature", at: 300), lost: ["Contents/"],
      whileMounted: [signature + "CodeSignature"], told: "Note.app"),
    Damage(
      "no signature", "rm -r \(signature)", lost: ["Contents/"],
      whileMounted: ["CodeDirectory", "CodeResources", "CodeSignature"].map { signature + $0 },
      told: "Note.app"),
    Damage(
      "a file of a bundle inside", flip(help + "Contents/Resources/text", at: 1),
      lost: [help + "Contents/Resources/text"], told: help + "Contents/Resources/text"),
    Damage(
      "the seal of a bundle inside", flip(help + signature + "CodeResources", at: 400),
      lost: [help], whileMounted: [help + signature + "CodeResources"], told: "Help.bundle"),
    Damage(
      "the code directory of a bundle inside", flip(help + signature + "CodeDirectory", at: 200),
      lost: [help], whileMounted: [help + signature + "CodeDirectory"], told: "Help.bundle"),
    Damage(
      "the signature of a bundle inside", flip(help + signature + "CodeSignature", at: 300),
      lost: [help], whileMounted: [help + signature + "CodeSignature"], told: "Help.bundle"),
    Damage(
      "an attribute that counts as part of a file",
      "setfattr -n user.com.apple.FinderInfo -v x \(page)", lost: [page, first], told: page),
    // What is not sealed may be changed by who gets there.
    Damage(
      "what may be missing", "rm -r Contents/Resources/en.lproj", lost: [],
      undetermined: ["Contents/Resources/en.lproj/words.txt"], told: ""),
    Damage(
      "what rules leave out", "echo other > Contents/Resources/.DS_Store", lost: [],
      undetermined: ["Contents/Resources/.DS_Store"], told: ""),
    Damage("its mode", "chmod 600 \(page)", lost: [], told: ""),
  ]

  private func check(
    _ fixture: SealedFixture, _ damage: Damage, _ good: [String: [UInt8]], whileMounted: Bool
  )
    throws
  {
    let undetermined = damage.undetermined.filter { whileMounted || !damage.isLost($0, whileMounted: false) }
    for file in SealedFixture.files where !undetermined.contains(file) {
      let result = fixture.read(fixture.path("\(SealedFixture.localApp)/\(file)"))
      if damage.isLost(file, whileMounted: whileMounted) {
        #expect(result == .failure(.EIO), "\(file)")
      } else {
        #expect(result == good[file].map { .success($0) }, "\(file)")
      }
    }
    for file in undetermined {
      // As it was, as the kernel remembers it, or not at all; never something else but where rules leave it
      // out.
      switch fixture.read(fixture.path("\(SealedFixture.localApp)/\(file)")) {
      case .success(let bytes):
        #expect(bytes == good[file] || file.hasSuffix(".DS_Store"), "\(file)")
      case .failure(let error): #expect(error == .EIO || error == .ENOENT, "\(file)")
      }
    }
    let lines = fixture.log.split(separator: "\n").filter { $0.contains("/\(SealedFixture.localApp): ") }
    let isLost = SealedFixture.files.contains { damage.isLost($0, whileMounted: whileMounted) }
    #expect(lines.contains { $0.contains(damage.told) } || damage.told.isEmpty || !isLost, "\(fixture.log)")
    let refusals = try fixture.mounted.count("sealRefusals")
    #expect(isLost ? refusals > 0 : refusals == 0 || !undetermined.isEmpty)
    // Directories can be listed in any case.
    for directory in ["", "Contents", "Contents/Resources", "Contents/PlugIns/Help.bundle/Contents"] {
      let listed = try Program.run(["ls", "-a", fixture.path("\(SealedFixture.localApp)/\(directory)")])
      #expect(listed.status == 0, "\(listed.errors)")
    }
    // Another copy of the same app is as good as it was.
    for file in SealedFixture.files {
      #expect(
        fixture.read(fixture.path("\(SealedFixture.userApp)/\(file)")) == good[file].map { .success($0) })
    }
  }

  private func good(_ fixture: SealedFixture) -> [String: [UInt8]] {
    var good: [String: [UInt8]] = [:]
    for file in SealedFixture.files {
      good[file] = try? fixture.read(fixture.backing("\(SealedFixture.userApp)/\(file)")).get()
    }
    return good
  }

  private func apply(_ damage: Damage, to fixture: SealedFixture) throws {
    let directory = fixture.backing(SealedFixture.localApp)
    let result = try Program.run(["sh", "-ec", "cd \"$1\"; " + damage.script, "sh", directory])
    try #require(result.status == 0, "\(result.errors)")
  }

  @Test(arguments: damages)
  func isFoundAfterMounting(damage: Damage) throws {
    let fixture = try SealedFixture { try apply(damage, to: $0) }
    try check(fixture, damage, good(fixture), whileMounted: false)
  }

  @Test(arguments: damages)
  func isFoundWhileMounted(damage: Damage) throws {
    let fixture = try SealedFixture(settled: true)
    let good = good(fixture)
    for file in SealedFixture.files {
      #expect(
        fixture.read(fixture.path("\(SealedFixture.localApp)/\(file)")) == good[file].map { .success($0) })
    }
    // What a seal says is known as long as the kernel knows something in its bundle, which a machine that is
    // short of memory, or whose host is, may forget.
    let held = ["Contents", Self.help + "Contents"].map { directory in
      open(fixture.path("\(SealedFixture.localApp)/\(directory)"), CLX_O_PATH | O_DIRECTORY | O_CLOEXEC)
    }
    defer { for file in held { close(file) } }
    #expect(held.allSatisfy { $0 >= 0 })
    try apply(damage, to: fixture)
    try check(fixture, damage, good, whileMounted: true)
  }

  /// A user's own daemon finds the same.
  @Test(arguments: damages.filter { ["a bit", "missing", "the executable", "the seal"].contains($0.name) })
  func isFoundWithoutRoot(damage: Damage) throws {
    let nobody = Account(name: "nobody", uid: 65534, gid: 65534, home: "/")
    let fixture = try SealedFixture(owner: nobody) { try apply(damage, to: $0) }
    for file in SealedFixture.files {
      let read = try Program.runAsNobody(["cat", fixture.path("\(SealedFixture.localApp)/\(file)")])
      #expect((read.status == 0) != damage.isLost(file, whileMounted: false), "\(file)")
      #expect(read.status == 0 || read.errors.contains("Input/output error"), "\(read.errors)")
    }
    #expect(fixture.log.contains("/\(SealedFixture.localApp): "))
  }

  /// A name that someone has given a sealed file behind the daemon is no way to change it unseen.
  @Test func anotherNameIsNoWayIn() throws {
    let page = "\(SealedFixture.localApp)/\(Self.page)"
    let other = "Users/Shared/work/other"
    let fixture = try SealedFixture { try SealedFixture.command("ln", $0.backing(page), $0.backing(other)) }
    let good = try fixture.read(fixture.backing(page)).get()
    #expect(fixture.read(fixture.path(page)) == .success(good))
    // It is known as what it is, by whatever name.
    for change in [
      "echo x >> \"$1\"", "chmod 777 \"$1\"", "truncate -s 0 \"$1\"", "setfattr -n user.x -v y \"$1\"",
    ] {
      #expect(try Program.run(["sh", "-c", change, "sh", fixture.path(other)]).isRefusal, "\(change)")
    }
    #expect(fixture.read(fixture.path(page)) == .success(good))
    // A name alone may go.
    #expect(
      rename(fixture.path(other), fixture.path(other) + "s") == 0 && unlink(fixture.path(other) + "s") == 0)
    #expect(fixture.read(fixture.path(page)) == .success(good))
  }

  @Test func whatIsChangedThroughAnotherNameIsFound() throws {
    let page = "\(SealedFixture.localApp)/\(Self.page)"
    let other = "Users/Shared/work/other"
    let fixture = try SealedFixture { try SealedFixture.command("ln", $0.backing(page), $0.backing(other)) }
    // Before anyone has looked at the app, nobody knows that it is part of one.
    try SealedFixture.command("sh", "-c", "echo x >> \"$1\"", "sh", fixture.path(other))
    #expect(fixture.read(fixture.path(page)) == .failure(.EIO))
  }

  static let additions = [
    "Contents/Resources/new", "Contents/new", "new", "Contents/_CodeSignature/new", "Contents/MacOS/tool",
    "Contents/Resources/directory/new", "Contents/PlugIns/Help.bundle/Contents/Resources/new",
    "Contents/Resources/PAGE.html", "Contents/PlugIns/New.bundle/Contents/Info.plist",
  ]

  @Test(arguments: [false, true])
  func whatWasAddedIsNotServed(whileMounted: Bool) throws {
    func add(_ fixture: SealedFixture) throws {
      let script = """
        cd "$1"; shift; for name; do mkdir -p "$(dirname "$name")"; echo new > "$name"; done
        ln -s page.html Contents/Resources/new-link; mkfifo Contents/Resources/new-pipe
        """
      try SealedFixture.command(
        ["sh", "-ec", script, "sh", fixture.backing(SealedFixture.localApp)] + Self.additions)
    }
    let fixture = try SealedFixture { if !whileMounted { try add($0) } }
    if whileMounted {
      for file in SealedFixture.files { _ = fixture.read(fixture.path("\(SealedFixture.localApp)/\(file)")) }
      try add(fixture)
    }
    let good = good(fixture)
    let links = ["Contents/Resources/new-link", "Contents/Resources/new-pipe"]
    for name in Self.additions + links {
      let path = fixture.path("\(SealedFixture.localApp)/\(name)")
      #expect(fixture.read(path) == .failure(.EIO), "\(name)")
      #expect(access(path, F_OK) == -1 && Errno.last == .EIO, "\(name)")
      // A directory without a seal is as good as any; a bundle is not.
      let told = name.contains("New.bundle") ? "Contents/PlugIns/New.bundle" : name
      #expect(fixture.log.contains("/\(SealedFixture.localApp): \(told): "), "\(name): \(fixture.log)")
    }
    for file in SealedFixture.files {
      #expect(
        fixture.read(fixture.path("\(SealedFixture.localApp)/\(file)")) == good[file].map { .success($0) })
    }
  }
}
