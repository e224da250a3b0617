// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

/// A forked process that tries something and says over a pipe how it went.
struct Actor {
  let pid: pid_t
  let pipe: Int32

  /// Forks.
  ///
  /// The child runs `body`, writes its verdict and ends without unwinding anything of the parent's.
  static func start(_ body: () throws -> Void) throws -> Actor {
    var ends: [Int32] = [0, 0]
    guard clx_pipe2(&ends, O_CLOEXEC) == 0 else { throw Failure(text: "pipe: \(errnoName(errno))") }
    let pid = clx_fork()
    guard pid != -1 else { throw Failure(text: "fork: \(errnoName(errno))") }
    if pid == 0 {
      close(ends[0])
      say(verdict(of: body), to: ends[1])
      _exit(0)
    }
    close(ends[1])
    return Actor(pid: pid, pipe: ends[0])
  }

  static func verdict(of body: () throws -> Void) -> Verdict {
    do {
      try body()
      return .passed
    } catch let skip as Skip {
      return .skipped(skip.reason)
    } catch let failure as Failure {
      return .failed(failure.text)
    } catch {
      return .failed("\(error)")
    }
  }

  /// A message is one letter, a text and a NUL: short enough for one write to a pipe.
  private static func say(_ verdict: Verdict, to pipe: Int32) {
    let text =
      switch verdict {
      case .passed: "p"
      case .failed(let text): "f" + text.prefix(3000)
      case .skipped(let reason): "s" + reason.prefix(3000)
      }
    let message = Array(text.utf8) + [0]
    _ = write(pipe, message, message.count)
  }

  /// What the bytes from the pipe mean; nil while the NUL is missing.
  static func verdict(from message: [UInt8]) -> Verdict? {
    guard let letter = message.first, message.last == 0 else { return nil }
    let text = String(decoding: message.dropFirst().dropLast(), as: UTF8.self)
    return switch letter {
    case UInt8(ascii: "p"): .passed
    case UInt8(ascii: "s"): .skipped(text)
    default: .failed(text)
    }
  }

  /// Waits for the end and takes over the verdict.
  ///
  /// A hang is the watchdog's business.
  func finish() throws {
    var message: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while Actor.verdict(from: message) == nil {
      let got = read(pipe, &buffer, buffer.count)
      if got == -1 && errno == EINTR { continue }
      guard got > 0 else { break }
      message += buffer.prefix(got)
    }
    close(pipe)
    let status = reap()
    switch Actor.verdict(from: message) {
    case .passed: return
    case .failed(let text): throw Failure(text: text)
    case .skipped(let reason): throw Skip(reason: reason)
    case nil: throw Failure(text: "expected a verdict, saw \(ending(status))")
    }
  }

  /// Waits for the end and gives the status, for children that are meant to die.
  @discardableResult
  func reap() -> Int32 {
    var status: Int32 = 0
    while waitpid(pid, &status, 0) == -1 && errno == EINTR {}
    return status
  }
}

/// How a process ended, in words.
func ending(_ status: Int32) -> String {
  let signal = clx_term_signal(status)
  return signal == 0 ? "exit status \(clx_exit_status(status))" : "a process ended by signal \(signal)"
}

/// Lets one process wait for another: `pass` lets one `wait` through.
struct Gate {
  private let ends: [Int32]

  init() throws {
    var ends: [Int32] = [0, 0]
    guard clx_pipe2(&ends, O_CLOEXEC) == 0 else { throw Failure(text: "pipe: \(errnoName(errno))") }
    self.ends = ends
  }

  func pass(_ count: Int = 1) {
    _ = write(ends[1], [UInt8](repeating: 1, count: count), count)
  }

  func wait() {
    var byte: UInt8 = 0
    while read(ends[0], &byte, 1) == -1 && errno == EINTR {}
  }
}

extension Gate {
  /// Waits to be let through by a child; if that ends first, takes over what it has to say.
  func wait(for actor: Actor) throws {
    var watched = [
      pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0),
      pollfd(fd: actor.pipe, events: Int16(POLLIN), revents: 0),
    ]
    while poll(&watched, 2, -1) == -1 && errno == EINTR {}
    guard watched[0].revents == 0 else { return wait() }
    try actor.finish()
    throw Failure(text: "expected a sign of the other process, saw its end")
  }
}

extension Trial {
  /// Runs `body` in a child process.
  func inChild(_ body: () throws -> Void) throws { try Actor.start(body).finish() }

  /// Runs `body` in a child process with someone's ids.
  func `as`(_ person: Person, _ body: () throws -> Void) throws {
    try inChild {
      try person.assume()
      try body()
    }
  }
}
