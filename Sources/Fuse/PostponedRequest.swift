// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CFuse
package import LinuxIO
internal import Synchronization

// Requests that wait for a person, or for what takes too long for a thread that serves.
//
//  1. A filesystem that can't answer before that throws `Errno.awaitsConsent`. Nothing has
//     come of the request then, so it can be served again.
//  2. What is kept of it is the kernel's message, for which its user is charged: no thread, and nothing of
//     libfuse's.
//  3. It is served again in its user's turn (``SlowWork``), or refused. A signal ends it (EINTR), as it ends
//     whatever waits for a person. When the connection ends, nobody waits any more.
//  4. If the process that serves dies, the kernel sends it again to the next one.

/// A request that has failed with `Errno.awaitsConsent`.
///
/// Valid during the call only.
package struct PostponableRequest {
  /// What it is about: of a rename or a link, both directories or the object too.
  package let nodes: [NodeID]
  package let caller: Caller
  private let message: UnsafeRawBufferPointer
  private let session: Session

  fileprivate init?(_ message: UnsafeRawBufferPointer, _ session: Session) {
    guard let header = Wire.Header(message) else { return nil }
    caller = header.caller
    var nodes = [header.node]
    switch header.opcode {
    // Rename, link: another node comes first.
    case Wire.Opcode.rename, Wire.Opcode.renameWithFlags, Wire.Opcode.link:
      nodes.append(NodeID(Wire.longWord(at: Wire.headerSize, of: message)))
    default: break
    }
    self.nodes = nodes
    self.message = message
    self.session = session
  }

  /// Keeps the request; EBUSY if the payer has too much waiting, EPERM if it was served again too often.
  package func keep(for payer: Payer, in budget: Budget) throws(Errno) -> PostponedRequest {
    let times = session.postponed.times(caller.request.number)
    guard times < PostponedRequest.mostTimes else { throw .EPERM }
    let copy = try WaitingRequest(
      UnsafeMutableRawBufferPointer(mutating: message), of: payer, isKernelsOwn: false, in: budget)
    let kept = PostponedRequest(copy, caller, session, times: times + 1)
    guard session.postponed.add(kept) else { throw .ECONNABORTED }
    return kept
  }
}

/// A request that waits for somebody's decision; its owner has it served again, or refuses it, once.
package final class PostponedRequest: Sendable {
  /// So often a request is served again that is to wait each time.
  fileprivate static let mostTimes = 4

  package let caller: Caller
  fileprivate let times: Int
  private let copy: WaitingRequest
  private let session: Session
  private let claimed = Atomic<Bool>(false)

  fileprivate init(_ copy: WaitingRequest, _ caller: Caller, _ session: Session, times: Int) {
    self.copy = copy
    self.caller = caller
    self.session = session
    self.times = times
  }

  /// Whether it is answered already, since it was interrupted or its connection has ended.
  package var isOver: Bool { claimed.load(ordering: .acquiring) }

  /// Has it served again, when it is its user's turn.
  package func serveAgain() {
    guard claim() else { return }
    session.postponed.retry(self) { [self] in
      session.process(copy.message)
      session.postponed.forget(self)
    }
  }

  /// Answers it with an error.
  package func refuse(_ error: Errno) {
    guard claim() else { return }
    session.postponed.forget(self)
    session.refuse(UnsafeRawBufferPointer(copy.message), error)
  }

  /// Takes the right to say what becomes of it.
  fileprivate func claim() -> Bool { !claimed.exchange(true, ordering: .acquiringAndReleasing) }
}

/// The requests of one session that wait for somebody, by the kernel's numbers.
final class PostponedRequests: Sendable {
  private struct State {
    var waiting: [UInt64: PostponedRequest] = [:]
    /// Those that are being served again.
    var retried: [UInt64: PostponedRequest] = [:]
    /// Has something done in a user's turn; false if the connection has ended.
    var turns: (@Sendable (UInt32, @escaping @Sendable () -> Void) -> Bool)?
    var isOver = false
  }
  private let state = Mutex(State())

  /// From here on requests can be served again.
  func begin(_ turns: @escaping @Sendable (UInt32, @escaping @Sendable () -> Void) -> Bool) {
    state.withLock { $0.turns = turns }
  }

  /// How often a request has waited by now.
  func times(_ number: UInt64) -> Int { state.withLock { $0.retried[number]?.times ?? 0 } }

  func add(_ request: PostponedRequest) -> Bool {
    state.withLock { state in
      if !state.isOver { state.waiting[request.caller.request.number] = request }
      return !state.isOver
    }
  }

  func retry(_ request: PostponedRequest, _ work: @escaping @Sendable () -> Void) {
    let (turns, isOver) = state.withLock { state in
      let number = request.caller.request.number
      if state.waiting[number] === request { state.waiting[number] = nil }
      state.retried[number] = request
      return (state.turns, state.isOver)
    }
    // What another worker has left is served before there are turns.
    if turns == nil, !isOver { return work() }
    if turns?(request.caller.uid, work) != true { forget(request) }
  }

  func forget(_ request: PostponedRequest) {
    state.withLock { state in
      let number = request.caller.request.number
      if state.waiting[number] === request { state.waiting[number] = nil }
      if state.retried[number] === request { state.retried[number] = nil }
    }
  }

  func find(_ number: UInt64) -> PostponedRequest? { state.withLock { $0.waiting[number] } }

  /// The connection has ended: nobody is there to be answered.
  func end() {
    let left = state.withLock { state in
      defer { (state.waiting, state.retried, state.turns) = ([:], [:], nil) }
      state.isOver = true
      return Array(state.waiting.values)
    }
    for request in left { _ = request.claim() }
  }
}

extension Session {
  fileprivate func postpone(_ request: PostponableRequest) -> Bool { fileSystem.postpone(request) }

  /// Whether a request waits from here on.
  func postpone(_ message: UnsafeRawBufferPointer) -> Bool {
    PostponableRequest(message, self).map { postpone($0) } ?? false
  }

  /// Frees what libfuse has of a request that was postponed; one that was interrupted before that is over.
  func letGo(of request: fuse_req_t) {
    let isInterrupted = fuse_req_interrupted(request) != 0
    let number = RequestID(Wire.longWord(at: 8, of: Session.currentMessage)).number
    fuse_reply_none(request)
    if isInterrupted { postponed.find(number)?.refuse(.EINTR) }
  }

  /// Answers a request that waits, if the kernel has it interrupted: struct fuse_interrupt_in {unique u64}.
  func interruptPostponed(_ message: UnsafeRawBufferPointer) -> Bool {
    let number = RequestID(Wire.longWord(at: Wire.headerSize, of: message)).number
    guard let request = postponed.find(number) else { return false }
    request.refuse(.EINTR)
    return true
  }
}
