// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// Programs that we start.
enum Subprocess {
  /// How a program ended.
  enum End: Equatable {
    case exited(Int32)
    case signalled(Int32)
  }

  /// Starts a program; besides the descriptors that it is given it has only /dev/null.
  ///
  /// In a session of its own, it does not get what a terminal sends.
  static func spawn(
    _ path: String, _ arguments: [String], _ context: Context, descriptors: [(from: FD, to: Int32)],
    inOwnSession: Bool = false
  ) throws(Errno) -> Int32 {
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    if inOwnSession { posix_spawnattr_setflags(&attributes, Int16(CLX_POSIX_SPAWN_SETSID)) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for standard in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] {
      posix_spawn_file_actions_addopen(&actions, standard, "/dev/null", O_RDWR, 0)
    }
    for (from, to) in descriptors { posix_spawn_file_actions_adddup2(&actions, from.raw, to) }
    var pid: pid_t = 0
    let environment = context.environment.map { "\($0.key)=\($0.value)" }
    let error = withCStrings(arguments) { arguments in
      withCStrings(environment) { environment in
        posix_spawn(&pid, path, &actions, &attributes, arguments, environment)
      }
    }
    guard error == 0 else { throw Errno(error) }
    return pid
  }

  /// Waits for the end of a program.
  ///
  /// Corresponds to `waitpid(2)`.
  static func wait(_ pid: Int32) throws(Errno) -> End {
    var status: Int32 = 0
    try retrying { waitpid(pid, &status, 0) }
    let signal = clx_term_signal(status)
    return signal == 0 ? .exited(clx_exit_status(status)) : .signalled(signal)
  }

  /// Runs a program to its end; what it prints comes back.
  static func run(
    _ path: String, _ arguments: [String], _ context: Context
  ) throws(Errno) -> (end: End, output: String) {
    let ends = try pipe()
    let pid = try spawn(
      path, arguments, context,
      descriptors: [(ends.write.fd, STDOUT_FILENO), (ends.write.fd, STDERR_FILENO)])
    let read = ends.takeRead()
    let output = try read.fd.readToEnd(limit: 1 << 20)
    return (try wait(pid), String(decoding: output, as: UTF8.self))
  }

  /// Becomes a program; returns only if that can't be, with the reason.
  static func become(_ words: [String]) -> Errno {
    for number in [SIGPIPE, SIGINT, SIGQUIT] { _ = signal(number, SIG_DFL) }
    withCStrings(words) { words in
      if let name = words[0] { _ = execvp(name, words) }
    }
    return .last
  }

  /// Runs a program in our place, so to say: it has our streams, and signals of the terminal are for it.
  static func runAsOurselves(_ words: [String], _ context: Context) throws(Errno) -> End {
    let forProgram = [SIGINT, SIGQUIT]
    var defaults = forProgram.signalSet
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    posix_spawnattr_setsigdefault(&attributes, &defaults)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))
    for number in forProgram { _ = signal(number, SIG_IGN) }
    defer { for number in forProgram { _ = signal(number, SIG_DFL) } }
    var pid: pid_t = 0
    let environment = context.environment.map { "\($0.key)=\($0.value)" }
    let error = withCStrings(words) { arguments in
      withCStrings(environment) { environment in
        posix_spawnp(&pid, words.first ?? "", nil, &attributes, arguments, environment)
      }
    }
    guard error == 0 else { throw Errno(error) }
    return try wait(pid)
  }

  private static func withCStrings<Result>(
    _ strings: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Result
  ) -> Result {
    var pointers: [UnsafeMutablePointer<CChar>?] = strings.map { strdup($0) }
    pointers.append(nil)
    defer { for pointer in pointers { free(pointer) } }
    return pointers.withUnsafeMutableBufferPointer { buffer in
      // There is always the closing nil.
      buffer.baseAddress.map(body) ?? body(UnsafeMutablePointer.allocate(capacity: 0))
    }
  }
}
