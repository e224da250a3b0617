// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// An installed app is used as any files are, and that costs what it does anywhere.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct SealedUseTests {
  private static let script = """
    set -e; umask 022; app=$1; work=$2; cd "$work"
    "$app/Contents/MacOS/note" | grep -q "hello from $app"
    "$app/Contents/PlugIns/Help.bundle/Contents/MacOS/help" | grep -q help
    cp -a "$app" copy; diff -r --no-dereference "$app" copy
    tar -C "$app/.." -cf app.tar Note.app; mkdir tar; tar -C tar -xf app.tar; diff -r "$app" tar/Note.app
    rsync -aHAX "$app/" rsync/; diff -r "$app" rsync
    git init -q git; git --git-dir=git/.git --work-tree="$app" add -A
    test "$(git --git-dir=git/.git ls-files | wc -l)" = 19
    find "$app" -type f -exec md5sum {} + > sums; md5sum --quiet -c sums
    grep -rq page "$app"; test "$(readlink "$app/Contents/Resources/first.html")" = page.html
    python3 -c 'import mmap, sys; f = open(sys.argv[1], "rb"); mmap.mmap(f.fileno(), 0, prot=1)[1048576]' \\
      "$app/Contents/Resources/large"
    """

  private static let stateProgram = Checkout.path("Tests/Fixtures/ways-to-change.py")

  /// A digest of all that there is of an app in the store, access times included.
  private func state(_ fixture: SealedFixture) throws -> String {
    let result = try Program.run([
      "python3", Self.stateProgram, "state", fixture.backing(SealedFixture.localApp),
    ])
    #expect(result.status == 0, "\(result.errors)")
    return result.output
  }

  @Test(arguments: [nil, "nohandles", "nopassthrough", "strictatime", "nohandles,strictatime"])
  func everydayProgramsWorkAndChangeNothing(options: String?) throws {
    let fixture = try SealedFixture(options: options)
    let before = try state(fixture)
    let work = try TemporaryDirectory()
    let used = try Program.run([
      "sh", "-c", Self.script, "sh", fixture.path(SealedFixture.localApp), work.path,
    ])
    #expect(used.status == 0, "\(used.output)\(used.errors)")
    #expect(try state(fixture) == before)
    #expect(try fixture.mounted.count("sealRefusals") == 0)
  }

  @Test func everydayProgramsWorkWithoutRoot() throws {
    let nobody = Account(name: "nobody", uid: 65534, gid: 65534, home: "/")
    let fixture = try SealedFixture(owner: nobody)
    let before = try state(fixture)
    let work = try TemporaryDirectory(mode: 0o777)
    let used = try Program.runAsNobody(
      ["sh", "-c", Self.script, "sh", fixture.path(SealedFixture.localApp), work.path],
      environment: ["HOME": work.path])
    #expect(used.status == 0, "\(used.output)\(used.errors)")
    #expect(try state(fixture) == before)
    for change in [
      "echo x >> \"$1\"", "chmod 777 \"$1\"", "rm -f \"$1\"", "mv \"$1\" \"$1.x\"", "touch \"$1\"",
    ] {
      let tried = try Program.runAsNobody(
        ["sh", "-c", change, "sh", fixture.path(SealedFixture.localApp + "/Contents/Resources/page.html")])
      #expect(
        tried.isRefusal && tried.errors.contains("Read-only file system"), "\(change): \(tried)")
    }
    #expect(try state(fixture) == before)
  }

  /// Opening again is one request, and reading is none.
  @Test func whatWasCheckedCostsNothingMore() throws {
    let fixture = try SealedFixture(settled: true)
    let status = try fixture.mounted.run("status", fixture.mounted.store).output
    try #require(try fixture.mounted.flag("passthrough"), "\(status)")
    let client = try Client()
    let ordinary = fixture.path("Users/Shared/work/file")
    try SealedFixture.command(
      "cp", fixture.path(SealedFixture.localApp) + "/Contents/Resources/large", ordinary)
    func requests(_ path: String) throws -> Int {
      for _ in 0..<2 {
        #expect(try client.errno("open", path, "\(O_RDONLY)") == 0)
        #expect(try client.errno("close all") == 0)
      }
      let before = try fixture.mounted.settledRequests()
      for _ in 0..<20 {
        let file = try #require(try client.run("open", path, "\(O_RDONLY)").words.first)
        #expect(try client.errno("read", file, "\(1 << 20)") == 0)
        #expect(try client.errno("close", file) == 0)
      }
      return try fixture.mounted.settledRequests() - before
    }
    // On a busy machine names and attributes expire between two openings, and are asked for again: what one
    // opening costs is what the cheapest of some rounds cost.
    func fewest(_ path: String) throws -> Int? { try (0..<5).map { _ in try requests(path) }.min() }
    let there = try fewest(ordinary)
    #expect(try fewest(fixture.path(SealedFixture.localApp) + "/Contents/Resources/large") == there)
  }

  /// Many large files are read for their seal at once, and nobody else waits for that.
  @Test func largeFilesHoldNobodyUp() throws {
    let names = (0..<12).map { "large\($0)" }
    let fixture = try SealedFixture { fixture in
      // Sparse, so that only the processor has to do with it.
      for name in names {
        let path = fixture.backing("\(SealedFixture.localApp)/Contents/Resources/\(name)")
        try SealedFixture.command("truncate", "-s", "128M", path)
      }
      try fixture.signAgain(SealedFixture.localApp)
    }
    let clients = try names.map { _ in try Client() }
    let other = try Client()
    let resources = fixture.path(SealedFixture.localApp) + "/Contents/Resources/"
    #expect(try other.errno("open", resources + "page.html", "\(O_RDONLY)") == 0)
    for (client, name) in zip(clients, names) { try client.send("open", resources + name, "\(O_RDONLY)") }
    usleep(20_000)
    var waiting = clients
    var doneMeanwhile = 0
    for number in 0..<20 {
      let name = fixture.path("Users/Shared/work/new\(number)")
      #expect(try other.errno("create", name, "\(0o644)") == 0)
      #expect(try other.errno("open", resources + "two words.txt", "\(O_RDONLY)") == 0)
      waiting = try waiting.filter { try $0.answer(milliseconds: 0) == nil }
      if !waiting.isEmpty { doneMeanwhile += 1 }
    }
    #expect(doneMeanwhile > 0)
    for client in waiting { #expect(try client.answer(milliseconds: patience)?.errno == 0) }
  }

  @Test func signalsDoNotEndAnOpenThatTakesLong() throws {
    let fixture = try SealedFixture { fixture in
      let path = fixture.backing("\(SealedFixture.localApp)/Contents/Resources/wide")
      try SealedFixture.command("truncate", "-s", "512M", path)
      try fixture.signAgain(SealedFixture.localApp)
    }
    // The C library's own call, since Python's tries again.
    let script = """
      import ctypes, signal, sys
      count = [0]
      def ring(*_): count[0] += 1
      signal.signal(signal.SIGALRM, ring)
      signal.siginterrupt(signal.SIGALRM, True)
      signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
      libc = ctypes.CDLL(None, use_errno=True)
      result = libc.open(sys.argv[1].encode(), 0)
      print(ctypes.get_errno() if result < 0 else "opened")
      """
    let path = fixture.path(SealedFixture.localApp) + "/Contents/Resources/wide"
    let opened = try Program.run(["python3", "-c", script, path])
    #expect(opened.output == "opened\n", "\(opened.output)\(opened.errors)")
  }

  /// Who waits for the same file waits for one reading of it, and gets the same answer.
  @Test(arguments: [false, true])
  func manyMayWaitForOneFile(isDamaged: Bool) throws {
    let fixture = try SealedFixture { fixture in
      let path = fixture.backing("\(SealedFixture.localApp)/Contents/Resources/wide")
      try SealedFixture.command("truncate", "-s", "256M", path)
      try fixture.signAgain(SealedFixture.localApp)
      if isDamaged {
        try SealedFixture.command("sh", "-c", "printf x | dd of=\"$1\" seek=1 conv=notrunc", "sh", path)
      }
    }
    let clients = try (0..<20).map { _ in try Client() }
    for client in clients {
      try client.send(
        "open", fixture.path(SealedFixture.localApp) + "/Contents/Resources/wide", "\(O_RDONLY)")
    }
    for client in clients {
      #expect(try client.answer(milliseconds: patience)?.errno == (isDamaged ? EIO : 0))
    }
  }
}
