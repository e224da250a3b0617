// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A worker dies when something else has changed as well: what the mount was started with, or where it lies.
@Suite(.enabled(if: MountedStore.isPossible && KernelRelease.own >= KernelRelease(6, 9)))
struct MisfortuneTests {
  /// Kills the process that serves, and waits for the next one.
  private func replace(in mounted: MountedStore) throws {
    let before = try #require(try mounted.daemon())
    #expect(kill(before, SIGKILL) == 0)
    #expect(try Program.waitForEnd(before))
    #expect(try eventually { try mounted.daemon().map { $0 != before } ?? false })
  }

  /// The service manager of a session ends with the session, and a mount need not.
  @Test func serviceManagerMayBeGone() throws {
    let mounted = try MountedStore()
    let path = mounted.temporary.appending("notify")
    let script = """
      import os, socket, subprocess, sys
      manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
      manager.bind(sys.argv[1])
      subprocess.run(sys.argv[2:], env=dict(os.environ, NOTIFY_SOCKET=sys.argv[1]), check=True)
      """
    let words = [Program.insula, "mount", mounted.store, mounted.point]
    let result = try Program.run(["/usr/bin/python3", "-c", script, path] + words)
    #expect(result.status == 0, "\(result.output)\(result.errors)")
    #expect(unlink(path) == 0)
    try replace(in: mounted)
    #expect(mounted.isMounted)
    #expect(try mounted.count("restarts") == 1)
    #expect(try mounted.unmount().status == 0)
  }

  /// A mount that was detached while it is used, and another one in its place.
  @Test(arguments: [false, true]) func detachedMountKeepsToItself(rootless: Bool) throws {
    let mounted = try MountedStore(asNobody: rootless)
    let other = mounted.temporary.appending("other")
    #expect(try mounted.run("init", other).status == 0)
    try mounted.mount()
    let keeper = try #require(try mounted.keeper())
    let text = "still there"
    #expect(
      FileManager.default.createFile(atPath: mounted.backing("Users/Shared/file"), contents: Data(text.utf8)))
    #expect(chmod(mounted.backing("Users/Shared/file"), 0o666) == 0)
    // Root may not enter a user's mount, so that user holds it.
    let holder = """
      "$@" unmount --lazy "$point" 9< /dev/null && "$@" mount "$other" "$point" 9< /dev/null || exit 1
      old=$("$@" status "$store" --json 9< /dev/null | grep -o '"pid" *: *[0-9]*' | grep -o '[0-9]*$')
      kill -KILL $old
      for try in $(seq 500); do
        new=$("$@" status "$store" --json 9< /dev/null | grep -o '"pid" *: *[0-9]*' | grep -o '[0-9]*$')
        [ -n "$new" ] && [ "$new" != "$old" ] && break
        sleep 0.02
      done
      kill -TERM $keeper
      sleep 0.5
      grep -q " $point fuse.insula " /proc/self/mounts || exit 2
      "$@" unmount "$point" 9< /dev/null || exit 3
      sleep 1
      cat <&9
      """
    let words = [
      "sh", "-c",
      "point=$1 other=$2 store=$3 keeper=$4; shift 4; exec 9< \"$point/Users/Shared/file\"; \(holder)", "sh",
      mounted.point, other, mounted.store, String(keeper),
    ]
    let become = mounted.owner.map {
      ["setpriv", "--reuid=\($0.uid)", "--regid=\($0.gid)", "--clear-groups"]
    }
    let environment = [
      "HOME": mounted.temporary.appending("home"), "XDG_RUNTIME_DIR": "", "XDG_DATA_HOME": "",
    ]
    let result = try Program.run((become ?? []) + words + [Program.insula], environment: environment)
    #expect(result.status == 0 && result.output.hasSuffix(text), "\(result)")
    #expect(try Program.waitForEnd(keeper))
    #expect(!mounted.isMounted)
  }

  private func threadsAreStopped(of process: Int32) throws -> Bool {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task").allSatisfy {
      ProcessID.field("State", of: "\(process)/task/\($0)")?.hasPrefix("T") == true
    }
  }

  /// What a worker was asked, and died before it did it, the next one is asked.
  @Test func endOutlivesAWorker() throws {
    let mounted = try MountedStore.mounted()
    let worker = try #require(try mounted.daemon())
    let keeper = try #require(try mounted.keeper())
    #expect(kill(worker, SIGSTOP) == 0)
    // A thread that waits for signals and has not stopped yet would take the SIGTERM with it.
    #expect(try eventually { try threadsAreStopped(of: worker) })
    #expect(kill(keeper, SIGTERM) == 0)
    // The keeper has passed it on when it waits for the next signal.
    let status = "/proc/\(worker)/status"
    #expect(
      eventually {
        let lines = FD.text(of: status, limit: 1 << 16)?.split(separator: "\n") ?? []
        return lines.contains { $0.hasPrefix("ShdPnd:") && $0.hasSuffix("4000") }
      })
    #expect(kill(worker, SIGKILL) == 0)
    #expect(try Program.waitForEnd(keeper))
    #expect(!mounted.isMounted)
  }

  /// Who can't find the store again would lose the mount.
  @Test func storeThatWasMovedIsNotLost() throws {
    let mounted = try MountedStore.mounted()
    let elsewhere = mounted.temporary.appending("elsewhere")
    #expect(rename(mounted.store, elsewhere) == 0)
    let refused = try mounted.run("restart", mounted.point)
    #expect(refused.status == 1)
    #expect(refused.errors.contains("can't take over from the running one, which goes on"), "\(refused)")
    // Another store has taken its place.
    #expect(try mounted.run("init", mounted.store).status == 0)
    #expect(try mounted.run("restart", mounted.point).status == 1)
    let log = FD.text(of: elsewhere + "/state/daemon.log", limit: 1 << 16) ?? ""
    #expect(log.contains("is not the one that is mounted"), "\(log)")
    #expect(mounted.isMounted)
    #expect(rename(mounted.store, mounted.temporary.appending("new")) == 0)
    #expect(rename(elsewhere, mounted.store) == 0)
    #expect(try mounted.run("restart", mounted.point).status == 0)
    #expect(try mounted.unmount().status == 0)
  }

  /// Who asks after a mount whose daemon was stopped does not wait for ever, and it can be taken away.
  @Test func stoppedDaemonIsTold() throws {
    let mounted = try MountedStore.mounted()
    let worker = try #require(try mounted.daemon())
    let keeper = try #require(try mounted.keeper())
    #expect(kill(worker, SIGSTOP) == 0)
    defer { kill(worker, SIGCONT) }
    func run(_ words: [String]) throws -> ProgramResult {
      try mounted.run(words, before: ["timeout", "60"])
    }
    let told = try run(["status", mounted.point])
    #expect(told.status == 1)
    #expect(told.errors.contains("its daemon does not answer"), "\(told)")
    #expect(try run(["unmount", "--lazy", mounted.point]).status == 0)
    #expect(!mounted.isMounted)
    kill(worker, SIGCONT)
    #expect(try Program.waitForEnd(keeper))
  }

  /// A full disk has the name of the note, and nothing in it.
  @Test func noteWithoutWordsIsTold() throws {
    let mounted = try MountedStore()
    let note = mounted.store + "/state/gave-up"
    #expect(FileManager.default.createFile(atPath: note, contents: Data()))
    let told = try mounted.run("status", mounted.store)
    #expect(
      told.output.contains("is not mounted: the process that serves has died again and again"), "\(told)")
  }
}
