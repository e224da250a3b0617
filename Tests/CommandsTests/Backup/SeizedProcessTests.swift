// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What a user does with a process of theirs for which root waits.
@Suite(.enabled(if: Program.isRoot, "only root waits for others' processes"))
struct SeizedProcessTests {
  private static let nobody = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

  /// It is traced, and whoever traces it lets nobody have its end.
  @Test func processThatIsTracedIsEnded() throws {
    let temporary = try TemporaryDirectory()
    #expect(chmod(temporary.path, 0o777) == 0)
    let told = temporary.appending("told")
    var pid: pid_t = 0
    var words: [UnsafeMutablePointer<CChar>?] = (Self.nobody + ["sleep", "60"]).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    try #require(posix_spawn(&pid, "/usr/bin/setpriv", nil, nil, &words, nil) == 0)
    let seize = """
      import ctypes, os, sys, time
      libc = ctypes.CDLL(None); pid = int(sys.argv[1]); end = time.monotonic() + 30
      while libc.ptrace(0x4206, pid, 0, 0) != 0 and time.monotonic() < end: time.sleep(0.02)
      libc.ptrace(0x4207, pid, 0, 0); open(sys.argv[2], "w").close()
      while not os.path.exists(sys.argv[2] + ".over") and time.monotonic() < end: time.sleep(0.02)
      """
    let tracer = try JoinableThread(name: "traces") { [pid] in
      _ = try? Program.run(Self.nobody + ["/usr/bin/python3", "-c", seize, "\(pid)", told])
    }
    defer {
      tracer.join()
      // Exit tests ask for the end of any child, and would be told of this one for ever.
      _ = waitpid(pid, nil, 0)
    }
    defer { _ = FileManager.default.createFile(atPath: told + ".over", contents: nil) }
    try #require(eventually { access(told, F_OK) == 0 })
    var isSeized = false
    let start = monotonicNanoseconds()
    let end = try HelperProcess.wait(for: pid) { isSeized = true }
    #expect(isSeized && end == .signalled(SIGKILL))
    #expect(monotonicNanoseconds() - start < 15_000_000_000)
    // It does nothing any more, though nobody has taken note of its end.
    #expect(ProcessID.field("State", of: "\(pid)").map { $0.hasPrefix("Z") } ?? true)
  }
}
