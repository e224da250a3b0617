// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Root mounts on the directory that was named, below a directory of a user's who exchanges it meanwhile.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct MountPointTests {
  private static let user: uid_t = 54_321

  /// Two stores, each with a directory of the user's and a directory of root's that must stay bare.
  private final class Fixture: Sendable {
    let mounted: MountedStore
    let place: TemporaryDirectory
    let decoy: TemporaryDirectory

    init() throws {
      (mounted, place, decoy) = (try MountedStore(), try TemporaryDirectory(), try TemporaryDirectory())
      for name in ["d", "d/mnt", "other", "other/mnt", "pause"] { try place.makeDirectory(name) }
      try decoy.makeDirectory("mnt")
      try decoy.write("root's", to: "mnt/file")
      for name in ["", "/d", "/d/mnt", "/other", "/other/mnt"] {
        guard chown(place.path + name, user, user) == 0 else { throw Errno.last }
      }
    }

    deinit {
      for path in mounts { _ = try? LinuxIO.unmount(path, lazily: true) }
    }

    /// Where the store is mounted.
    var mounts: [String] {
      let entries = (try? MountTable.current())?.entries ?? []
      return entries.filter { $0.type == "fuse.insula" && $0.source == mounted.store }.map(\.mountPoint)
    }

    /// Starts to mount, and exchanges the directory above when that stops at a point.
    func mount(stoppingAt point: String, kind: String) throws -> ProgramResult {
      let attack = """
        cd "$1"; : >"pause/$2"
        INSULA_HALT=$PWD/pause "$INSULA" mount "$STORE" "$PWD/d/mnt" & mount=$!
        n=0
        until [ -e pause/reached ]; do
          n=$((n + 1)); [ $n -lt 3000 ] || { kill $mount; exit 98; }
          kill -0 $mount 2>/dev/null || exit 99
          sleep 0.01
        done
        mv d was
        case $3 in link) ln -s "$DECOY" d ;; directory) mv other d ;; esac
        : >pause/go
        wait $mount
        """
      return try Program.run(
        ["sh", "-c", attack, "sh", place.path, point, kind],
        environment: [
          "INSULA": Program.insula, "STORE": mounted.store, "DECOY": decoy.path, "HOME": place.path,
          "XDG_RUNTIME_DIR": "", "XDG_DATA_HOME": "",
        ])
    }

    func expectBareDecoy() throws {
      #expect(try MountTable.current().top(at: decoy.appending("mnt")) == nil)
      #expect(decoy.text(of: "mnt/file") == "root's")
    }
  }

  /// The directory is open by then: whatever has its path, it is the one.
  @Test(.enabled(if: isDebug, "needs a debug build"), arguments: ["link", "directory"])
  func theOpenedDirectoryIsMountedOn(kind: String) throws {
    let fixtures = try (0..<2).map { _ in try Fixture() }
    for fixture in fixtures {
      let mount = try fixture.mount(stoppingAt: "mountPointOpened", kind: kind)
      #expect(mount.status == 0, "\(mount)")
      #expect(fixture.mounts == [fixture.place.appending("was/mnt")])
      try fixture.expectBareDecoy()
    }
    // By its store, or by the place where it is by now; and the one does not take the other away.
    for (fixture, named) in zip(
      fixtures, [fixtures[0].mounted.store, fixtures[1].place.appending("was/mnt")])
    {
      let mounted = fixture.mounted
      let pid = try #require(try mounted.daemon())
      #expect(try mounted.run("status", named).status == 0)
      // Another worker knows it, too.
      try mounted.replaceWorker(byRestart: false)
      #expect(try mounted.daemon() != pid)
      let worker = try #require(try mounted.daemon())
      let unmount = try mounted.run("unmount", named)
      #expect(unmount.status == 0 && fixture.mounts.isEmpty, "\(unmount)")
      #expect(try Program.waitForEnd(worker, milliseconds: 0))
      try fixture.expectBareDecoy()
      #expect(try mounted.run("unmount", named).status == 6)
    }
  }

  /// Before that, a link that comes to be on the way is not followed.
  @Test(.enabled(if: isDebug, "needs a debug build")) func noLinkIsFollowedToIt() throws {
    for fixture in try (0..<2).map({ _ in try Fixture() }) {
      let refused = try fixture.mount(stoppingAt: "mountPointFound", kind: "link")
      #expect(refused.status == 1 && refused.errors.contains("a symbolic link has come"), "\(refused)")
      #expect(fixture.mounts.isEmpty)
      try fixture.expectBareDecoy()
      // What the user puts there instead is the user's.
      let other = try Fixture()
      #expect(try other.mount(stoppingAt: "mountPointFound", kind: "directory").status == 0)
      #expect(other.mounts == [other.place.appending("d/mnt")])
    }
  }

  /// A link of the user's that is there from the beginning is refused by name; root's own is followed.
  @Test func onlyOwnLinksLeadToIt() throws {
    for fixture in try (0..<2).map({ _ in try Fixture() }) {
      let link = fixture.place.appending("link")
      try #require(symlink(fixture.decoy.path, link) == 0 && lchown(link, Self.user, Self.user) == 0)
      for point in [link + "/mnt", link + "/mnt/", link + "/missing", "link/mnt"] {
        let refused = try fixture.mounted.run(
          ["mount", fixture.mounted.store, point], before: ["env", "--chdir=\(fixture.place.path)"])
        #expect(
          refused.status == 7 && refused.errors.contains("a symbolic link of another user's"), "\(refused)")
      }
      #expect(fixture.mounts.isEmpty)
      try fixture.expectBareDecoy()
      try #require(lchown(link, 0, 0) == 0 && unlink(fixture.decoy.appending("mnt/file")) == 0)
      let mount = try fixture.mounted.run("mount", fixture.mounted.store, link + "/mnt")
      #expect(mount.status == 0 && fixture.mounts == [fixture.decoy.appending("mnt")], "\(mount)")
      #expect(try fixture.mounted.run("unmount", link + "/mnt").status == 0)
    }
  }

  /// A user may move the directory above also later on; that is said, and what is mounted there is found.
  @Test func aMountIsFoundWhereItsDirectoryHasBeenMoved() throws {
    for fixture in try (0..<2).map({ _ in try Fixture() }) {
      let mount = try fixture.mounted.run("mount", fixture.mounted.store, fixture.place.appending("d/mnt"))
      #expect(mount.status == 0 && mount.errors.contains("\(fixture.place.path) belongs to uid"), "\(mount)")
      try #require(rename(fixture.place.appending("d"), fixture.place.appending("was")) == 0)
      try #require(symlink(fixture.decoy.path, fixture.place.appending("d")) == 0)
      #expect(fixture.mounts == [fixture.place.appending("was/mnt")])
      let unmount = try fixture.mounted.run("unmount", fixture.mounted.store)
      #expect(unmount.status == 0 && fixture.mounts.isEmpty, "\(unmount)")
    }
  }
}
