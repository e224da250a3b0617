// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// The files that an app's standard streams lead to.
///
/// An app that is given a file has more than its contents: `/proc/self/fd/1` opens it again, to write a
/// program into it and run it where no rule of the app's view reaches. So it gets a pipe for each, and this
/// process stands between that and the file. Terminals, pipes, sockets and devices are given as they are.
///
/// It takes no thread: where the next child is the first of a process namespace, none can be made.
final class FileStreams {
  /// A stream of ours that a pipe has taken the place of, and what it was.
  private var replaced: [(number: Int32, original: FD)] = []
  private var outputs: [OutputRelay] = []
  private var input: InputRelay?

  /// Replaces those of our standard streams that are files.
  init() throws(CommandFailure) {
    do throws(Errno) {
      for number in Int32(0)...2 where Self.isFile(number) { try replace(number) }
    } catch {
      restore()
      throw CommandFailure(.failed, "can't relay the app's standard streams: \(error.message)")
    }
  }

  /// Copies what comes until there is something to read from one of these, once the program was started, or
  /// the time is over; says from which.
  func relay(until events: [FD], milliseconds: Int32 = -1) throws(Errno) -> [Bool] {
    // That a file has grown too long is an errno here, and no end.
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGXFSZ)
    pthread_sigmask(SIG_BLOCK, &set, nil)
    let end = monotonicNanoseconds() &+ UInt64(max(0, milliseconds)) * 1_000_000
    var left = milliseconds
    while true {
      var watched = events.map { pollfd(fd: $0.raw, events: Int16(POLLIN), revents: 0) }
      watched += outputs.map { pollfd(fd: $0.pipe?.raw ?? -1, events: Int16(POLLIN), revents: 0) }
      watched.append(pollfd(fd: input?.pipe?.raw ?? -1, events: Int16(POLLOUT), revents: 0))
      let count = try retrying { poll(&watched, nfds_t(watched.count), left) }
      for (output, ready) in zip(outputs, watched.dropFirst(events.count)) where ready.revents != 0 {
        output.copy()
      }
      if let last = watched.last, last.revents != 0 { input?.copy() }
      let ready = watched.prefix(events.count).map { $0.revents != 0 }
      if count == 0 || ready.contains(true) { return ready }
      guard milliseconds >= 0 else { continue }
      // An app that writes all the time does not make the time longer.
      let now = monotonicNanoseconds()
      if now >= end { return ready }
      left = Int32(clamping: (end - now) / 1_000_000 + 1)
    }
  }

  /// Gives this process its streams back when all has arrived; the program's exit status, as it is to be
  /// told.
  ///
  /// A program that could not know that its last words were lost did not succeed.
  func end(_ status: Int32, _ console: Console) -> Int32 {
    // With these our own ends of the pipes go, so that the end is seen when the last writer has gone.
    restore()
    for output in outputs { output.finish() }
    input?.finish()
    guard let failure = outputs.lazy.compactMap(\.failure).first else { return status }
    console.note("run: can't write the app's output: \(failure.message)")
    return status == 0 ? ExitCode.failed.rawValue : status
  }

  private static func isFile(_ number: Int32) -> Bool {
    guard let status = try? FD(number).status() else { return false }
    return status.type == S_IFREG || status.type == S_IFBLK
  }

  private func replace(_ number: Int32) throws(Errno) {
    let original = FD(try check(fcntl(number, F_DUPFD_CLOEXEC, 3)))
    let output = replaced.first { $0.number == 1 }?.original
    replaced.append((number, original))
    // One pipe for what is one file keeps the order in which both were written.
    if number == 2, let output, Self.isSame(output, original) {
      try check(dup2(1, 2))
      return
    }
    let ends = try LinuxIO.pipe()
    try check(dup2(number == 0 ? ends.read.fd.raw : ends.write.fd.raw, number))
    if number == 0 {
      input = try InputRelay(original, ends)
    } else {
      outputs.append(OutputRelay(original, ends))
    }
  }

  private static func isSame(_ one: FD, _ other: FD) -> Bool {
    guard let first = try? one.status(), let second = try? other.status() else { return false }
    return first.isSameObject(as: second)
  }

  /// Gives this process its streams back.
  func restore() {
    for stream in replaced { _ = dup2(stream.original.raw, stream.number) }
    replaced = []
  }
}

/// Takes what the program writes to the file.
private final class OutputRelay {
  private let file: FD
  /// Nil when there is nothing more to come.
  private(set) var pipe: FD?
  /// Why something that the program wrote is not in the file.
  private(set) var failure: Errno?

  init(_ file: FD, _ ends: consuming PipeEnds) {
    self.file = file
    pipe = ends.takeRead().release()
  }

  func copy() {
    guard let pipe else { return }
    do throws(Errno) {
      guard let bytes = try pipe.readAvailable(limit: 1 << 16) else { return close() }
      try file.writeAll(bytes)
    } catch {
      failure = error
      // The program is told by SIGPIPE or EPIPE.
      close()
    }
  }

  /// Copies the rest.
  ///
  /// Nobody is waited for who still holds the pipe when the program has ended, unless they write.
  func finish() {
    while let pipe, (try? pipe.waitUntilReadable(milliseconds: 1000)) == true { copy() }
    close()
  }

  private func close() {
    if let pipe { _ = Glibc.close(pipe.raw) }
    pipe = nil
  }
}

/// Gives the program what is in the file.
private final class InputRelay {
  private let file: FD
  /// The program's own end, by which it is found how much it has not read.
  private let reading: OwnedFD
  /// Nil when the end of the file was read.
  private(set) var pipe: FD?
  /// What was read and did not go into the pipe.
  private var rest: ArraySlice<UInt8> = []

  init(_ file: FD, _ ends: consuming PipeEnds) throws(Errno) {
    self.file = file
    let pipe = FD(try check(fcntl(ends.write.fd.raw, F_DUPFD_CLOEXEC, 3)))
    self.pipe = pipe
    reading = ends.takeRead()
    try pipe.setNonBlocking()
  }

  func copy() {
    guard let pipe else { return }
    do throws(Errno) {
      if rest.isEmpty { rest = try file.readAvailable(limit: 1 << 16)?[...] ?? [] }
      if rest.isEmpty { return close() }
      rest = rest.dropFirst(try pipe.writeAvailable(rest))
    } catch {
      if error != .EAGAIN { close() }
    }
  }

  /// Whoever reads the file next begins where the program has ended, as they would without us.
  func finish() {
    let unread = (try? reading.fd.unreadCount()) ?? 0
    _ = lseek(file.raw, -off_t(unread + rest.count), SEEK_CUR)
    close()
  }

  private func close() {
    if let pipe { _ = Glibc.close(pipe.raw) }
    pipe = nil
  }
}
