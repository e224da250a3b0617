// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A mount that is taken away ends, whoever has a copy of it in a mount namespace of their own.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct PinnedMountTests {
  /// A process of a stranger's that keeps a mount; it ends with this object.
  private final class Keeper {
    let pid: Int32

    init(_ line: String, _ user: Account, _ point: String) throws {
      let begun = try Program.run([
        "setpriv", "--reuid=\(user.uid)", "--regid=\(user.gid)", "--clear-groups", "sh", "-c",
        "POINT=\(point) unshare -Urm --propagation \(line) >/dev/null 2>&1 & echo $!",
      ])
      let pid = try #require(Int32(begun.output.dropLast()))
      self.pid = pid
      #expect(eventually { FD.text(of: "/proc/\(pid)/comm", limit: 64) == "sleep\n" })
    }

    deinit { kill(pid, SIGKILL) }
  }

  /// How it is kept, and by which lines it is taken away.
  @Test(
    arguments: [false, true],
    [
      "private sleep 600", "slave sleep 600", "unchanged sleep 600",
      "private sh -c 'cd $POINT; exec sleep 600'", "private sh -c 'exec 9<$POINT/Users; exec sleep 600'",
    ])
  func mountEndsWhoeverKeepsIt(rootless: Bool, line: String) throws {
    // A user's own mount is closed to strangers, who can only have a copy of it.
    guard !rootless || !line.contains("9<") else { return }
    let stranger = try TemporaryAccount()
    let mounted = try MountedStore.mounted(
      owner: rootless ? Account(name: "nobody", uid: 65534, gid: 65534, home: "/") : nil)
    for unmount in [["unmount"], ["unmount", "--lazy"], nil] {
      let daemon = try #require(try mounted.daemon())
      let keeper = try Keeper(line, stranger.account, mounted.point)
      if let unmount {
        let result = try mounted.run(unmount + [mounted.point])
        #expect(result.status == 0, "\(unmount): \(result.errors)")
      } else {
        #expect(try Program.run(["umount", mounted.point]).status == 0)
      }
      #expect(try Program.waitForEnd(daemon), "\(unmount ?? [])")
      let log = mounted.daemonLog ?? ""
      #expect(log.contains("pid \(keeper.pid) (sleep): ") || !line.hasPrefix("private") || rootless, "\(log)")
      try mounted.mount()
      #expect(try mounted.run("status", mounted.store).status == 0)
    }
  }

  /// Also where the machine has one below a directory that apps see.
  @Test func appsSeeNoTreeInTheSystemsDirectories() throws {
    let fixture = try RunFixture()
    let home = fixture.mounted.path("Users/\(fixture.user.name)")
    #expect(try fixture.shell("printf told > \(home)/Documents/secret").status == 0)
    let user = fixture.user
    let seen = try Program.run([
      "unshare", "-m", "--propagation", "private", "sh", "-ec",
      """
      mount --bind "$1" /usr/share
      exec setpriv --reuid=\(user.uid) --regid=\(user.gid) --clear-groups "$2" run --store "$1" "$3" -- \
        sh -c 'ls -A /usr/share; cat /usr/share/Users/\(user.name)/Documents/secret; echo end'
      """, "sh", fixture.mounted.point, Program.insula, RunFixture.identifier,
    ])
    #expect(seen.output == "end\n", "\(seen.errors)")
  }

  /// Neither the keeper of an app nor the sandbox has any mounts but those that the app has.
  @Test(arguments: [false, true]) func appsKeepNoMountOfOthers(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let other = try MountedStore.mounted()
    func device(_ point: String) throws -> DeviceNumber {
      try #require(try MountTable.current().top(at: point)).device
    }
    let devices = [try device(other.point), try device(fixture.mounted.point)]
    let begun = try fixture.shell(
      "\"$INSULA\" run --store \"$POINT\" \"$APP\" -- sleep 60 > /dev/null 2>&1 & running 1; sleep 0.5")
    #expect(begun.status == 0, "\(begun.errors)")
    var names: Set<String> = []
    for pid in try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap({ Int32($0) }) {
      let status = FD.text(of: "/proc/\(pid)/status", limit: 1 << 16) ?? ""
      // A user's own daemon, and its helper that unmounts, are where the user is, and so are the programs
      // that other tests run as the same user.
      let isOurs = !rootless || ["bwrap", "sleep"].contains { status.hasPrefix("Name:\t\($0)\n") }
      guard isOurs,
        status.contains("\nUid:\t\(fixture.user.uid)\t"),
        let table = FD.text(of: "/proc/\(pid)/mountinfo", limit: 1 << 24)
      else { continue }
      names.insert(String(status.prefix { $0 != "\n" }))
      let kept = MountTable(parsing: table).entries.filter { devices.contains($0.device) }
      #expect(kept.isEmpty, "\(status.prefix { $0 != "\n" }): \(kept)")
    }
    #expect(names.contains("Name:\tbwrap") && names.contains("Name:\tsleep"), "\(names)")
    let daemon = try #require(try other.daemon())
    #expect(try other.run("unmount", other.point).status == 0)
    #expect(try Program.waitForEnd(daemon))
    #expect(try fixture.shell("insula ps | wc -l").output == "2\n")
  }
}
