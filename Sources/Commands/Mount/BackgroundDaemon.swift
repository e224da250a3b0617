// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Daemon
internal import Glibc
internal import LinuxIO

/// A daemon that was started in the background, and the pipe through which it says how that went.
///
/// It is this program once more: a process that has threads can't be forked. Until it is ready, what it
/// writes to standard error comes through the pipe and is passed on; then it says so with a mark that no
/// message can hold.
struct BackgroundDaemon: ~Copyable {
  static let readyDescriptor: Int32 = 3
  private static let mark: [UInt8] = [0] + Array("ready".utf8)

  private let pid: Int32
  private let pipe: OwnedFD

  /// Starts it with these arguments.
  static func start(_ arguments: [String], _ context: Context) throws -> BackgroundDaemon {
    let ends = try LinuxIO.pipe()
    let pid = try Subprocess.spawn(
      "/proc/self/exe", ["insula"] + arguments, context,
      descriptors: [(ends.write.fd, STDERR_FILENO), (ends.write.fd, readyDescriptor)])
    return BackgroundDaemon(pid: pid, pipe: ends.takeRead())
  }

  private init(pid: Int32, pipe: consuming OwnedFD) {
    self.pid = pid
    self.pipe = pipe
  }

  /// Waits until the mount is there, or passes on why it will not be.
  consuming func waitUntilReady(_ context: Context) throws -> ExitCode {
    // Ends when the daemon has closed both its copies: ready, or gone.
    var words: [UInt8] = []
    while let arrived = try pipe.fd.readAvailable(limit: 1 << 16) {
      words += arrived
      guard let end = words.lastIndex(of: UInt8(ascii: "\n")) else { continue }
      context.console.relay(errors: Array(words[..<end]))
      words.removeSubrange(...end)
    }
    let isReady = words.suffix(Self.mark.count).elementsEqual(Self.mark)
    if isReady { words.removeLast(Self.mark.count) }
    if !words.isEmpty { context.console.relay(errors: words) }
    if isReady { return .ok }
    switch try Subprocess.wait(pid) {
    case .exited(let status):
      if let code = ExitCode(rawValue: status), code != .ok { return code }
      throw CommandFailure(.failed, "the daemon ended before the mount was ready, with status \(status)")
    case .signalled(let signal):
      throw CommandFailure(
        .failed,
        "signal \(signal) ended the daemon before the mount was ready; "
          + "see state/daemon.log in the store, or try 'insula mount -f'")
    }
  }

  /// What the child does first.
  static func prepareChild() throws {
    DaemonProcess.leaveSession()
    // Descriptors that whoever started us happened to have open would stay open for as long as the mount.
    try check(clx_close_range(UInt32(readyDescriptor) + 1, UInt32.max, 0))
    try check(clx_fcntl(readyDescriptor, F_SETFD, Int(FD_CLOEXEC)))
  }

  /// What the child does when the mount is there.
  static func reportReady() throws {
    let pipe = OwnedFD(owning: readyDescriptor)
    try pipe.fd.writeAll(mark)
  }
}
