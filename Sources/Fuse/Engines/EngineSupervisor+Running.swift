// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

// Mounting, and looking after the program.

extension EngineSupervisor {
  private static let startMilliseconds: UInt64 = 45_000

  // MARK: By the kernel

  /// `prepares` makes it what is promised, before anybody has it.
  func mountByKernel(
    _ program: EngineProgram, at place: String, _ report: EngineReport,
    prepares: ((_ root: FD) throws(Errno) -> Void)? = nil
  ) throws(EngineFailure) {
    var output = EngineOutput()
    let status = try attempt({ "the kernel does not mount it: \($0.message)" }) { () throws(Errno) in
      let process = try EngineProcess(
        program, as: EngineUser(of: 0, 0), nil, becomes: false, intercepting: nil)
      try wait(for: process, &output)
      let status = try process.follow()
      // A helper of mount(8)'s, which is a program with all of root's rights.
      if status == nil { takeAway(place, of: process) }
      return status
    }
    guard status.map({ clx_exit_status($0) }) == 0 else {
      let isForProgram = status == nil || EngineProgram.isAlternative(for: program.name)
      throw EngineFailure(
        .EIO,
        "the kernel does not mount it: "
          + (isForProgram ? "a program would serve it; choose that with '--engine program'" : output.text))
    }
    try attempt({ "the mount is not there: \($0.message)" }) { () throws(Errno) in
      let root = try FD.cwd.openFollowing(place, pathOnly | O_DIRECTORY)
      try prepares?(root.fd)
      send(report, with: root.fd)
    }
    // In the namespace it would stay for as long as we are there.
    _ = umount2(place, CLX_MNT_DETACH)
    while let word = (try? LocalSocket.receive(from: daemon, limit: 2, takesDescriptor: false)) ?? nil,
      word.bytes == MountHelper.endIfOwing
    {}
  }

  /// Waits for a program that is to end soon.
  func wait(for process: EngineProcess, _ output: inout EngineOutput) throws(Errno) {
    let words = process.words
    let start = monotonicNanoseconds()
    while !(try process.hasEnded(milliseconds: 100)) {
      output.read(words)
      guard monotonicNanoseconds() &- start < Self.startMilliseconds * 1_000_000, !isGivenUp else {
        process.end(isHurried: true)
        throw .ETIMEDOUT
      }
    }
    output.read(words)
  }

  /// Takes away what a program serves that mount(8) has started.
  ///
  /// It is unmounted while the program answers, and by somebody else: the kernel asks for a last answer there
  /// (`FUSE_DESTROY`), for which a program that is killed first waits for ever, and with it every sync(2) of
  /// the machine.
  private func takeAway(_ place: String, of process: EngineProcess) {
    let unmounting = clx_fork()
    if unmounting == 0 {
      _ = umount2(place, CLX_MNT_DETACH)
      _exit(0)
    }
    process.end(isHurried: false)
    if unmounting > 0 { waitpid(unmounting, nil, 0) }
  }

  /// Whether the daemon does not wait any more.
  var isGivenUp: Bool { (try? daemon.waitUntilHungUp(milliseconds: 0)) != false }

  // MARK: By a program

  func run(
    _ program: EngineProgram, as user: EngineUser, at place: String, _ report: EngineReport,
    _ input: EngineInput? = nil, holding lock: SharedFD? = nil
  ) throws(EngineFailure) {
    try makeMountPoint(place, user)
    let run = try start(program, user, at: place, input, holding: lock)
    run.handOverMount { root in send(report, with: root) }
    run.watch()
    send(EngineReport(.ENOTCONN, run.reason))
  }

  /// Starts it until it serves, or fails for another reason than that it has no name.
  private func start(
    _ program: EngineProgram, _ user: EngineUser, at place: String, _ input: EngineInput?,
    holding lock: SharedFD?, tries: Int = 5
  ) throws(EngineFailure) -> EngineRun {
    let failed = { (error: Errno) in "\(program.name) can't be started: \(error.message)" }
    let run = try attempt(failed) { () throws(Errno) in
      try EngineRun(program, user, input, holding: lock, at: place, isSystem: isSystem, daemon)
    }
    do throws(EngineFailure) {
      try run.waitUntilMounted(milliseconds: Self.startMilliseconds)
      return run
    } catch {
      guard tries > 1, user.accounts != nil, Account.numbered(user.uid) == nil, !isGivenUp else {
        throw error
      }
    }
    try introduce(user)
    return try start(program, user, at: place, input, holding: lock, tries: tries - 1)
  }
}
