// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What the kernel decides without asking a FUSE filesystem: it is as SEMANTICS.md says, or that page must
/// change.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .serialized)
struct KernelOnItsOwnTests {
  @Test func runningProgramIsBusyInItsOwnMountOnly() throws {
    let mounts = try TwoMounts()
    #expect(try Program.run(["cp", "/bin/cat", mounts.path(0, "program")]).status == 0)
    let (here, there) = (try Client(), try Client())
    let running = Process()
    // It waits for what nobody ever writes.
    let input = Pipe()
    running.executableURL = URL(fileURLWithPath: mounts.path(0, "program"))
    running.standardInput = input
    try Program.withSignalsUnblocked { try running.run() }
    defer { withExtendedLifetime(input) {} }
    #expect(try here.errno("open", mounts.path(0, "program"), "\(O_WRONLY)") == ETXTBSY)
    #expect(try there.errno("open", mounts.path(1, "program"), "\(O_WRONLY)") == 0)
    kill(running.processIdentifier, SIGKILL)
    running.waitUntilExit()
    // And the other way round: what is open for writing is not run in the same mount, and is in the other.
    let elsewhere = try Program.run([mounts.path(0, "program")])
    #expect(elsewhere.status == 0, "\(elsewhere.errors)")
    let refused = try Program.run([mounts.path(1, "program")])
    #expect(refused.status == 126 && refused.errors.contains("Text file busy"), "\(refused.errors)")
    #expect(try here.errno("open", mounts.path(0, "program"), "\(O_WRONLY)") == 0)
  }

  /// Where O_TRUNC comes with the open, the kernel looks only afterwards whether the file is being run.
  @Test func runningProgramIsEmptiedByAnOddOpen() throws {
    let mounted = try MountedStore.mounted()
    let program = mounted.path("Users/Shared/program")
    #expect(try Program.run(["cp", "/bin/cat", program]).status == 0)
    let running = Process()
    // It waits for what nobody ever writes.
    let input = Pipe()
    running.executableURL = URL(fileURLWithPath: program)
    running.standardInput = input
    try Program.withSignalsUnblocked { try running.run() }
    defer { withExtendedLifetime(input) {} }
    func size() throws -> off_t {
      var status = stat()
      guard stat(program, &status) == 0 else { throw Errno.last }
      return status.st_size
    }
    let client = try Client()
    for mode in [O_WRONLY, O_RDWR] {
      #expect(try client.errno("open", program, "\(mode | O_TRUNC)") == ETXTBSY)
      #expect(try size() > 0)
    }
    #expect(try client.errno("open", program, "\(O_RDONLY | O_TRUNC)") == ETXTBSY)
    #expect(try size() == 0)
    kill(running.processIdentifier, SIGKILL)
    running.waitUntilExit()
  }

  /// The kernel has no field for them in what FUSE answers; `lsattr` asks in another way.
  @Test func statxTellsNoFlags() throws {
    let mounted = try MountedStore.mounted()
    let file = mounted.path("Users/Shared/file")
    try "words".write(toFile: file, atomically: false, encoding: .utf8)
    #expect(try mounted.run("flags", "uchg,nodump", file).status == 0)
    defer { _ = try? mounted.run("flags", "nouchg,dump", file) }
    var status = clx_statx()
    #expect(clx_statx(AT_FDCWD, file, 0, 0xfff, &status) == 0)
    // Immutable, append-only, nodump.
    let flags: UInt64 = 0x10 | 0x20 | 0x40
    #expect(status.stx_attributes & flags == 0 && status.stx_attributes_mask & flags == 0)
    #expect(try Program.run(["lsattr", file]).output.hasPrefix("----i-d"))
  }

  /// The kernel asks nobody when someone watches an object of a FUSE filesystem; it asks about the way to it.
  @Test func whatOneReachesOneMayWatch() throws {
    let mounted = try MountedStore.mounted()
    let directory = mounted.path("Users/Shared/private")
    #expect(mkdir(directory, 0o700) == 0 && mkdir(directory + "/inner", 0o700) == 0)
    let script = """
      import ctypes, os, sys
      libc = ctypes.CDLL(None, use_errno=True)
      watch = libc.inotify_init1(os.O_NONBLOCK)
      for path in sys.argv[1], sys.argv[1] + '/inner':
        print(libc.inotify_add_watch(watch, os.fsencode(path), 0x100) > 0, end=' ')
      try: os.listdir(sys.argv[1])
      except PermissionError: print('refused')
      """
    let result = try Program.runAsNobody(["/usr/bin/python3", "-c", script, directory])
    #expect(result.output == "True False refused\n", "\(result.errors)")
  }

  @Test func listOfLocksDoesNotHaveThem() throws {
    let mounted = try MountedStore.mounted()
    let file = mounted.path("Users/Shared/file")
    let script = """
      import fcntl, os, sys
      one, other = open(sys.argv[1], 'w'), open(sys.argv[1])
      fcntl.lockf(one, fcntl.LOCK_EX); fcntl.flock(other, fcntl.LOCK_SH)
      inode = str(os.fstat(one.fileno()).st_ino)
      print(sum(line.split()[-3].endswith(':' + inode) for line in open('/proc/locks')))
      """
    #expect(try Program.run(["python3", "-c", script, file]).output == "0\n")
    let plain = try TemporaryDirectory()
    #expect(try Program.run(["python3", "-c", script, plain.appending("file")]).output == "2\n")
  }

  /// What the kernel has in its cache nobody else learns of.
  @Test(arguments: [true, false])
  func readingFromTheCacheIsNoAccessWithoutPassthrough(passes: Bool) throws {
    let mounted = try MountedStore.mounted(options: passes ? "strictatime" : "strictatime,nopassthrough")
    let file = mounted.path("Users/Shared/file")
    try "words".write(toFile: file, atomically: false, encoding: .utf8)
    let script = "cat $0 >/dev/null; stat -c %x $0; sleep 0.1; cat $0 >/dev/null; stat -c %x $0"
    let times = try Program.run(["sh", "-c", script, file]).output.split(separator: "\n")
    try #require(times.count == 2)
    #expect((times[0] != times[1]) == (try mounted.flag("passthrough")))
  }

  @Test(arguments: [nil, "nopassthrough"])
  func syncfsTellsNobodyAndFsyncReachesTheDisk(options: String?) throws {
    let disk = try Ext4(megabytes: 64)
    let mounted = try MountedStore.mounted(options: options, store: disk.path + "/store")
    let written = try sectorsWritten(at: disk.path)
    // In a process of its own: one that is started from here would close a copy of the file, which costs a
    // FLUSH.
    let writer = try Client()
    #expect(try writer.errno("create", mounted.path("Users/Shared/file"), "\(0o644)") == 0)
    let block = String(repeating: "x", count: 1 << 16)
    for _ in 0..<64 { #expect(try writer.errno("write", "0", block) == 0) }
    let before = try mounted.settledRequests()
    #expect(try writer.errno("syncfs", "0") == 0)
    #expect(try mounted.settledRequests() == before)
    #expect(try writer.errno("fsync", "0") == 0)
    // Of half a kilobyte each, whatever the disk's own are.
    #expect(try sectorsWritten(at: disk.path) - written >= 64 << 16 / 512)
    #expect(try mounted.settledRequests() == before + 1)
  }

  /// What has been written to the disk that something lies on, in sectors.
  private func sectorsWritten(at path: String) throws -> Int {
    let status = try path.withName { (name) throws(Errno) in try FD.cwd.status(of: name) }
    let device = "\(clx_major(UInt64(status.st_dev))):\(clx_minor(UInt64(status.st_dev)))"
    let text = try #require(FD.text(of: "/sys/dev/block/\(device)/stat", limit: 4096))
    let numbers = text.split(separator: " ").compactMap { Int($0) }
    return try #require(numbers.count > 6 ? numbers[6] : nil)
  }

  @Test func handlesOfTheMountAreNotToBeHad() throws {
    let mounted = try MountedStore.mounted()
    guard try mounted.flag("passthrough") else {
      print("not tested: the kernel is older than Linux 6.9, as is one without passthrough")
      return
    }
    let path = mounted.path("Users/Shared/file")
    close(try check(creat(path, 0o644)))
    let root = try TemporaryDirectory.open(mounted.point)
    var bytes = [UInt8](repeating: 0, count: 128)
    var length: UInt32 = 0
    var type: Int32 = 0
    #expect(clx_name_to_handle_at(AT_FDCWD, path, &bytes, 128, &length, &type, 0) == -1)
    #expect(Errno.last == .EOPNOTSUPP)
    // An identity to compare with may be had from Linux 6.5 on; nothing is opened by it, nor by one that was
    // guessed.
    let identityOnly: Int32 = 0x200
    #expect(clx_name_to_handle_at(AT_FDCWD, path, &bytes, 128, &length, &type, identityOnly) == 0)
    #expect(
      clx_open_by_handle_at(root.fd.raw, bytes, length, type, CLX_O_PATH) == -1 && Errno.last == .ESTALE)
    // The root's number is 1: the upper half of it, the lower half, its generation.
    let guessed: [UInt32] = [0, 1, 0]
    let opened = guessed.withUnsafeBytes { guessed in
      clx_open_by_handle_at(root.fd.raw, Array(guessed), 12, 0x81, CLX_O_PATH)
    }
    #expect(opened == -1 && Errno.last == .ESTALE)
  }
}
