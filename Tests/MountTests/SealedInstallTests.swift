// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing
internal import Volume

/// Apps come, are replaced and go while others look.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct SealedInstallTests {
  /// Two mounts of a tree, and signed bundles that are not in it yet.
  final class Fixture {
    private final class Lines: Sendable {
      let all = Mutex<[String]>([])
    }
    private let lines: Lines
    let mounts: TwoMounts
    let made: TemporaryDirectory
    private var seals: [String: [UInt8]] = [:]
    static let path = "Applications/Note.app"
    static let page = "Contents/Resources/page.html"

    init() throws {
      let lines = Lines()
      self.lines = lines
      mounts = try TwoMounts { line in lines.all.withLock { $0.append(line) } }
      made = try TemporaryDirectory()
    }

    var said: [String] { lines.all.withLock { $0 } }

    /// Makes a signed bundle whose page says something; it lies beside the tree, where no mount leads.
    func make(_ text: String) throws {
      try made.makeDirectory(text)
      let place = made.appending(text)
      try SealedFixture.makeBundle(in: place)
      try made.write(text, to: "\(text)/Note.app/\(Self.page)")
      let keys = try TemporaryDirectory()
      seals[text] = try SealedFixture.sign("\(place)/Note.app", with: keys)
      try SealedFixture.command("mkdir", "-p", mounts.temporary.appending("staging"))
      try SealedFixture.command("cp", "-a", "\(place)/Note.app", staged(text))
    }

    func staged(_ text: String) -> String { mounts.temporary.appending("staging/\(text)") }
    func seal(_ text: String) throws -> [UInt8] { try #require(seals[text]) }
    var installed: String { mounts.temporary.appending("tree/\(Self.path)") }

    func install(_ text: String) throws {
      try mounts.volume.bundleAppears(at: Self.path, seal: seal(text)) { () throws(Errno) in
        try check(rename(staged(text), installed))
      }
    }

    /// The one that was there is where the new one was.
    func replace(_ before: String, by text: String) throws {
      try mounts.volume.bundleIsReplaced(at: Self.path, seal: seal(text), before: seal(before)) {
        () throws(Errno) in
        try check(
          clx_renameat2(AT_FDCWD, staged(text), AT_FDCWD, installed, UInt32(CLX_RENAME_EXCHANGE)))
        try check(rename(staged(text), staged(before)))
      }
    }

    func remove(_ text: String) throws {
      try mounts.volume.bundleGoes(from: Self.path, seal: seal(text)) { () throws(Errno) in
        try check(rename(installed, staged(text)))
      }
    }

    func path(_ view: Int, _ name: String = Fixture.path) -> String {
      mounts.temporary.appending("\(view)/\(name)")
    }
    func page(_ view: Int) -> String { path(view) + "/" + Self.page }
  }

  /// What a client reads in a page, or the error.
  private func page(_ fixture: Fixture, _ view: Int, _ client: Client) throws -> String {
    let opened = try client.run("open", fixture.page(view), "\(O_RDONLY)")
    guard opened.errno == 0, let file = opened.words.first else { return "\(opened.errno)" }
    defer { _ = try? client.run("close", file) }
    return try client.run("read", file, "0").words.first ?? ""
  }

  @Test func whatIsInstalledIsThereAndSealedAtOnce() throws {
    let fixture = try Fixture()
    try fixture.make("one")
    let client = try Client()
    for view in 0...1 {
      // So that the kernel remembers that it is not there, and what else there is.
      #expect(try page(fixture, view, client) == "\(ENOENT)")
      #expect(try client.run("list", fixture.path(view, "Applications")).words == ["2"])
    }
    // Open since before: the directory that it comes to.
    let directory = try client.run("open", fixture.path(0, "Applications"), "\(O_RDONLY | O_DIRECTORY)")
    let handle = try #require(directory.words.first)
    try fixture.install("one")
    for view in 0...1 {
      #expect(try page(fixture, view, client) == "one")
      #expect(try client.run("list", fixture.path(view, "Applications")).words == ["3"])
      #expect(try client.errno("open", fixture.page(view), "\(O_WRONLY)") == EROFS)
      #expect(try client.errno("rename", fixture.path(view), fixture.path(view, "Users/Shared/x")) == EROFS)
      #expect(try client.errno("create", fixture.path(view) + "/new", "\(0o644)") == EROFS)
    }
    let inside = "Note.app/\(Fixture.page)"
    #expect(try client.errno("open at", handle, inside, "\(O_RDWR)") == EROFS)
    #expect(try client.errno("open at", handle, inside, "\(O_RDONLY)") == 0)
    #expect(fixture.said.isEmpty, "\(fixture.said)")
  }

  /// Whoever could change something in an ordinary directory can't reach what is installed in its place
  /// later: that is another directory, which nobody has ever had open.
  @Test func whatWasOpenBeforeIsNotWhatIsInstalled() throws {
    let fixture = try Fixture()
    try fixture.make("one")
    let client = try Client()
    #expect(try client.errno("mkdir", fixture.path(0), "\(0o755)") == 0)
    #expect(try client.errno("create", fixture.path(0) + "/file", "\(0o644)") == 0)
    #expect(try client.errno("write", "0", "before") == 0)
    #expect(try client.errno("open", fixture.path(0), "\(O_RDONLY | O_DIRECTORY)") == 0)
    #expect(try client.errno("chdir", fixture.path(0)) == 0)
    #expect(try client.errno("rename", fixture.path(0), fixture.path(0, "Users/Shared/old")) == 0)
    try fixture.install("one")
    let before = try sum(fixture)
    // All of these are still the old directory and its file, wherever that is now.
    #expect(try client.errno("write", "0", "after") == 0)
    #expect(try client.errno("open at", "1", "new", "\(O_CREAT | O_WRONLY)") == 0)
    #expect(try client.errno("mkdir", "newer", "\(0o755)") == 0)
    #expect(try client.errno("ftruncate", "0", "3") == 0)
    #expect(try sum(fixture) == before)
    #expect(try client.run("list", fixture.path(0, "Users/Shared/old")).words == ["5"])
    #expect(try page(fixture, 1, client) == "one")
  }

  private func sum(_ fixture: Fixture) throws -> String {
    try Program.run([
      "sh", "-c", "cd \"$1\" && find . -type f -exec sha256sum {} + | sort", "sh", fixture.installed,
    ])
    .output
  }

  @Test func whatIsReplacedIsTheOtherAtOnce() throws {
    let fixture = try Fixture()
    for text in ["one", "two"] { try fixture.make(text) }
    try fixture.install("one")
    let client = try Client()
    for view in 0...1 { #expect(try page(fixture, view, client) == "one") }
    let open = try #require(try client.run("open", fixture.page(0), "\(O_RDONLY)").words.first)
    try fixture.replace("one", by: "two")
    for view in 0...1 {
      #expect(try page(fixture, view, client) == "two")
      #expect(try client.errno("open", fixture.page(view), "\(O_RDWR)") == EROFS)
    }
    // Who has the old one open goes on reading it, and still can't change it.
    #expect(try client.run("read", open, "0").words == ["one"])
    #expect(try client.errno("setxattr", fixture.page(0), "user.x", "y") == EROFS)
    #expect(fixture.said.isEmpty, "\(fixture.said)")
  }

  /// As a running program does with itself: what it has open is its own, whatever became of the app.
  @Test func whoHasTheOldOneOpenOpensItAgain() throws {
    let fixture = try Fixture()
    for text in ["one", "two"] { try fixture.make(text) }
    try fixture.install("one")
    let file = open(fixture.page(0), O_RDONLY | O_CLOEXEC)
    try #require(file >= 0)
    defer { close(file) }
    try fixture.replace("one", by: "two")
    try SealedFixture.command("rm", "-r", fixture.staged("one"))
    #expect(FD.text(of: "/proc/self/fd/\(file)", limit: 4096) == "one")
    #expect(FD.text(of: fixture.page(0), limit: 4096) == "two")
    #expect(fixture.said.isEmpty, "\(fixture.said)")
  }

  @Test func whatIsRemovedIsGoneAtOnceAndItsNameIsFree() throws {
    let fixture = try Fixture()
    try fixture.make("one")
    try fixture.install("one")
    let client = try Client()
    for view in 0...1 { #expect(try page(fixture, view, client) == "one") }
    try fixture.remove("one")
    for view in 0...1 {
      #expect(try page(fixture, view, client) == "\(ENOENT)")
      #expect(try client.run("list", fixture.path(view, "Applications")).words == ["2"])
    }
    #expect(try client.errno("mkdir", fixture.path(0), "\(0o755)") == 0)
    #expect(try client.errno("create", fixture.path(0) + "/file", "\(0o644)") == 0)
    #expect(
      try client.errno("rename", fixture.path(0, "Applications/Note.app"), fixture.path(0, "Users/Shared/x"))
        == 0
    )
    #expect(fixture.said.isEmpty, "\(fixture.said)")
  }

  @Test func whatFailsChangesNothing() throws {
    let fixture = try Fixture()
    for text in ["one", "two"] { try fixture.make(text) }
    let client = try Client()
    #expect(throws: Errno.ENOSPC) {
      try fixture.mounts.volume.bundleAppears(at: Fixture.path, seal: fixture.seal("one")) {
        () throws(Errno) in
        throw .ENOSPC
      }
    }
    #expect(try client.errno("mkdir", fixture.path(0), "\(0o755)") == 0)
    #expect(try client.errno("rmdir", fixture.path(0)) == 0)
    try fixture.install("one")
    #expect(throws: Errno.EIO) {
      try fixture.mounts.volume.bundleIsReplaced(
        at: Fixture.path, seal: fixture.seal("two"), before: fixture.seal("one")
      ) { () throws(Errno) in throw .EIO }
    }
    #expect(throws: Errno.EBUSY) {
      try fixture.mounts.volume.bundleGoes(from: Fixture.path, seal: fixture.seal("one")) {
        () throws(Errno) in
        throw .EBUSY
      }
    }
    for view in 0...1 {
      #expect(try page(fixture, view, client) == "one")
      #expect(try client.errno("chmod", fixture.page(view), "\(0o777)") == EROFS)
    }
    #expect(fixture.said.isEmpty, "\(fixture.said)")
  }

  /// Whoever looks while apps are replaced sees one or the other, whole, and never an error.
  @Test func everyoneSeesTheOldOrTheNew() throws {
    let fixture = try Fixture()
    for text in ["one", "two"] { try fixture.make(text) }
    try fixture.install("one")
    let place = try TemporaryDirectory()
    let script = """
      for view in 0 1; do
        (while [ ! -e stop ] && [ $((w+=1)) -lt 1000000 ]; do cat "$1/$view/$2"; echo; done \
          >seen$view 2>errors$view; touch done$view) &
      done
      """
    try SealedFixture.command(
      "sh", "-c", "cd \"$3\"; " + script, "sh", fixture.mounts.temporary.path,
      "\(Fixture.path)/\(Fixture.page)",
      place.path)
    for round in 0..<100 {
      try fixture.replace(round % 2 == 0 ? "one" : "two", by: round % 2 == 0 ? "two" : "one")
      usleep(10_000)
    }
    try place.write("", to: "stop")
    for view in 0...1 {
      while access(place.appending("done\(view)"), F_OK) != 0 { usleep(10_000) }
      #expect(place.text(of: "errors\(view)") == "")
      let seen = try #require(place.text(of: "seen\(view)")).split(separator: "\n")
      #expect(seen.count > 10 && Set(seen).isSubset(of: ["one", "two"]), "\(Set(seen))")
    }
    #expect(fixture.said.isEmpty, "\(fixture.said)")
  }
}
