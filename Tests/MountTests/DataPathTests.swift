// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What a daemon does where the kernel can't pass data through, or won't: on overlayfs it refuses only when
/// the first file is opened.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .serialized)
struct DataPathTests {
  enum Place: CaseIterable { case plain, turnedOff, overlay, rootless }

  /// An overlay as a container has it, which goes with this object.
  private final class Overlay {
    private let temporary: TemporaryDirectory
    var path: String { temporary.appending("merged") }

    init() throws {
      temporary = try TemporaryDirectory(mode: 0o755)
      let script = """
        set -e; cd "$1"; mkdir base merged; mount -t tmpfs none base; mkdir base/lower base/upper base/work
        mount -t overlay overlay -o lowerdir=base/lower,upperdir=base/upper,workdir=base/work merged
        """
      let result = try Program.run(["sh", "-c", script, "sh", temporary.appending("")])
      guard result.status == 0 else { throw MountedStore.Failure(words: result.errors) }
    }

    deinit {
      for name in ["merged", "base"] { _ = umount2(temporary.appending(name), Int32(MNT_DETACH)) }
    }
  }

  private func fixture(_ place: Place, _ overlay: Overlay?) throws -> RunFixture {
    try RunFixture(
      rootless: place == .rootless, store: overlay.map { $0.path + "/store" },
      options: place == .turnedOff ? "nopassthrough" : nil)
  }

  /// One of two runs of an app: waits for the other by files beside the one that both map, but not for ever.
  private static let counter = """
    import errno, mmap, os, struct, sys, time
    me, place = int(sys.argv[1]), sys.argv[2]
    def done(what): os.close(os.open(place + '/' + what, os.O_CREAT | os.O_WRONLY, 0o600))
    def wait(what):
      end = time.monotonic() + 60
      while not os.path.exists(place + '/' + what):
        if time.monotonic() > end: sys.exit('nothing came of ' + what)
        time.sleep(0.01)
    if me: wait('mapped 0')
    file, told, seen = os.open(place + '/counters', os.O_RDWR), 'ok', None
    try:
      seen = mmap.mmap(file, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
      seen[0]
    except OSError as error: told = errno.errorcode[error.errno]
    done('mapped %d' % me)
    wait('counted 0' if me else 'mapped 1')
    for turn in range(1, 1001):
      if seen: seen[8 * me:8 * me + 8] = struct.pack('<Q', turn)
    if seen: seen.flush()
    done('counted %d' % me)
    wait('counted %d' % (1 - me))
    print(me, told)
    """

  @Test(arguments: Place.allCases)
  func twoRunsOfAnAppKeepWhatBothHaveCounted(place: Place) throws {
    let overlay = place == .overlay ? try Overlay() : nil
    defer { withExtendedLifetime(overlay) {} }
    let fixture = try fixture(place, overlay)
    let passthrough = try fixture.mounted.flag("passthrough")
    if place != .plain { #expect(!passthrough) }
    let prepared = try fixture.inside("head -c 4096 /dev/zero >\"$HOME/Documents/counters\"")
    try #require(prepared.status == 0, "\(prepared.errors)")
    try fixture.mounted.temporary.write(Self.counter, to: "counter.py")
    let script = """
      SCRIPT=$(cat '\(fixture.mounted.temporary.appending("counter.py"))')
      count() { run sh -c 'exec /usr/bin/python3 -c "$0" '$1' "$HOME/Documents"' "$SCRIPT"; }
      count 0 & first=$!
      count 1; second=$?
      wait $first; echo "status $? $second"
      """
    let result = try fixture.shell(script)
    let lines = result.output.split(separator: "\n").map(String.init).sorted()
    #expect(
      lines == ["0 ok", passthrough ? "1 ok" : "1 ENODEV", "status 0 0"], "\(result.output)\(result.errors)")
    // Past the mount, which root may not enter where it is a user's.
    let backing = fixture.mounted.backing(
      "Users/\(fixture.user.name)/Library/Containers/\(RunFixture.identifier)/Data/Documents/counters")
    let bytes = try Data(contentsOf: URL(fileURLWithPath: backing))
    let counts = (0..<2).map { number in
      bytes[8 * number..<8 * number + 2].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
    #expect(counts == [1000, passthrough ? 1000 : 0])
  }

  @Test(arguments: [
    (Place.turnedOff, "turned off by the mount option nopassthrough"),
    (.overlay, "refused by the kernel for the store's filesystem (overlay)"),
    (.rootless, "requires a daemon that runs as root"),
  ])
  func statusSaysWhyThereIsNone(place: Place, reason: String) throws {
    let overlay = place == .overlay ? try Overlay() : nil
    defer { withExtendedLifetime(overlay) {} }
    let owner = Account(name: "nobody", uid: 65534, gid: 65534, home: "/")
    let mounted = try MountedStore(
      owner: place == .rootless ? owner : nil, store: overlay.map { $0.path + "/store" })
    try mounted.mount(options: place == .turnedOff ? "nopassthrough" : nil)
    // Before anything of it is opened.
    for _ in 0..<2 {
      let status = try mounted.run("status", mounted.store)
      let lines = status.output.split(separator: "\n").map {
        $0.split(separator: " ", omittingEmptySubsequences: true)
      }
      let words = lines.map { $0.joined(separator: " ") }
      #expect(words.contains("passthrough no") && words.contains("passthrough reason \(reason)"), "\(words)")
      let client = try Client(uid: place == .rootless ? 65534 : 0)
      #expect(
        try client.errno("open", mounted.path("Users/Shared/file"), "\(O_RDWR | O_CREAT)", "\(0o600)") == 0)
    }
    // The next worker knows it, too.
    if let daemon = try mounted.daemon() {
      #expect(kill(daemon, SIGKILL) == 0)
      #expect(eventually { (try? mounted.count("restarts")) == 1 })
      #expect(try mounted.run("status", mounted.store).output.contains(reason))
    }
    guard place == .overlay else { return }
    let doctor = try mounted.run("doctor", mounted.store)
    #expect(doctor.output.contains("the kernel refuses passthrough"), "\(doctor.output)")
  }

  @Test func statusSaysThatThereIsSome() throws {
    let mounted = try MountedStore.mounted()
    guard try mounted.flag("passthrough") else {
      print("not tested: there is no passthrough here")
      return
    }
    #expect(try !mounted.run("status", mounted.store).output.contains("passthrough reason"))
  }
}
