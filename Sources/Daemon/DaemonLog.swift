// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
internal import Policy

/// Where a daemon in the background writes what nobody is there to read: `state/daemon.log`, kept short.
package enum DaemonLog {
  package static let fileName = "daemon.log"
  private static let oldFileName = "daemon.log.1"
  private static let limit = 1 << 20

  /// Sends standard output and standard error to the log, from now on.
  ///
  /// On a disk that is full or read-only they go nowhere: a mount is worth more than its log.
  package static func redirect(in state: FD) throws(Errno) {
    try? shorten(in: state)
    let log: OwnedFD
    if let opened = try? openLog(in: state) {
      log = opened
    } else {
      log = try FD.cwd.openFollowing("/dev/null", O_WRONLY)
    }
    try check(dup2(log.fd.raw, STDOUT_FILENO))
    try check(dup2(log.fd.raw, STDERR_FILENO))
  }

  private static func openLog(in state: FD) throws(Errno) -> OwnedFD {
    try state.open(fileName, O_WRONLY | O_CREAT | O_APPEND, mode: 0o600)
  }

  /// Starts a new file when the log has grown too long; the one before is kept.
  package static func shorten(in state: FD) throws(Errno) {
    let size = try? state.status(of: fileName).st_size
    guard let size, size > limit else { return }
    try oldFileName.withName { (old) throws(Errno) in
      try fileName.withName { (name) throws(Errno) in try state.rename(name, to: state, old, flags: 0) }
    }
  }

  /// Writes a line, with the time, to standard error.
  ///
  /// It is always one line, whatever names it contains: untrusted users must not be able to forge log lines.
  package static func write(_ message: String) {
    var now = time(nil)
    var parts = tm()
    gmtime_r(&now, &parts)
    var text = [CChar](repeating: 0, count: 32)
    let length = strftime(&text, text.count, "%Y-%m-%dT%H:%M:%SZ", &parts)
    let stamp = String(decoding: text[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    try? FD(STDERR_FILENO).writeAll("\(stamp) insula: \(message.sanitized)\n".utf8)
  }
}
