// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO
internal import Synchronization

// What another worker had read and not answered, which the kernel sends again.
//
//  1. It is served before anything new, one request after the other: a request that ends workers is then the
//     only one under way (`ServedRequests`).
//  2. What is slow has its user's turn (``SlowWork``), and what concerns a server has its queue: there may be
//     any number of those. None of it begins before the pool does, so it is not under way beside a suspect,
//     which is served at once, as is what another worker has begun to change.
//  3. A request may wait in the kernel for what a user holds (`StalledUsers`). After a second another thread
//     goes on with the next one, and after that much sooner.
//  4. All else of a user has that user's turn, too, once it has kept others waiting for some tenths of a
//     second: in all views together.

extension Session {
  /// How far that is.
  private struct Resending {
    /// The thread whose turn it is, counted.
    var thread = 0
    /// How many requests have been read or served.
    var steps = 0
    var sent: Set<UInt64> = []
    var isOver = false
    /// Whose request is being served.
    var user: UInt32?
  }

  /// For how long a user may keep others waiting.
  private static let resentNanoseconds: UInt64 = 200_000_000

  /// Serves all that; when this returns, it is answered, or waits for something that others need not wait
  /// for.
  package func resume(_ slow: SlowWork) throws(Errno) {
    slow.hold()
    let flags = try check(fcntl(fd.raw, F_GETFL))
    try check(fcntl(fd.raw, F_SETFL, flags | O_NONBLOCK))
    let resend: Int32 = 7
    guard write(unique: 0, code: resend, UnsafeRawBufferPointer(start: nil, count: 0)) else { throw .last }
    let resending = Condition(Resending())
    var milliseconds = 1000
    while !resending.withLock({ $0.isOver }) {
      let number = resending.withLock { resending in
        resending.thread += 1
        return resending.thread
      }
      // On a thread that keeps its capabilities when it acts for a caller, as all do that serve.
      let thread = try JoinableThread(name: "insula-resent") {
        try? ThreadIdentity.prepare()
        self.serveResent(slow, resending, thread: number)
      }
      thread.detach()
      var steps = -1
      while true {
        let known = steps
        guard resending.wait(milliseconds: milliseconds, until: { $0.isOver || $0.steps != known }),
          !resending.withLock({ $0.isOver })
        else { break }
        steps = resending.withLock { $0.steps }
      }
      let waiting = resending.withLock { $0.isOver ? nil : $0.user }
      if let waiting { slow.resentTime.withLock { $0[waiting] = Self.resentNanoseconds } }
      milliseconds = 100
    }
    served?.requests.forget(view: served?.view ?? 0, besides: resending.withLock { $0.sent })
  }

  /// Serves what has been sent again, as long as it is this thread's turn.
  private func serveResent(_ slow: SlowWork, _ resending: Condition<Resending>, thread: Int) {
    let buffer = Self.makeBuffer()
    defer { buffer.deallocate() }
    func isTurn() -> Bool {
      resending.change { resending in
        resending.steps += 1
        resending.user = nil
        return resending.thread == thread && !resending.isOver
      }
    }
    while isTurn() {
      guard case .message(let count) = receive(into: buffer) else {
        return resending.change { $0.isOver = true }
      }
      let message = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
      let bytes = UnsafeRawBufferPointer(message)
      let request = RequestID(Wire.longWord(at: 8, of: bytes))
      if request.isResent { resending.withLock { _ = $0.sent.insert(request.number) } }
      serveAgain(message, request, slow) { user in resending.withLock { $0.user = user } }
      // The kernel sends that before other requests, but not before what it only has to say.
      if !request.isResent, !Wire.Opcode.isUnanswered(Wire.word(at: 4, of: bytes)) {
        return resending.change { $0.isOver = true }
      }
    }
  }

  /// `begins` is told whose request is about to be served on this thread.
  private func serveAgain(
    _ message: UnsafeMutableRawBufferPointer, _ request: RequestID, _ slow: SlowWork,
    _ begins: (_ user: UInt32) -> Void
  ) {
    let bytes = UnsafeRawBufferPointer(message)
    let isSuspect = served.map { $0.requests.isSuspect(request, of: $0.view) } ?? false
    if fileSystem.hasQueues, let queue = Wire.queue(for: bytes, in: fileSystem),
      let header = Wire.Header(bytes)
    {
      fileSystem.resentWait(by: 1)
      queue.add(message, of: self, fileSystem.payer(of: header.caller.uid), connection: 0) {
        [fileSystem] in fileSystem.resentWait(by: -1)
      }
    } else if isSuspect || !postpone(message, request, slow) {
      let user = fileSystem.payer(of: Wire.word(at: 24, of: bytes)).user
      begins(user)
      let before = monotonicNanoseconds()
      fileSystem.resentWait(by: 1)
      process(message)
      fileSystem.resentWait(by: -1)
      let time = monotonicNanoseconds() &- before
      return slow.resentTime.withLock { $0[user, default: 0] &+= time }
    }
    // If it ends this worker too, no other one must be under way with it.
    if isSuspect, let served { served.requests.waitForAnswer(to: request, of: served.view) }
  }

  /// Has a request served in its user's turn, if it is slow or its user has kept others waiting for long.
  private func postpone(
    _ message: UnsafeMutableRawBufferPointer, _ request: RequestID, _ slow: SlowWork
  ) -> Bool {
    let bytes = UnsafeRawBufferPointer(message)
    guard let header = Wire.Header(bytes), Wire.Opcode.mayWait(header.opcode), !fileSystem.hasBegun(request)
    else { return false }
    let payer = fileSystem.payer(of: header.caller.uid)
    let kind: SlowKind
    switch Wire.Pace(bytes, of: fileSystem) {
    case .slow(let found): kind = found
    case .quick:
      let time = slow.resentTime.withLock { $0[payer.user] ?? 0 }
      guard time >= Self.resentNanoseconds else { return false }
      kind = .names
    }
    guard
      let copy = try? WaitingRequest(
        message, of: payer, isKernelsOwn: true, isWiped: fileSystem.hasQueues, in: slow.budget)
    else { return false }
    fileSystem.resentWait(by: 1)
    slow.add(payer.user, 0, kind) { [weak self, fileSystem] in
      self?.process(copy.message)
      fileSystem.resentWait(by: -1)
    }
    return true
  }
}
