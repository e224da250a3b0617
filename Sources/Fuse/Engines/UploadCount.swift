// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// Counts what a server does not have yet, in processes of their own.
///
/// The cache is its user's, who may put anything there: more than anybody can read in a day, or a filesystem
/// that does not answer. Whoever supervises a program must go on hearing the daemon.
final class UploadCount {
  private let cache: UploadCache
  private let user: EngineUser
  private var process: (pid: Int32, answer: SharedFD)?
  /// What was counted last; nil if that can't be told, or not yet.
  private var known: Int?
  private var isGivenUp = false
  private var earliest: UInt64 = 0
  /// Processes that may not have ended yet: even one that was killed waits for a filesystem.
  private(set) var processes: [Int32] = []

  private static let mostProcesses = 4
  private static let pauseNanoseconds: UInt64 = 200_000_000

  init(_ cache: UploadCache, for user: EngineUser) { (self.cache, self.user) = (cache, user) }

  /// Readable when there may be news.
  var answer: SharedFD? { process?.answer }

  /// What is counted from here on counts.
  func startOver() {
    known = nil
    guard let process else { return }
    isGivenUp = true
    _ = kill(process.pid, SIGKILL)
  }

  /// What was counted last, if anything was; it is counted again and again while somebody looks.
  func look() -> Int? {
    processes.removeAll { waitpid($0, nil, WNOHANG) != 0 }
    if let (_, answer) = process {
      guard (try? answer.use { (fd) throws(Errno) in try fd.waitUntilReadable(milliseconds: 0) }) == true
      else { return known }
      let text = try? answer.use { (fd) throws(Errno) in try fd.readToEnd(limit: 24) }
      known = isGivenUp ? nil : text.flatMap { Int(String(decoding: $0, as: UTF8.self)) }
      earliest = isGivenUp ? 0 : monotonicNanoseconds() + Self.pauseNanoseconds
      (process, isGivenUp) = (nil, false)
    }
    if process == nil, monotonicNanoseconds() >= earliest, processes.count < Self.mostProcesses { begin() }
    return known
  }

  private func begin() {
    guard let ends = try? pipe() else { return }
    let child = clx_fork()
    if child == 0 {
      // It may outlive us, and with it nothing that others wait for the end of.
      guard dup2(ends.write.fd.raw, 3) == 3, clx_close_range(4, UInt32.max, 0) == 0 else { _exit(1) }
      let count = try? ThreadIdentity.with(uid: user.uid, gid: user.gid, lasting: false) {
        () throws(Errno) in try cache.pending()
      }
      if let count { try? FD(3).writeAll(String(count).utf8) }
      _exit(0)
    }
    guard child > 0 else { return }
    processes.append(child)
    process = (child, SharedFD(ends.takeRead()))
  }
}
