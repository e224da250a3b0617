// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CFuse
internal import CLinux
internal import Glibc
package import LinuxIO
internal import Synchronization

/// A request that waits: whoever holds this replies to it later, once.
///
/// A waiting request may be granted by one thread while another learns that its process was interrupted.
/// ``claim()`` decides between them; only who got true may ``send(_:)``.
package final class ParkedReply: Sendable {
  /// Unlike the request's address, never used again: it stands for the request in libfuse's interrupt
  /// callback.
  package let id: UInt
  nonisolated(unsafe) private let request: fuse_req_t
  private let session: Session
  private let claimed = Atomic<Bool>(false)

  /// libfuse may call back while the callback is being registered, with the request locked: replying there
  /// would free what it is about to unlock.
  ///
  /// Such an interrupt is noted and acted on afterwards.
  private enum Registration {
    static let underWay = 0
    static let interrupted = 1
    static let done = 2
  }
  private let registration = Atomic<Int>(Registration.underWay)

  fileprivate init(id: UInt, request: fuse_req_t, session: Session) {
    self.id = id
    self.request = request
    self.session = session
  }

  /// Takes the right to reply; false if someone else has it.
  package func claim() -> Bool { !claimed.exchange(true, ordering: .acquiringAndReleasing) }

  /// Whether someone has the right to reply already.
  package var isClaimed: Bool { claimed.load(ordering: .acquiring) }

  /// Replies.
  ///
  /// Only after a successful ``claim()``, once.
  package func send(_ error: Errno?) {
    session.parked.remove(id)
    fuse_reply_err(request, error?.code ?? 0)
  }

  fileprivate func registered() {
    let before = registration.exchange(Registration.done, ordering: .acquiringAndReleasing)
    if before == Registration.interrupted { interrupt() }
  }

  fileprivate func interrupt() {
    let noted = registration.compareExchange(
      expected: Registration.underWay, desired: Registration.interrupted, ordering: .acquiringAndReleasing)
    guard !noted.exchanged, claim() else { return }
    send(.EINTR)
    session.fileSystem.abandoned(self)
  }
}

/// Lets a filesystem put off the reply to the request that it is answering.
package struct ParkingPlace {
  let request: fuse_req_t
  let session: Session

  /// Parks the request.
  ///
  /// From here on the reply belongs to the result, also if it has been interrupted by now.
  package func park() -> ParkedReply { session.parked.add(request, session) }
}

/// The parked requests of one session, by their ids.
final class ParkedReplies: Sendable {
  private struct State {
    var replies: [UInt: ParkedReply] = [:]
    var lastID: UInt = 0
  }
  private let state = Mutex(State())

  var count: Int { state.withLock { $0.replies.count } }

  func add(_ request: fuse_req_t, _ session: Session) -> ParkedReply {
    nonisolated(unsafe) let request = request
    let reply = state.withLock { state in
      state.lastID &+= 1
      let reply = ParkedReply(id: state.lastID, request: request, session: session)
      state.replies[reply.id] = reply
      return reply
    }
    // libfuse calls back on whichever thread reads the interrupt, or right here if it has been read already.
    fuse_req_interrupt_func(
      request,
      { request, id in
        guard let request, let data = fuse_req_userdata(request) else { return }
        let session = Unmanaged<Session>.fromOpaque(data).takeUnretainedValue()
        session.parked.find(UInt(bitPattern: id))?.interrupt()
      }, UnsafeMutableRawPointer(bitPattern: reply.id))
    reply.registered()
    return reply
  }

  func find(_ id: UInt) -> ParkedReply? { state.withLock { $0.replies[id] } }

  func remove(_ id: UInt) { state.withLock { _ = $0.replies.removeValue(forKey: id) } }

  /// Answers all that still wait; for the end of a session.
  func failAll(_ error: Errno) {
    let waiting = state.withLock { Array($0.replies.values) }
    for reply in waiting where reply.claim() { reply.send(error) }
  }
}
