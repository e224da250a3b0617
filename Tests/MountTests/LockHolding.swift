// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Processes that hold the kernel's locks of files, by reads and writes that never end.
enum LockHolding {
  /// What a daemon is started by that leaves those alone, for what others see of it meanwhile.
  static let left = ended([])

  /// What a daemon is started by that ends those of these users alone: tests that run beside have others.
  static func ended(_ users: [Account]) -> [String] {
    ["env", "INSULA_LOCK_HOLDERS=" + users.map { "\($0.uid)" }.joined(separator: ",")]
  }

  /// A process that goes on until its input ends.
  final class Background {
    let process = Process()
    private let input = Pipe()

    init(_ words: [String], as user: Account, output: String, _ temporary: TemporaryDirectory) throws {
      process.executableURL = URL(fileURLWithPath: "/usr/bin/setpriv")
      process.arguments = ["--reuid=\(user.uid)", "--regid=\(user.gid)", "--clear-groups"] + words
      process.environment = ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": temporary.path]
      process.standardInput = input
      try #require(FileManager.default.createFile(atPath: output, contents: nil))
      process.standardOutput = FileHandle(forWritingAtPath: output)
      try Program.withSignalsUnblocked { try process.run() }
    }

    func end() throws {
      try input.fileHandleForWriting.close()
      try #require(hasEnded(), "it goes on although its input has ended")
    }

    /// Whether it ends by itself; one that does not is killed, so that nothing waits for it for ever.
    func hasEnded() -> Bool {
      if eventually({ !process.isRunning }) { return true }
      kill(process.processIdentifier, SIGKILL)
      return false
    }
  }

  /// Begins to hold files as `hold-locks.py` says; `isSynchronous` if the kernel then waits for the memory
  /// whatever signal comes.
  static func hold(
    _ files: [String], as user: Account, _ temporary: TemporaryDirectory, called name: String = "held",
    isSynchronous: Bool = false, isSlow: Bool = false
  ) throws -> Background {
    let program = temporary.appending("\(name)-filesystem")
    let built = try Program.run([
      "sh", "-c", "gcc -Wall -Werror -o \"$0\" \"$1\" $(pkg-config --cflags --libs fuse3)", program,
      Checkout.path("Tests/Fixtures/silent-filesystem.c"),
    ])
    try #require(built.status == 0, "\(built.errors)")
    let script = try temporary.write(
      String(contentsOfFile: Checkout.path("Tests/Fixtures/hold-locks.py"), encoding: .utf8), to: "hold.py")
    try #require(chmod(script, 0o644) == 0 && chmod(program, 0o755) == 0)
    let output = temporary.appending(name)
    let python =
      ["/usr/bin/python3", script, program] + (isSynchronous ? ["--synchronous"] : isSlow ? ["--slow"] : [])
    let words = (user.uid == 0 ? [] : ["unshare", "-Urmp", "--fork", "--kill-child"]) + python + files
    let holder = try Background(words, as: user, output: output, temporary)
    try #require(
      eventually { FD.text(of: output, limit: 100) == "held\n" || !holder.process.isRunning },
      "\(FD.text(of: output, limit: 100) ?? "")")
    try #require(holder.process.isRunning)
    return holder
  }

  /// Begins to hold files as `hold-pipe.py` says.
  static func holdByPipe(
    _ files: [String], as user: Account, _ temporary: TemporaryDirectory, called name: String
  ) throws -> Background {
    let script = try temporary.write(
      String(contentsOfFile: Checkout.path("Tests/Fixtures/hold-pipe.py"), encoding: .utf8), to: "pipe.py")
    try #require(chmod(script, 0o644) == 0)
    let output = temporary.appending(name)
    let holder = try Background(["/usr/bin/python3", script] + files, as: user, output: output, temporary)
    try #require(
      eventually { FD.text(of: output, limit: 100) == "held\n" || !holder.process.isRunning },
      "\(FD.text(of: output, limit: 100) ?? "")")
    try #require(holder.process.isRunning)
    return holder
  }
}
