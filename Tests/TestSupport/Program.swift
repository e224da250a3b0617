// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
// Its constructor makes the threads that tests run on.
internal import TestThreads

/// How a program ended, and what it printed.
package struct ProgramResult: Sendable {
  /// As a shell has it: 128 and its number for a signal, which is none of a command's own then.
  package let status: Int32
  package let output: String
  package let errors: String

  package init(status: Int32, output: String, errors: String) {
    self.status = status
    self.output = output
    self.errors = errors
  }
}

/// Programs that tests run.
package enum Program {
  /// Whether the tests run as root, who may mount and become others.
  package static var isRoot: Bool { ProcessID.user == 0 }

  /// The program that the package builds.
  package static var insula: String { Checkout.programs + "/insula" }

  /// Runs a program to its end.
  package static func run(
    _ arguments: [String], environment: [String: String] = [:], in directory: String = "/"
  ) throws -> ProgramResult {
    let output = try TemporaryDirectory()
    // Files and not pipes: a daemon that stays behind must not keep the test waiting. For the same reason not
    // Foundation's Process, which waits on a socket that programs started at the same moment inherit.
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    for (descriptor, name) in [(STDOUT_FILENO, "out"), (STDERR_FILENO, "err")] {
      posix_spawn_file_actions_addopen(
        &actions, descriptor, output.appending(name), O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    }
    // What other tests have open at this moment is theirs.
    guard clx_spawn_closing_from(&actions, STDERR_FILENO + 1) == 0 else { throw Errno.ENOMEM }
    // A test's thread has signals blocked that a program expects to get.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigfillset(&signals)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    // What a daemon notes is not for this machine's journal.
    let environment = ["INSULA_JOURNAL": ""].merging(environment) { $1 }
    let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }.map { "\($0)=\($1)" }
    // The umask belongs to the whole process, and other tests have their own.
    let start = ["env", "--chdir=\(directory)", "sh", "-c", "umask 022; exec \"$@\"", "sh"]
    var words: [UnsafeMutablePointer<CChar>?] = (start + arguments).map { strdup($0) } + [nil]
    var settings: [UnsafeMutablePointer<CChar>?] = variables.map { strdup($0) } + [nil]
    defer { for string in words + settings { free(string) } }
    var pid: pid_t = 0
    let error = posix_spawn(&pid, "/usr/bin/env", &actions, &attributes, &words, &settings)
    guard error == 0 else { throw Errno(error) }
    guard try waitForEnd(pid, milliseconds: limit) else {
      throw MountedStore.Failure(words: "'\(arguments.joined(separator: " "))' does not end; \(ended(pid))")
    }
    var status: Int32 = 0
    try retrying { waitpid(pid, &status, 0) }
    let signal = clx_term_signal(status)
    return ProgramResult(
      status: signal == 0 ? clx_exit_status(status) : Ending.signal(signal).number,
      output: output.text(of: "out") ?? "",
      errors: output.text(of: "err") ?? "")
  }

  /// Waits until a process has ended.
  package static func waitForEnd(_ pid: Int32, milliseconds: Int32 = patience) throws -> Bool {
    guard let process = try? ProcessID.open(pid) else { return true }
    return try process.fd.waitUntilReadable(milliseconds: milliseconds)
  }

  /// Far more than any of them takes, and less than a person waits for a run that hangs.
  private static let limit: Int32 = 900_000

  /// Ends a program that hangs, with all that it has started; what it was doing.
  private static func ended(_ pid: pid_t) -> String {
    let said = ["status", "wchan", "stack", "syscall"].map { name in
      "\(name): \(FD.text(of: "/proc/\(pid)/\(name)", limit: 1 << 16) ?? "-")"
    }
    let processes = [pid] + descendants(of: pid)
    for process in processes { kill(process, SIGKILL) }
    _ = try? waitForEnd(pid)
    return said.joined(separator: "\n")
  }

  private static func descendants(of pid: pid_t) -> [pid_t] {
    let children = FD.text(of: "/proc/\(pid)/task/\(pid)/children", limit: 1 << 16) ?? ""
    let started = children.split(separator: " ").compactMap { pid_t($0) }
    return started + started.flatMap { descendants(of: $0) }
  }

  /// Lets a program that `body` starts have its signals.
  ///
  /// The threads that tests run on block all of them, and a child inherits that.
  package static func withSignalsUnblocked<Result>(_ body: () throws -> Result) rethrows -> Result {
    var none = sigset_t()
    var before = sigset_t()
    sigemptyset(&none)
    pthread_sigmask(SIG_SETMASK, &none, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    return try body()
  }

  /// Runs a program as the ordinary user `nobody`; root only.
  package static func runAsNobody(
    _ arguments: [String], environment: [String: String] = [:]
  ) throws -> ProgramResult {
    try run(
      ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] + arguments, environment: environment)
  }
}
