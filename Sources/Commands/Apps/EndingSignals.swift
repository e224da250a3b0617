// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// The signals that end a process, kept from ending it before it has cleared up.
///
/// Threads that begin meanwhile have them blocked too, or the kernel would end the process through one of
/// those.
struct EndingSignals: ~Copyable, Sendable {
  private static let all = [SIGINT, SIGTERM, SIGHUP]

  private let arriving: OwnedFD
  private let over: Wakeup
  nonisolated(unsafe) private var before = sigset_t()

  init() throws(Errno) {
    // Who has been started without one goes without it.
    var set = Self.all.filter { !RunningProgram.isIgnored($0) }.signalSet
    let wakeup = try Wakeup()
    let signals = OwnedFD(owning: try check(signalfd(-1, &set, Int32(SFD_CLOEXEC))))
    over = wakeup
    arriving = signals
    pthread_sigmask(SIG_BLOCK, &set, &before)
  }

  deinit {
    var before = before
    pthread_sigmask(SIG_SETMASK, &before, nil)
  }

  /// Calls `clear` with the first one that comes while `body` goes on.
  borrowing func watch<Result>(
    _ clear: @escaping @Sendable (Int32) -> Void, while body: () throws -> Result
  ) throws -> Result {
    let (arriving, over) = (arriving.fd, over.fd)
    let watcher = try JoinableThread(name: "signals") {
      guard (try? waitForAny(of: [arriving, over], milliseconds: -1))?.first == true else { return }
      var information = signalfd_siginfo()
      let size = MemoryLayout<signalfd_siginfo>.size
      guard read(arriving.raw, &information, size) == size else { return }
      clear(Int32(truncatingIfNeeded: information.ssi_signo))
    }
    defer {
      self.over.ring()
      watcher.join()
    }
    return try body()
  }

  /// Ends this process as the signal would have; does not return.
  static func end(by number: Int32) {
    var set = [number].signalSet
    pthread_sigmask(SIG_UNBLOCK, &set, nil)
    kill(getpid(), number)
    _exit(128 + number)
  }
}
