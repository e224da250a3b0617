// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct MountTests {
  @Test(arguments: [false, true])
  func mountStatusUnmountAndAgain(asNobody: Bool) throws {
    let mounted = try MountedStore(asNobody: asNobody)
    for _ in 0..<3 {
      let mount = try mounted.run("mount", mounted.store, mounted.point)
      #expect(mount.status == 0 && mount.errors.isEmpty, "\(mount.errors)")
      #expect(mounted.isMounted)
      let status = try mounted.run("status", mounted.store)
      #expect(status.status == 0 && status.output.contains(asNobody ? "rootless mode" : "system mode"))
      let pid = try #require(try mounted.daemon())
      let unmount = try mounted.run("unmount", mounted.point)
      #expect(unmount.status == 0 && unmount.errors.isEmpty, "\(unmount.errors)")
      // It returns when the daemon has ended, so that the next mount works at once.
      #expect(try Program.waitForEnd(pid, milliseconds: 0))
      #expect(!mounted.isMounted)
    }
    #expect(try mounted.run("unmount", mounted.point).status == ExitCode.notMounted.rawValue)
  }

  @Test func secondDaemonIsRefusedByName() throws {
    let mounted = try MountedStore()
    #expect(try mounted.run("mount", mounted.store, mounted.point).status == 0)
    let other = try mounted.temporary.makeDirectory("other")
    let result = try mounted.run("mount", mounted.store, other)
    #expect(result.status == ExitCode.busy.rawValue)
    #expect(result.errors.contains("pid \(try #require(try mounted.daemon()))"))
    #expect(result.errors.contains("mounted at \(mounted.point)"))
    #expect(try mounted.run("check", mounted.store, "--repair").status == ExitCode.busy.rawValue)
    #expect(try mounted.run("check", mounted.store).status == 0)
  }

  @Test func mountPointsThatWillNotDo() throws {
    let mounted = try MountedStore()
    try mounted.temporary.makeDirectory("full")
    try mounted.temporary.write("x", to: "full/file")
    try mounted.temporary.write("x", to: "file")
    try mounted.temporary.makeDirectory("taken")
    #expect(mount("tmpfs", mounted.temporary.appending("taken"), "tmpfs", 0, nil) == 0)
    for (name, code, words) in [
      ("missing", ExitCode.failed, "does not exist; create it with 'mkdir"),
      ("full", .failed, "is not empty"),
      ("file", .failed, "is not a directory"), ("taken", .busy, "tmpfs (tmpfs) is mounted there"),
      ("store", .failed, "overlap; choose another mount point"),
      ("store/tree/Volumes", .failed, "overlap; choose another mount point"),
    ] {
      let result = try mounted.run("mount", mounted.store, mounted.temporary.appending(name))
      #expect(result.status == code.rawValue, "\(name)")
      #expect(result.errors.contains(words), "\(name): \(result.errors)")
      #expect(result.errors.contains(mounted.temporary.appending(name)))
    }
    #expect(try mounted.temporary.names(in: "full") == ["file"])
    #expect(
      try mounted.run("mount", mounted.store, mounted.temporary.appending("full"), "-o", "nonempty").status
        == 0)
  }

  @Test(arguments: [false, true])
  func deadMountIsToldAndCleared(asNobody: Bool) throws {
    let mounted = try MountedStore(asNobody: asNobody)
    #expect(try mounted.run("mount", mounted.store, mounted.point).status == 0)
    for verb in ["mount", "unmount"] {
      try mounted.killDaemon()
      #expect(mounted.isMounted)
      let status = try mounted.run("status", mounted.point)
      #expect(status.status == ExitCode.failed.rawValue && status.errors.contains("was killed"))
      let result =
        try verb == "mount"
        ? mounted.run("mount", mounted.store, mounted.point) : mounted.run("unmount", mounted.point)
      #expect(result.status == 0, "\(result.errors)")
      #expect(result.errors.contains("removed a dead mount from \(mounted.point)"))
    }
    #expect(!mounted.isMounted)
  }

  @Test func busyMountTellsWhoHoldsIt() throws {
    let mounted = try MountedStore()
    #expect(try mounted.run("mount", mounted.store, mounted.point).status == 0)
    let sleeper = Process()
    sleeper.executableURL = URL(fileURLWithPath: "/bin/sleep")
    sleeper.arguments = ["1000"]
    sleeper.currentDirectoryURL = URL(fileURLWithPath: mounted.point + "/Users")
    try Program.withSignalsUnblocked { try sleeper.run() }
    let result = try mounted.run("unmount", mounted.point)
    #expect(result.status == ExitCode.busy.rawValue)
    #expect(
      result.errors.contains(
        "pid \(sleeper.processIdentifier) (sleep): working directory \(mounted.point)/Users"))
    #expect(mounted.isMounted)
    let pid = try #require(try mounted.daemon())
    // Detached, the mount lives on for him who has it.
    #expect(try mounted.run("unmount", mounted.point, "--lazy").status == 0)
    #expect(!mounted.isMounted)
    #expect(try !Program.waitForEnd(pid, milliseconds: 200))
    // A process that Foundation starts may have the gentler signals blocked.
    #expect(kill(sleeper.processIdentifier, SIGKILL) == 0)
    sleeper.waitUntilExit()
    #expect(try Program.waitForEnd(pid))
  }

  @Test func signalDetachesABusyMountAndTheSecondOneEndsIt() throws {
    let mounted = try MountedStore()
    #expect(try mounted.run("mount", mounted.store, mounted.point).status == 0)
    let held = try TemporaryDirectory.open(mounted.point + "/Users")
    let pid = try #require(try mounted.daemon())
    #expect(kill(pid, SIGTERM) == 0)
    #expect(try !Program.waitForEnd(pid, milliseconds: 300))
    #expect(!mounted.isMounted)
    #expect(try held.fd.entries().count == 1)
    #expect(kill(pid, SIGTERM) == 0)
    #expect(try Program.waitForEnd(pid))
    #expect(held.fd.raw >= 0)
  }

  @Test func storeOnAReadOnlyDiskIsMountedReadOnly() throws {
    let mounted = try MountedStore()
    let disk = try SmallDisk(bytes: 1 << 20, files: 200)
    let store = disk.path + "/store"
    #expect(try mounted.run("init", store).status == 0)
    try disk.remount(readOnly: true)
    let refused = try mounted.run("mount", store, mounted.point)
    #expect(refused.status == ExitCode.failed.rawValue && refused.errors.contains("mount -o ro"))
    let mount = try mounted.run("mount", store, mounted.point, "-o", "ro")
    #expect(mount.status == 0, "\(mount.errors)")
    let root = try TemporaryDirectory.open(mounted.point)
    #expect(try root.fd.entries().count == 7)
    do { try root.close() }
    // Its lock is one that others could have as well.
    if KernelRelease.own >= KernelRelease(6, 9) {
      let restart = try mounted.run("restart", mounted.point)
      #expect(restart.status == 0, "\(restart.errors)")
    }
    #expect(try mounted.run("unmount", mounted.point).status == 0)
  }

  @Test func storeOnAFullDiskIsMounted() throws {
    let mounted = try MountedStore()
    let disk = try SmallDisk(bytes: 1 << 20, files: 49)
    let store = disk.path + "/store"
    #expect(try mounted.run("init", store).status == 0)
    var number = 0
    while case let raw = creat("\(disk.path)/\(number)", 0o600), raw >= 0 {
      _ = OwnedFD(owning: raw)
      number += 1
    }
    #expect(number > 0)
    let mount = try mounted.run("mount", store, mounted.point)
    #expect(mount.status == 0, "\(mount.errors)")
    #expect(creat(mounted.point + "/Users/Shared/file", 0o644) == -1 && Errno.last == .ENOSPC)
    #expect(try mounted.run("unmount", mounted.point).status == 0)
  }

  @Test func signalUnmounts() throws {
    let mounted = try MountedStore()
    #expect(try mounted.run("mount", mounted.store, mounted.point).status == 0)
    let pid = try #require(try mounted.daemon())
    // Those that must not matter to it.
    for ignored in [SIGHUP, SIGIO, SIGPIPE] { #expect(kill(pid, ignored) == 0) }
    #expect(try mounted.daemon() == pid)
    #expect(kill(pid, SIGTERM) == 0)
    #expect(try Program.waitForEnd(pid))
    #expect(!mounted.isMounted)
  }

  @Test func remountTurnsWritingOffAndOn() throws {
    let mounted = try MountedStore()
    let file = mounted.point + "/Users/Shared/file"
    #expect(
      try mounted.run("mount", mounted.store, mounted.point, "-o", "noatime,fsname=my store").status == 0)
    #expect(try MountTable.current().top(at: mounted.point)?.source == "my store")
    #expect(try mounted.run("mount", "-o", "remount,ro", mounted.point).status == 0)
    #expect(creat(file, 0o644) == -1 && Errno.last == .EROFS)
    #expect(try mounted.run("mount", "-o", "remount,rw", mounted.store, mounted.point).status == 0)
    let raw = creat(file, 0o644)
    #expect(raw >= 0)
    let open = OwnedFD(owning: raw)
    let refused = try mounted.run("mount", "-o", "remount,ro", mounted.point)
    #expect(refused.status == ExitCode.busy.rawValue && refused.errors.contains("open for writing"))
    #expect(open.fd.raw == raw)
    // What was not named stayed as it was.
    let options = try MountTable.current().top(at: mounted.point)?.options.split(separator: ",") ?? []
    #expect(options.contains("noatime") && options.contains("nodev") && options.contains("rw"))
    #expect(try mounted.run("mount", "-o", "remount,relatime,noexec", mounted.point).status == 0)
    let changed = try MountTable.current().top(at: mounted.point)?.options.split(separator: ",") ?? []
    #expect(changed.contains("noexec") && changed.contains("relatime") && !changed.contains("noatime"))
  }

  @Test func homesAreMadeThroughTheMount() throws {
    let mounted = try MountedStore()
    #expect(try mounted.run("mount", mounted.store, mounted.point).status == 0)
    let home = mounted.point + "/Users/nobody"
    // The kernel now remembers that it is not there.
    #expect(access(home, F_OK) == -1)
    #expect(try mounted.run("user", "add", "nobody", "--store", mounted.store).status == 0)
    #expect(access(home + "/Public/Drop Box", F_OK) == 0)
    #expect(
      try mounted.run("user", "remove", "nobody", "--delete-home", "--store", mounted.store).status == 0)
    #expect(access(home, F_OK) == -1)
    #expect(try mounted.temporary.names(in: "store/tree/Users") == ["Shared"])
  }

  @Test func othersMayAskAndNotUnmount() throws {
    let mounted = try MountedStore()
    #expect(try mounted.run("mount", mounted.store, mounted.point).status == 0)
    let status = try Program.runAsNobody([Program.insula, "status", mounted.point])
    #expect(status.status == 0, "\(status.errors)")
    let unmount = try Program.runAsNobody([Program.insula, "unmount", mounted.point])
    #expect(unmount.status == ExitCode.notPermitted.rawValue)
    #expect(mounted.isMounted)
  }

  @Test func ordinaryUserCantUseTheStoreOfAll() throws {
    let mounted = try MountedStore()
    for words in [["mount", mounted.store, mounted.point], ["check", mounted.store]] {
      let result = try Program.runAsNobody([Program.insula] + words)
      #expect(result.status == ExitCode.notPermitted.rawValue, "\(result.errors)")
      #expect(result.errors.contains(mounted.store))
    }
  }

  @Test func rootDoesNotMountAUsersStore() throws {
    let mounted = try MountedStore(asNobody: true)
    let result = try Program.run([Program.insula, "mount", mounted.store, mounted.point])
    #expect(result.status == ExitCode.notPermitted.rawValue)
    #expect(result.errors.contains("belongs to nobody"))
  }

  @Test func argumentThatIsNotUTF8IsNamed() throws {
    let result = try Program.run(["sh", "-c", "\(Program.insula) mount \"$(printf 'a\\377')\" /x"])
    #expect(result.status == ExitCode.usage.rawValue && result.errors.contains("is not UTF-8"))
  }

  @Test func defaultsOfAUserNeedNoArgument() throws {
    let mounted = try MountedStore(asNobody: true)
    let home = try mounted.temporary.makeDirectory("home", mode: 0o1777)
    let before = try mounted.run("mount")
    #expect(before.status == ExitCode.noStore.rawValue && before.errors.contains("insula init"))
    #expect(try mounted.run("init").status == 0)
    let mount = try mounted.run("mount")
    #expect(mount.status == 0 && mount.errors == "insula: created the mount point \(home)/Insula\n")
    let status = try mounted.run("status")
    #expect(status.output.hasPrefix("\(home)/.local/share/insula is mounted at \(home)/Insula"))
    #expect(try mounted.run("unmount").status == 0)
  }
}
