// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CFuse
internal import CLinux
internal import Glibc
package import LinuxIO
internal import Synchronization

/// What a connection is to be like.
package struct ConnectionSettings: Sendable {
  /// Hand data to backing files inside the kernel, if it can.
  package var passthrough = false
  /// Let the kernel keep locks to itself, unseen by other sessions on the same files.
  package var localLocks = false
  /// Let memory maps be shared of files that are opened past the page cache (``OpenMode/direct``).
  package var sharesDirectMaps = false
  /// Let the kernel remember where links lead: it forgets that for no reason of ours.
  package var cachesLinks = true
  /// After which nothing more is done for anybody.
  package var deadlines: [Deadline] = []

  package init() {}
}

/// One mount's connection to the kernel.
///
/// Any thread may call ``receive(into:)`` and ``process(_:)``; the session itself holds no lock while a
/// request is served.
package final class Session: @unchecked Sendable {
  // Unchecked: `raw` is libfuse's, which locks for itself; the handshake's state is touched by the one thread
  // that serves INIT, before the kernel sends anything else.
  package let fd: FD
  let fileSystem: any FileSystem
  let parked = ParkedReplies()
  let postponed = PostponedRequests()
  let recentUsers = RecentUsers()
  private let releases = Atomic<Int>(0)
  private let isOver = Atomic<Bool>(false)
  private let deadlines: [Deadline]
  let served: ServedPlace?
  private let servedSlots: ServedSlots?
  var handshake: Handshake
  private var created: OpaquePointer?

  /// libfuse's session, which can only be made when there is something to hand it as its user data.
  var raw: OpaquePointer {
    guard let created else { preconditionFailure("a session is used after its init has returned") }
    return created
  }

  /// Serves `fileSystem` over a connection that is, or is about to be, mounted.
  package init(
    _ fileSystem: any FileSystem, over connection: consuming OwnedFD, settings: ConnectionSettings
  ) throws(Errno) {
    self.fileSystem = fileSystem
    deadlines = settings.deadlines
    served = fileSystem.served
    servedSlots = ServedSlots(served)
    handshake = Handshake(settings)
    fd = connection.release()
    var operations = makeOperations(settings)
    let name = strdup("insula")
    defer { free(name) }
    var arguments: [UnsafeMutablePointer<CChar>?] = [name, nil]
    let this = Unmanaged.passUnretained(self).toOpaque()
    let created = arguments.withUnsafeMutableBufferPointer { arguments in
      var args = fuse_args(argc: 1, argv: arguments.baseAddress, allocated: 0)
      // libfuse adds to them, in a copy.
      defer { fuse_opt_free_args(&args) }
      return fuse_session_new(&args, &operations, MemoryLayout<fuse_lowlevel_ops>.size, this)
    }
    guard let created else {
      close(fd.raw)
      throw .ENOMEM
    }
    self.created = created
    var io = fuse_custom_io()
    io.read = { fd, buffer, length, _ in read(fd, buffer, length) }
    io.writev = { fd, vectors, count, data in
      guard let data, let vectors else { return -1 }
      return Unmanaged<Session>.fromOpaque(data)._withUnsafeGuaranteedRef { $0.send(fd, vectors, count) }
    }
    guard fuse_session_custom_io(created, &io, fd.raw) == 0 else {
      fuse_session_destroy(created)
      throw .EINVAL
    }
  }

  deinit {
    // Closes the descriptor as well.
    if let created, !TakingOver.spares(fd.raw) { fuse_session_destroy(created) }
  }

  /// A buffer for ``receive(into:)``.
  ///
  /// Where it has pages already, reading does not wait for any. A process that is killed while the kernel
  /// fetches pages for a request that it hands over fails that request (EIO) instead of leaving it to the
  /// next one. Few requests are longer.
  static func makeBuffer() -> UnsafeMutableRawBufferPointer {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bufferSize, alignment: 4096)
    UnsafeMutableRawBufferPointer(rebasing: buffer[..<(1 << 16)]).initializeMemory(
      as: UInt8.self, repeating: 0)
    return buffer
  }

  /// What reading from the connection gave.
  package enum Received {
    case message(Int)
    case nothing
    /// Unmounted or aborted; nothing more will come.
    case ended
  }

  /// The smallest buffer that the kernel reads a request into: the largest write, and a page for the headers.
  package static let bufferSize = 1 << 20 + 4096

  /// Takes the next request, if there is one.
  @inline(__always)
  package func receive(into buffer: UnsafeMutableRawBufferPointer) -> Received {
    while true {
      let count = read(fd.raw, buffer.baseAddress, buffer.count)
      if count > 0 { return .message(count) }
      let error = count == 0 ? Errno.ENODEV : Errno.last
      // ENOENT: the request was interrupted between being offered and being read.
      if error == .EINTR || error == .ENOENT { continue }
      if error == .EAGAIN { return .nothing }
      isOver.store(true, ordering: .relaxed)
      return .ended
    }
  }

  /// Whether somebody has seen the end of the connection: nobody waits for an answer any more.
  var hasEnded: Bool { isOver.load(ordering: .relaxed) }

  /// Serves one request on this thread.
  package func process(_ message: UnsafeMutableRawBufferPointer) {
    guard let header = Wire.Header(UnsafeRawBufferPointer(message)) else { return }
    for deadline in deadlines where !deadline.check() { return refuse(UnsafeRawBufferPointer(message), .EIO) }
    // What has no answer is not sent again, and without INIT there is no connection.
    guard let servedSlots, Wire.Opcode.mayWait(header.opcode) else {
      return serve(header, message)
    }
    let request = header.caller.request
    let place = servedSlots.begin(request)
    defer { servedSlots.end(place) }
    if !request.isResent || !giveUp(request, UnsafeRawBufferPointer(message)) { serve(header, message) }
  }

  private func serve(_ header: Wire.Header, _ message: UnsafeMutableRawBufferPointer) {
    #if DEBUG
      Trap.begin(header.opcode)
      defer { Trap.end() }
    #endif
    // Until INIT is answered libfuse refuses all others.
    if !handshake.isPending, processFrequent(header, UnsafeRawBufferPointer(message)) { return }
    if header.opcode == Wire.Opcode.interrupt, interruptPostponed(UnsafeRawBufferPointer(message)) { return }
    if header.opcode >= Wire.Opcode.tmpfile, processNewer(header, UnsafeRawBufferPointer(message)) { return }
    if header.opcode == Wire.Opcode.initialize {
      handshake.note(header, UnsafeRawBufferPointer(message))
    }
    let isRelease = header.opcode == Wire.Opcode.release
    if isRelease { releases.wrappingAdd(1, ordering: .acquiringAndReleasing) }
    defer { if isRelease { releases.wrappingSubtract(1, ordering: .acquiringAndReleasing) } }
    var buffer = fuse_buf()
    buffer.mem = message.baseAddress
    buffer.size = message.count
    withUnsafePointer(to: message) { pointer in
      clx_set_thread_value(UnsafeMutableRawPointer(mutating: pointer))
      fuse_session_process_buf(raw, &buffer)
    }
  }

  /// Answers a request with an error without looking at what it asks.
  func refuse(_ message: UnsafeRawBufferPointer, _ error: Errno) {
    guard let header = Wire.Header(message) else { return }
    _ = write(unique: header.unique, code: -error.code, UnsafeRawBufferPointer(start: nil, count: 0))
  }

  /// Answers a request that was sent again if two workers have died by it; false if it is to be served.
  @inline(never)
  private func giveUp(_ request: RequestID, _ message: UnsafeRawBufferPointer) -> Bool {
    guard let served else { return false }
    switch served.requests.verdict(on: request, of: served.view) {
    case .serve: return false
    case .refuse: if let refused = RefusedRequest(message, note: 0) { fileSystem.gaveUp(refused) }
    case .refuseSilently: break
    }
    refuse(message, .EIO)
    return true
  }

  /// Whether a worker has a release in its hands: close(2) does not wait for it, and locks go with it.
  var isReleasing: Bool { releases.load(ordering: .acquiring) > 0 }

  /// Waits until those releases are done, but not for long: one of them may be held up by a slow disk.
  func waitForReleases() {
    let end = monotonicNanoseconds() &+ 1_000_000
    while isReleasing, monotonicNanoseconds() < end { sched_yield() }
  }

  /// The request that this thread is serving, as the kernel sent it.
  static var currentMessage: UnsafeRawBufferPointer {
    guard let value = clx_thread_value() else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    return UnsafeRawBufferPointer(value.load(as: UnsafeMutableRawBufferPointer.self))
  }

  /// Whether so many bytes from here on came with the request that this thread is serving.
  static func isInCurrentMessage(_ start: UnsafeRawPointer, count: Int) -> Bool {
    guard let base = currentMessage.baseAddress else { return false }
    let offset = start - base
    return offset >= 0 && count >= 0 && offset <= currentMessage.count
      && count <= currentMessage.count - offset
  }

  /// Takes the connection over from a worker that has died: `first` is what the kernel sent it first.
  ///
  /// From here on the kernel can be notified.
  package func beginAgain(with first: [UInt8]) throws(Errno) {
    var first = first
    first.withUnsafeMutableBytes { message in
      guard let header = Wire.Header(UnsafeRawBufferPointer(message)) else { return }
      handshake.note(header, UnsafeRawBufferPointer(message), isRepeated: true)
      var buffer = fuse_buf()
      buffer.mem = message.baseAddress
      buffer.size = message.count
      fuse_session_process_buf(raw, &buffer)
    }
    guard !handshake.isPending else { throw .EIO }
  }

  private func send(_ fd: Int32, _ vectors: UnsafeMutablePointer<iovec>, _ count: Int32) -> Int {
    guard handshake.isPending else {
      let header = UnsafeRawBufferPointer(start: vectors[0].iov_base, count: vectors[0].iov_len)
      return answering(Wire.longWord(at: 8, of: header)) {
        write(UnsafeBufferPointer(start: vectors, count: Int(count)), to: fd)
      }
    }
    let sent = handshake.send(fd, vectors, count) { agreed in
      fileSystem.started(SessionConnection(self, agreed))
    }
    if sent > 0, !handshake.isPending { fileSystem.began(by: handshake.message) }
    return sent
  }

  /// Lets go of everyone who still waits.
  ///
  /// After the connection has ended.
  package func finish() {
    parked.failAll(.ECONNABORTED)
    postponed.end()
    fileSystem.ended()
  }
}
