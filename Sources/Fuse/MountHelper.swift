// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
internal import Synchronization

/// Makes and takes away mounts for a daemon that can start no program any more, and gives no mount a place.
///
/// A user's own mounts take `fusermount3`, a program with more rights than the user, and who has none to gain
/// gets none from it; root's take calls that the daemon's filter has not. So a process of its own does it,
/// which is there from before the daemon gives that up until the daemon has ended. It holds nothing of the
/// daemon's, and does the few things in `MountHelper+Serving.swift`.
package final class MountHelper: Sendable {
  private let socket: Mutex<OwnedFD>
  /// 0 if another program has started it.
  private let process: Mutex<Int32>

  private init(_ socket: consuming OwnedFD, process: Int32) {
    self.socket = Mutex(socket)
    self.process = Mutex(process)
  }

  /// The helper that another program has started, by its end of the socket.
  package convenience init(adopting socket: FD) { self.init(OwnedFD(owning: socket.raw), process: 0) }

  /// What another program needs to go on with it.
  package var fd: FD { socket.withLock { $0.fd } }

  /// The process has one thread.
  package static func start(
    for mountPoint: String, isSystem: Bool, _ rehearsal: Rehearsal
  ) throws(Errno) -> MountHelper {
    let ends = try Pairs.messages()
    let child = clx_fork()
    if child == 0 {
      Serving(mountPoint: mountPoint, isSystem: isSystem, rehearsal: rehearsal).run(ends.theirs)
    }
    let failure = child < 0 ? Errno.last : nil
    let helper = MountHelper(OwnedFD(owning: ends.mine.raw), process: child)
    _ = close(ends.theirs.raw)
    if let failure { throw failure }
    return helper
  }

  /// Whether the process is not there any more.
  package var hasEnded: Bool {
    (try? socket.withLock { (socket) throws(Errno) in try socket.fd.hasHungUp() }) == true
  }

  /// Starts another process, under the number of descriptor that all know; the process has one thread.
  package func replace(
    for mountPoint: String, isSystem: Bool, _ rehearsal: Rehearsal
  ) throws(Errno) {
    let other = try Self.start(for: mountPoint, isSystem: isSystem, rehearsal)
    try socket.withLock { (socket) throws(Errno) in try other.fd.replace(socket.fd) }
    let child = other.process.withLock { $0 }
    let before = process.withLock { process in
      defer { process = child }
      return process
    }
    if before > 0 { waitpid(before, nil, WNOHANG) }
  }

  /// Takes the whole tree away where that needs `fusermount3`.
  ///
  /// EBUSY stands for whatever its own message says, which goes to standard error. EPIPE: there is no such
  /// process any more.
  package func removeTree(lazily: Bool) throws(Errno) {
    let code: UInt8? = try socket.withLock { (socket) throws(Errno) in
      let request = Request.removeTree(lazily: lazily).bytes
      _ = try LocalSocket.send(request[...], with: FD(STDERR_FILENO), to: socket.fd)
      return try LocalSocket.receive(from: socket.fd, limit: 1, takesDescriptor: false)?.bytes.first
    }
    guard let code else { throw .EPIPE }
    guard code == 0 else { throw Errno(Int32(code)) }
  }

  /// A mount for one user, at a place of theirs.
  package struct Made: ~Copyable {
    private let connection: OwnedFD
    package let device: DeviceNumber

    fileprivate init(connection: consuming OwnedFD, device: DeviceNumber) {
      self.connection = connection
      self.device = device
    }

    package consuming func takeConnection() -> OwnedFD { connection }
  }

  /// Mounts over a directory of a user, whose path has no links in it.
  ///
  /// EACCES if it is not theirs to mount on, EBUSY if the filesystem that it lies on is none for that.
  package func mount(for user: UInt32, _ group: UInt32, at path: String) throws(Errno) -> Made {
    let answer = try ask(.mount(user: user, group: group, path: path))
    guard let connection = answer.descriptor, let device = Answer.device(answer.bytes) else { throw .EIO }
    return Made(connection: OwnedFD(owning: connection.raw), device: device)
  }

  /// Takes such a mount away; what still uses it may go on until it is done.
  package func remove(_ device: DeviceNumber, of user: UInt32, _ group: UInt32) throws(Errno) {
    _ = try ask(.remove(device, user: user, group: group))
  }

  /// Mounts a filesystem for us alone; it takes as long as a server needs to answer.
  ///
  /// `handed` is what the order needs besides; `begins` is told what it will live by, and may refuse.
  package func serve(
    _ order: EngineOrder, handed: [SharedFD] = [],
    begins: (_ life: SharedFD) throws(Errno) -> Void = { (_) throws(Errno) in }
  ) throws(EngineFailure) -> ServedEngine {
    let answer: (bytes: [UInt8], descriptor: FD?)?
    let mine: SharedFD
    do throws(Errno) {
      let ends = try Pairs.messages()
      mine = SharedFD(OwnedFD(owning: ends.mine.raw))
      do {
        let theirs = OwnedFD(owning: ends.theirs.raw)
        try begins(mine)
        try socket.withLock { (socket) throws(Errno) in
          let bytes = Request.engine(order).bytes
          _ = try LocalSocket.send(bytes[...], with: theirs.fd, to: socket.fd)
        }
      }
      answer = try mine.use { (mine) throws(Errno) in
        for descriptor in handed { _ = try LocalSocket.send([0], with: FD(descriptor.number), to: mine) }
        guard try mine.waitUntilReadable(milliseconds: 90_000) else { throw .ETIMEDOUT }
        return try LocalSocket.receive(from: mine, limit: EngineReport.mostBytes)
      }
    } catch {
      throw EngineFailure(error, Self.silence(error))
    }
    guard let answer, let report = EngineReport(answer.bytes) else {
      throw EngineFailure(.EPIPE, Self.silence(.EPIPE))
    }
    guard report.error == 0, let root = answer.descriptor else {
      if let descriptor = answer.descriptor { _ = close(descriptor.raw) }
      throw EngineFailure(Errno(report.error == 0 ? EIO : report.error), report.reason)
    }
    return ServedEngine(root: SharedFD(OwnedFD(owning: root.raw)), life: mine, report)
  }

  private static func silence(_ error: Errno) -> String {
    error == .EPIPE || error == .ECONNRESET
      ? "the process that mounts volumes (insula-mounts) has ended; try again, or mount the tree again"
      : "the process that mounts volumes does not answer: \(error.message)"
  }

  /// Has the program end that serves a volume, or, as `endIfOwing`, if it has not answered all.
  package static func end(_ life: FD, _ word: [UInt8]) { _ = try? LocalSocket.send(word[...], to: life) }

  package static let end: [UInt8] = [1]
  package static let endIfOwing: [UInt8] = [2]

  /// Waits until a server has what programs have closed, for so long at most; else what it does not have, in
  /// words.
  package static func awaitUploads(of life: SharedFD, seconds: UInt8) -> String? {
    do throws(Errno) {
      let report = try life.use { (life) throws(Errno) -> EngineReport? in
        _ = try LocalSocket.send([2, seconds], to: life)
        guard try life.waitUntilReadable(milliseconds: Int32(seconds) * 1000 + 5000) else { throw .ETIMEDOUT }
        let answer = try LocalSocket.receive(
          from: life, limit: EngineReport.mostBytes, takesDescriptor: false)
        return answer.flatMap { EngineReport($0.bytes) }
      }
      return report?.error == Errno.EAGAIN.code ? report?.reason : nil
    } catch {
      return error == .ETIMEDOUT ? "it can't be told whether all files are uploaded" : nil
    }
  }

  /// Why a program has ended that served a filesystem.
  package static func lastWords(of life: SharedFD) -> String {
    let bytes = try? life.use { (life) throws(Errno) in
      try LocalSocket.receive(from: life, limit: EngineReport.mostBytes, takesDescriptor: false)?.bytes
    }
    let report = (bytes ?? nil).flatMap { EngineReport($0) }
    return report?.reason ?? "what served it has ended"
  }

  func ask(_ request: Request) throws(Errno) -> (bytes: [UInt8], descriptor: FD?) {
    try ask(request.bytes, handed: [], seconds: Serving.seconds * 2)
  }

  /// Each is answered apart from others: a path may lead through a filesystem that does not answer.
  func ask(
    _ request: [UInt8], handed: [FD], seconds: Int32
  ) throws(Errno) -> (bytes: [UInt8], descriptor: FD?) {
    let ends = try Pairs.messages()
    let mine = OwnedFD(owning: ends.mine.raw)
    do {
      let theirs = OwnedFD(owning: ends.theirs.raw)
      try socket.withLock { (socket) throws(Errno) in
        _ = try LocalSocket.send(request[...], with: theirs.fd, to: socket.fd)
      }
    }
    for descriptor in handed { _ = try LocalSocket.send([0], with: descriptor, to: mine.fd) }
    guard try mine.fd.waitUntilReadable(milliseconds: seconds * 1000) else { throw .EAGAIN }
    guard let answer = try LocalSocket.receive(from: mine.fd, limit: Answer.size),
      let code = answer.bytes.first
    else { throw .EPIPE }
    guard code == 0 else {
      if let descriptor = answer.descriptor { _ = close(descriptor.raw) }
      throw Errno(Int32(code))
    }
    return answer
  }
}
