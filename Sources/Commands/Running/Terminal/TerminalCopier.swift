// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// What a command writes, on the way to a terminal.
struct TerminalCopy {
  let terminal: FD
  /// Nil when there is nothing more to come.
  var pipe: FD?
  /// The command's streams that lead here.
  var streams: [FD]
  /// What the terminal has not taken yet.
  private var waiting: [UInt8] = []

  init(terminal: FD, pipe: FD, streams: [FD]) {
    self.terminal = terminal
    self.pipe = pipe
    self.streams = streams
  }

  var isWriting: Bool { !waiting.isEmpty }
  var isOver: Bool { pipe == nil && waiting.isEmpty }

  mutating func read() {
    guard let pipe else { return }
    guard let bytes = TerminalRelay.read(from: pipe) else { return end() }
    waiting = bytes
  }

  /// Writes what fits into a terminal that takes something: its descriptor is shared, and can't be told not
  /// to wait.
  mutating func write() {
    let bytes = Array(waiting.prefix(Self.step))
    do throws(Errno) {
      let count = try retrying { Glibc.write(terminal.raw, bytes, bytes.count) }
      waiting.removeFirst(min(count, waiting.count))
    } catch {
      // The command is told by SIGPIPE or EPIPE.
      if error != .EAGAIN {
        waiting = []
        end()
      }
    }
  }

  private static let step = 256

  mutating func end() {
    if let pipe { _ = Glibc.close(pipe.raw) }
    pipe = nil
  }

  /// Leaves it to another process.
  func close() {
    if let pipe { _ = Glibc.close(pipe.raw) }
    _ = Glibc.close(terminal.raw)
  }
}

/// Copies what a child writes to terminals, and waits for it as if the caller had started it.
struct TerminalCopier {
  var copies: [TerminalCopy]
  let child: Int32
  /// Signals that were blocked before.
  let before: sigset_t
  private var status: Int32?

  init(copies: [TerminalCopy], child: Int32, before: sigset_t) {
    self.copies = copies
    self.child = child
    self.before = before
  }

  /// Whoever still has the pipe when the child has ended is waited for only while they write.
  private static let silence: Int32 = 1000

  /// Copies until all has ended; the exit status.
  ///
  /// The signals are blocked.
  mutating func run(_ signals: [Int32]) throws(Errno) -> Int32 {
    var set = signals.signalSet
    let arriving = OwnedFD(owning: try check(signalfd(-1, &set, Int32(SFD_CLOEXEC) | Int32(SFD_NONBLOCK))))
    while true {
      if let status, copies.allSatisfy(\.isOver) { return status }
      try wait(arriving.fd)
    }
  }

  private mutating func wait(_ arriving: FD) throws(Errno) {
    var watched = [pollfd(fd: status == nil ? arriving.raw : -1, events: Int16(POLLIN), revents: 0)]
    for copy in copies {
      watched.append(
        copy.isWriting
          ? pollfd(fd: copy.terminal.raw, events: Int16(POLLOUT), revents: 0)
          : pollfd(fd: copy.pipe?.raw ?? -1, events: Int16(POLLIN), revents: 0))
    }
    let isDrained = status != nil && !copies.contains(where: \.isWriting)
    let count = try retrying { poll(&watched, nfds_t(watched.count), isDrained ? Self.silence : -1) }
    if count == 0 {
      for index in copies.indices { copies[index].end() }
      return
    }
    for index in copies.indices where watched[index + 1].revents != 0 {
      if copies[index].isWriting { copies[index].write() } else { copies[index].read() }
    }
    if watched[0].revents != 0 { obey(arriving) }
  }

  private mutating func obey(_ arriving: FD) {
    var information = signalfd_siginfo()
    let size = MemoryLayout<signalfd_siginfo>.size
    while Glibc.read(arriving.raw, &information, size) == size {
      let number = Int32(truncatingIfNeeded: information.ssi_signo)
      if number == SIGCHLD {
        if status == nil, case .ended(let end) = ChildEnd.next(of: child) {
          status = end
          // Nothing is left to pass a signal on to.
          OwnTerminal.restore(before)
        }
        continue
      }
      // The kernel's own went to all of the group; but that the terminal is gone, it only tells the first
      // process of the session.
      if information.ssi_code <= 0 || number == SIGHUP && getsid(0) == getpid() { _ = kill(child, number) }
    }
  }
}
