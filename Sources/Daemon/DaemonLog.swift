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
    let log = try openLogOrNull(in: state)
    try check(dup2(log.fd.raw, STDOUT_FILENO))
    try check(dup2(log.fd.raw, STDERR_FILENO))
  }

  private static func openLogOrNull(in state: FD) throws(Errno) -> OwnedFD {
    if let opened = try? openLog(in: state) { return opened }
    return try FD.cwd.openFollowing("/dev/null", O_WRONLY)
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
    try? FD(STDERR_FILENO).writeAll("\(utcText(Int64(time(nil)))) insula: \(message.sanitized)\n".utf8)
  }

  /// Writes a line that somebody should see: where standard error is a file, into the machine's log too.
  ///
  /// Corresponds to `syslog(3)`.
  static func alert(_ message: String, inBackground: Bool) {
    write(message)
    guard inBackground else { return }
    message.sanitized.withCString { text in
      withVaList([text]) { vsyslog(LOG_DAEMON | LOG_ERR, "insula: %s", $0) }
    }
  }
}
