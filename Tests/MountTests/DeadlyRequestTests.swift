// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

#if DEBUG
  /// A request by which each worker dies: whoever has sent it gets EIO, and nobody else notices.
  @Suite(
    .enabled(
      if: MountedStore.isPossible && KernelRelease.own >= KernelRelease(6, 9),
      "needs root, /dev/fuse and Linux 6.9"))
  struct DeadlyRequestTests {
    enum Way: CaseIterable {
      case system, throughDaemon, ignoringCase, rootless

      var options: [String] { self == .throughDaemon ? ["nopassthrough"] : [] }
    }

    // By the kernel's numbers. The second is slow work: more than one at once has threads of its own.
    private enum Call: UInt32 {
      case mkdir = 9, fallocate = 43

      var deed: String { self == .mkdir ? "make the directory" : "reserve room in" }
    }
    private static let read: UInt32 = 1

    /// Has the worker die at each such call from now on.
    private static func arm(_ order: String, _ call: Call = .mkdir, times: UInt32) throws {
      let file = try FD.cwd.open(order, O_RDWR)
      let words = [call.rawValue, read, times, 0, 0]
      #expect(words.withUnsafeBytes { pwrite(file.fd.raw, $0.baseAddress, $0.count, 0) } == 20)
    }

    private static func deaths(_ order: String) throws -> UInt32 {
      let file = try FD.cwd.open(order, O_RDONLY)
      var words = [UInt32](repeating: 0, count: 5)
      #expect(words.withUnsafeMutableBytes { pread(file.fd.raw, $0.baseAddress, $0.count, 0) } == 20)
      return words[4]
    }

    /// Users make a call at once and get what comes of that; others use the tree until all are done.
    private static let script = """
      import errno, os, sys
      place, call, each = sys.argv[1], sys.argv[2], int(sys.argv[3])
      users = [tuple(map(int, word.split(":"))) for word in sys.argv[4:]]
      def become(user):
          if os.geteuid() == 0: os.setgroups([]); os.setgid(user[1]); os.setuid(user[0])
      def makes(user):
          path = f"{place}/deadly-{user[0]}"
          try:
              if call == "mkdir": os.mkdir(path)
              else: os.posix_fallocate(os.open(path, os.O_CREAT | os.O_RDWR, 0o600), 0, 5000)
          except OSError as error: return error.errno
          return 0
      def uses(user, done):
          file = f"{place}/file-{user[0]}-{os.getpid()}"
          while True:
              with open(file, "w") as out: out.write("text")
              with open(file) as into: assert into.read() == "text"
              assert os.path.basename(file) in os.listdir(place)
              os.unlink(file)
              if os.read(done, 1) == b"": return 0
      done, over = os.pipe()
      os.set_blocking(done, False)
      def started(user, work):
          child = os.fork()
          if child: return child
          os.close(over)
          become(user)
          while True:
              try: code = work(user); break
              except BlockingIOError: continue
              except BaseException as error: print(user, repr(error), file=sys.stderr); code = 255; break
          os._exit(code)
      def code(child): return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
      others = [started(user, lambda user: uses(user, done)) for user in users for _ in range(2)]
      makers = [started(user, makes) for user in users for _ in range(each)]
      print(*[errno.errorcode.get(code(child), "made") for child in makers])
      os.close(over)
      print(*[code(child) for child in others])
      """

    @Test(.mayTake(seconds: 300), arguments: Way.allCases)
    func twoDieAndTheThirdRefuses(way: Way) throws { try attempt(.mkdir, way, each: 1) }

    /// Also where other threads serve it, and several such requests are under way.
    @Test(.mayTake(seconds: 300)) func slowWorkIsRefusedToo() throws {
      try attempt(.fallocate, .system, each: 3)
    }

    private func attempt(_ call: Call, _ way: Way, each: Int) throws {
      let accounts = way == .rootless ? [] : try (0..<2).map { _ in try TemporaryAccount() }
      defer { withExtendedLifetime(accounts) {} }
      let isRootless = way == .rootless
      let mounted = try MountedStore(
        owner: isRootless ? Account(name: "nobody", uid: 65534, gid: 65534, home: "/") : nil,
        initOptions: way == .ignoringCase ? ["--case-insensitive"] : [])
      let order = try TrapTests.mount(mounted, way.options)
      let users = isRootless ? [(65534, 65534)] : accounts.map { (Int($0.account.uid), Int($0.account.gid)) }
      let words =
        [
          "timeout", "60", "/usr/bin/python3", "-c", Self.script, mounted.path("Users/Shared"), "\(call)",
          "\(each)",
        ]
        + users.map { "\($0.0):\($0.1)" }
      try Self.arm(order, call, times: 1000)
      let result = try isRootless ? Program.runAsNobody(words) : Program.run(words)
      let makers = users.count * each
      let failures = repeatElement("EIO", count: makers).joined(separator: " ")
      let others = users.map { _ in "0 0" }.joined(separator: " ")
      #expect(result.output == "\(failures)\n\(others)\n", "\(result.errors)")
      let deaths = try Self.deaths(order)
      #expect(deaths >= 2 && deaths <= 2 * makers, "\(deaths)")
      for user in users {
        let told = "got an I/O error when it was to \(call.deed)"
        let line = "\(told) \(mounted.path("Users/Shared/deadly-\(user.0)"))"
        let events = try mounted.run("log", "--store", mounted.store).output
        #expect(events.contains(line), "\(line)\n\(events)")
        let log = FD.text(of: mounted.store + "/state/daemon.log", limit: 1 << 20) ?? ""
        #expect(
          log.split(separator: "\n").contains {
            $0.contains("died by a request of user \(user.0)")
              && $0.contains("/Users/Shared/deadly-\(user.0))")
          }, "\(log)")
      }
      // A request by which one has died alone is served.
      try Self.arm(order, times: 1)
      let later = "mkdir '\(mounted.path("Users/Shared/later"))'"
      let made =
        try isRootless ? Program.runAsNobody(["sh", "-c", later]) : Program.run(["sh", "-c", later])
      #expect(made.status == 0, "\(made.errors)")
      #expect(try Self.deaths(order) == 1)
      #expect(try mounted.unmount().status == 0)
    }

    @Test func appIsNamedInTheLog() throws {
      let fixture = try RunFixture(rootless: true)
      #expect(try fixture.mounted.unmount().status == 0)
      let order = try TrapTests.mount(fixture.mounted, [])
      try Self.arm(order, times: 2)
      let result = try fixture.inside("mkdir Documents/d; echo $?; mkdir Documents/e; echo $?")
      #expect(result.output == "1\n0\n" && result.errors.contains("Input/output error"), "\(result)")
      #expect(try Self.deaths(order) == 2)
      func log() throws -> [Substring] {
        try fixture.mounted.run("log", "--store", fixture.mounted.store).output.split(separator: "\n")
      }
      #expect(
        try eventually {
          try log().contains {
            $0.contains(RunFixture.identifier) && $0.contains("Documents/d")
              && $0.contains("got an I/O error when it was to make the directory")
          }
        })
      #expect(try fixture.mounted.unmount().status == 0)
    }
  }
#endif
