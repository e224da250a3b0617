// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
internal import Synchronization

/// Takes a user's mount away through `fusermount3`, for a daemon that can start no program any more.
///
/// That is a program with more rights than the user, and who has none to gain gets none from it. So a
/// process of its own starts it, which is there from before the daemon gives that up until the daemon has
/// ended. It holds nothing of the daemon's, knows from the start which mount, and is told only when.
package final class MountRemover: Sendable {
  private let socket: Mutex<OwnedFD>

  private init(_ socket: consuming OwnedFD) { self.socket = Mutex(socket) }

  /// The remover that another program has started, by its end of the socket.
  package convenience init(adopting socket: FD) { self.init(OwnedFD(owning: socket.raw)) }

  /// What another program needs to go on with it.
  package var fd: FD { socket.withLock { $0.fd } }

  /// The process has one thread.
  package static func start(for mountPoint: String) throws(Errno) -> MountRemover {
    let ends = try Pairs.messages()
    let child = clx_fork()
    if child == 0 { serve(ends.theirs, mountPoint) }
    let failure = child < 0 ? Errno.last : nil
    let remover = MountRemover(OwnedFD(owning: ends.mine.raw))
    _ = close(ends.theirs.raw)
    if let failure { throw failure }
    return remover
  }

  /// EBUSY stands for whatever its own message says, which goes to standard error.
  ///
  /// EPIPE: there is no such process any more.
  package func remove(lazily: Bool) throws(Errno) {
    let code: UInt8? = try socket.withLock { (socket) throws(Errno) in
      let request = [lazily ? UInt8(1) : 0]
      _ = try LocalSocket.send(request[...], with: FD(STDERR_FILENO), to: socket.fd)
      return try LocalSocket.receive(from: socket.fd, limit: 1, takesDescriptor: false)?.bytes.first
    }
    guard let code else { throw .EPIPE }
    guard code == 0 else { throw Errno(Int32(code)) }
  }

  private static func serve(_ daemon: FD, _ mountPoint: String) -> Never {
    guard (try? holdNothingElse(than: daemon)) != nil else { _exit(1) }
    let socket = FD(firstFree)
    while let request = try? LocalSocket.receive(from: socket, limit: 1) {
      var code: UInt8 = 0
      do throws(Errno) {
        try unmount(mountPoint, lazily: request.bytes == [1], errors: request.descriptor ?? FD(STDERR_FILENO))
      } catch {
        code = UInt8(truncatingIfNeeded: error.code)
      }
      if let descriptor = request.descriptor { _ = close(descriptor.raw) }
      let answer = [code]
      guard (try? LocalSocket.send(answer[...], to: socket)) != nil else { _exit(1) }
    }
    _exit(0)
  }

  private static let firstFree = STDERR_FILENO + 1

  /// Neither the store's lock nor the pipe to who waits for the daemon; and whoever has taken the daemon over
  /// can't write into this process (PR_SET_DUMPABLE).
  private static func holdNothingElse(than socket: FD) throws(Errno) {
    try check(clx_prctl(4, 0))
    "insula-unmount".withCString { _ = clx_prctl(15, UInt(bitPattern: $0)) }
    let nowhere = try FD.cwd.openFollowing("/dev/null", O_RDWR).release()
    // Where it lies may be one of those that are about to be something else.
    let kept = try check(fcntl(socket.raw, F_DUPFD_CLOEXEC, firstFree + 1))
    for stream in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] { try check(dup2(nowhere.raw, stream)) }
    try check(clx_dup3(kept, firstFree, O_CLOEXEC))
    try check(clx_close_range(UInt32(firstFree) + 1, UInt32.max, 0))
  }

  private static func unmount(_ path: String, lazily: Bool, errors: FD) throws(Errno) {
    let words = ["fusermount3", "-u"] + (lazily ? ["-z"] : []) + ["--", path]
    var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, errors.raw, STDERR_FILENO)
    var child = pid_t()
    let error = posix_spawnp(&child, "fusermount3", &actions, nil, &arguments, environ)
    guard error == 0 else { throw Errno(error) }
    var status: Int32 = 0
    try retrying { waitpid(child, &status, 0) }
    guard clx_exit_status(status) == 0 else { throw .EBUSY }
  }
}
