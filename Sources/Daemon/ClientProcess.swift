// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// The process that has asked for a view, and waits for the end of what runs in it.
struct ClientProcess: Sendable {
  let user: UInt32
  let pid: Int32
  private let descriptor: SharedFD

  init(user: UInt32, pid: Int32, _ descriptor: SharedFD) {
    self.user = user
    self.pid = pid
    self.descriptor = descriptor
  }

  /// Whether it runs; its view may be there for a little longer.
  var isAlive: Bool { descriptor.isRunningProcess }

  /// Sends it a signal.
  ///
  /// The process was its user's when it asked for the view, and may be another's by now, who has nothing to
  /// do with that. Whoever asks, it gets only what its user could send it: EPERM otherwise.
  func send(_ signal: Int32) throws(Errno) {
    try descriptor.use { (process) throws(Errno) in
      // Without root's rights the kernel judges. Number and descriptor mean the same process if that still
      // runs afterwards.
      let isTheirs = ProcessID.user != 0 || user == 0 || ProcessID.maySignal(user, pid)
      guard try !process.waitUntilReadable(milliseconds: 0) else { throw .ESRCH }
      guard isTheirs else { throw .EPERM }
      try process.send(signal: signal)
    }
  }
}

extension SharedFD {
  /// Whether it stands for a process that has not ended.
  var isRunningProcess: Bool {
    let hasEnded = try? use { (process) throws(Errno) in try process.waitUntilReadable(milliseconds: 0) }
    return hasEnded == false
  }
}
