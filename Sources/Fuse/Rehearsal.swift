// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO

/// The installed program is started once, before it takes the place of the running one: it must say that it
/// can go on with the mount.
///
/// The helper does that, which has none of the daemon's descriptors. A process that closes a copy of a file
/// on a volume, as each does at execve(2), has the kernel ask the volume's program, and can't be ended until
/// that has answered. Meanwhile nobody who looks at it in /proc gets an answer either.
///
/// The helper has more rights than a worker, which can ask for this too. So it starts nothing but the program
/// that it has been told of when it began, with words that it knows.
package struct Rehearsal: Sendable {
  private let program: String
  private let words: [String]

  /// How long a program may take.
  static let seconds: Int32 = 10

  package init(_ program: String, _ words: [String]) { (self.program, self.words) = (program, words) }

  /// The helper's part: which file it is, and where its messages go, comes from whoever has asked.
  ///
  /// ECANCELED if the program says that it can't, ETIMEDOUT if it says nothing in time, EINTR if a signal has
  /// ended it, ESTALE if another file is installed than who has asked has found.
  func run(_ asker: FD) throws(Errno) {
    guard let theirs = try LocalSocket.receive(from: asker, limit: 1)?.descriptor,
      let errors = try LocalSocket.receive(from: asker, limit: 1)?.descriptor
    else { throw .EPIPE }
    // Not what was handed over: it may be any file.
    let file = try FD.cwd.openFollowing(program, O_RDONLY | O_NONBLOCK)
    guard try file.fd.status().isSameObject(as: theirs.status()) else { throw .ESTALE }
    let child = try MountHelper.Serving.start("/proc/self/fd/\(file.fd.raw)", words, errors: errors)
    try wait(for: child)
  }

  private func wait(for child: pid_t) throws(Errno) {
    let process = try ProcessID.open(child)
    let isOver = try process.fd.waitUntilReadable(milliseconds: Self.seconds * 1000)
    if !isOver { kill(child, SIGKILL) }
    var status: Int32 = 0
    _ = try retrying { waitpid(child, &status, 0) }
    guard isOver else { throw .ETIMEDOUT }
    switch clx_exit_status(status) {
    case 0: return
    case ..<0: throw .EINTR
    default: throw .ECANCELED
    }
  }
}

extension MountHelper {
  /// Starts a program once, whose messages go to our standard error; whether it says that it can go on with
  /// the mount.
  ///
  /// EPIPE if there is no helper.
  package func rehearse(_ program: FD) throws(Errno) -> Bool {
    do throws(Errno) {
      _ = try ask(
        Request.rehearse.bytes, handed: [program, FD(STDERR_FILENO)], seconds: Rehearsal.seconds + 3)
      return true
    } catch .ECANCELED {
      return false
    }
  }
}
