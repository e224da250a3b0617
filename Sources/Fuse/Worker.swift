// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// How many requests a worker serves before it looks whether another session waits for one.
///
/// Without that, whoever keeps as many sessions busy as there are workers would have them all.
struct Turn {
  private static let length = 16
  private let counter: RequestCounter?
  private var served = 0

  init(in served: ServedSession) { counter = served.counter }

  /// Counts a request; true for the last one of a turn.
  mutating func isOver() -> Bool {
    served += 1
    guard served >= Self.length else { return false }
    end()
    return true
  }

  /// The session's own count follows turn by turn: workers that share a session don't contend for it with
  /// each request.
  mutating func end() {
    counter?.add(served)
    served = 0
  }
}

/// One thread's state.
final class Worker: Sendable {
  // One thread's own.
  nonisolated(unsafe) private let buffer: UnsafeMutableRawBufferPointer
  let thread = ServingThread()
  let requests: RequestCounts
  private let traces: RequestTraces
  private nonisolated(unsafe) var pollingGain = PollingGain()
  private nonisolated(unsafe) var crowd = Crowd()
  private let poller: SessionPoller
  let isReserve: Bool
  /// What the worker is in; nil also if it has been given up, and whoever did that has left it.
  let current = Mutex<Current?>(nil)
  struct Current {
    let served: ServedSession
    /// For whom and for what it has a place in ``SlowWork``.
    var place: Place?
  }

  struct Place {
    let user: UInt32
    let kind: SlowKind
  }

  /// `stopping` becomes readable when the pool stops; a worker of the reserve never sits down.
  init(
    stopping: FD, pool: FD, isReserve: Bool, traces: RequestTraces,
    _ requests: RequestCounts = RequestCounts()
  ) throws(Errno) {
    self.isReserve = isReserve
    self.requests = requests
    self.traces = traces
    poller = try SessionPoller(stopping: stopping, pool: pool)
    buffer = Session.makeBuffer()
  }

  deinit { buffer.deallocate() }

  /// Serves the session until it has nothing to do, or has ended.
  ///
  /// The caller has entered it, and leaves it afterwards, unless somebody has done that for this worker.
  func serve(_ served: ServedSession, pollNanoseconds: UInt64, helpers: Helpers) -> Bool {
    current.withLock { $0 = Current(served: served) }
    serve(in: served, pollNanoseconds, helpers)
    return current.withLock { current in
      defer { current = nil }
      return current != nil
    }
  }

  private func serve(in served: ServedSession, _ pollNanoseconds: UInt64, _ helpers: Helpers) {
    helpers.monitor.wake()
    let session = served.session
    let owner = served.own()
    if served.isCrowded, !isReserve { return sit(in: served, helpers) }
    var isFirst = true
    var turn = Turn(in: served)
    defer { turn.end() }
    while true {
      switch session.receive(into: buffer) {
      case .message(let count):
        let request = request(count, of: session)
        // What woke us says nothing about others.
        if isFirst {
          crowd.waitedForRequest(request.opcode, from: request.client)
        } else {
          crowd.foundRequest(request.opcode, from: request.client)
        }
        isFirst = false
        serve(request, in: served, helpers) {
          if served.isOwned(owner) { callHelp(served, request.pace, helpers) }
        }
        if thread.isLost { return served.isOwned(owner) ? served.arm() : () }
        if turn.isOver(), helpers.othersWait { return served.arm() }
        continue
      case .ended:
        served.close()
        return
      case .nothing:
        crowd.foundNothing()
      }
      if crowd.isThere, !isReserve {
        served.becomeCrowded()
        return sit(in: served, helpers)
      }
      guard served.isOwned(owner) else { return }
      guard !isReserve, pollNanoseconds > 0, pollingGain.isThere(),
        let count = poll(session, served, owner, pollNanoseconds)
      else {
        served.arm()
        return
      }
      let request = request(count, of: session)
      crowd.waitedForRequest(request.opcode, from: request.client)
      serve(request, in: served, helpers) { callHelp(served, request.pace, helpers) }
      if thread.isLost || turn.isOver() && helpers.othersWait { return served.arm() }
    }
  }

  /// Shares the requests of a crowded session with other workers, until there is no crowd any more.
  private func sit(in served: ServedSession, _ helpers: Helpers) {
    crowd = Crowd()
    guard poller.take(in: served.session) else { return served.arm() }
    defer { poller.leave(served.session) }
    // Until there is a worker for each CPU, whoever is free may join.
    if served.workers < helpers.regulars { served.arm() }
    var turn = Turn(in: served)
    defer { turn.end() }
    var isOver = false
    while served.isCrowded {
      switch poller.wait() {
      case .request: break
      case .others:
        if isOver { return served.arm() }
      case .timeout:
        served.disperse()
        continue
      case .stop: return served.arm()
      }
      switch served.session.receive(into: buffer) {
      case .message(let count):
        let request = request(count, of: served.session)
        if !Wire.Opcode.isNotice(request.opcode) {
          served.noteRequest(from: request.client, of: request.user)
        }
        serve(request, in: served, helpers) {
          if request.pace != .quick { callHelp(served, request.pace, helpers) }
        }
        if thread.isLost { return served.arm() }
        isOver = turn.isOver() || isOver
      case .ended: return served.close()
      // A worker that finds nothing here is free for others.
      case .nothing: isOver = true
      }
    }
    served.arm()
  }

  /// Lets another worker look after the session meanwhile if this request will be long, or if there are
  /// several clients and not yet a worker for each CPU.
  private func callHelp(_ served: ServedSession, _ pace: Wire.Pace, _ helpers: Helpers) {
    if pace != .quick {
      served.arm()
      if served.workers >= helpers.regulars { helpers.reserve.call() }
    } else if crowd.isThere, served.workers < helpers.regulars {
      served.arm()
    }
  }

  /// What the worker has read.
  private struct Request {
    let message: UnsafeMutableRawBufferPointer
    let opcode: UInt32
    let user: UInt32
    /// The thread that asks (0 for the kernel itself).
    let client: UInt32
    let pace: Wire.Pace
  }

  @inline(__always)
  private func request(_ count: Int, of session: Session) -> Request {
    let message = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
    let bytes = UnsafeRawBufferPointer(message)
    return Request(
      message: message, opcode: Wire.word(at: 4, of: bytes), user: Wire.word(at: 24, of: bytes),
      client: Wire.word(at: 32, of: bytes), pace: Wire.Pace(bytes, of: session.fileSystem))
  }

  /// Serves a request, unless it is slow and its user has enough of that under way: then it waits for its
  /// turn.
  ///
  /// `beforehand` is called if it is served here.
  @inline(__always)
  private func serve(
    _ request: Request, in served: ServedSession, _ helpers: Helpers, _ beforehand: () -> Void
  ) {
    let files = served.session.fileSystem
    if files.hasQueues, let queue = Wire.queue(for: UnsafeRawBufferPointer(request.message), in: files) {
      return serveApart(request, in: served, queue, helpers)
    }
    if helpers.stalled.areThere, Wire.Opcode.mayWait(request.opcode),
      let queue = helpers.stalled.queue(of: files.payer(of: request.user).user)
    {
      return serveApart(request, in: served, queue, helpers)
    }
    guard case .slow(let kind) = request.pace else {
      beforehand()
      return serve(served.session, request)
    }
    let payer = served.session.fileSystem.payer(of: request.user)
    guard helpers.slow.begin(payer.user, kind, isData: kind == .disk) else {
      return serveLater(request, kind, in: served, helpers, payer)
    }
    current.withLock { $0?.place = Place(user: payer.user, kind: kind) }
    defer { if let place = takePlace() { helpers.slow.end(place.user, place.kind) } }
    beforehand()
    serve(served.session, request)
  }

  /// The worker's place in ``SlowWork``, which the caller gives back.
  private func takePlace() -> Place? {
    current.withLock { current in
      defer { current?.place = nil }
      return current?.place
    }
  }

  /// Has the worker end as soon as it can, and call `cameBack` then; gives what it was in, which the caller
  /// leaves, if it still is at the request of that number.
  func giveUp(at number: UInt64, cameBack: @escaping @Sendable () -> Void) -> Current? {
    current.withLock { current in
      thread.lose(cameBack)
      guard thread.number == number else { return nil }
      defer { current = nil }
      return current
    }
  }

  private func serveLater(
    _ request: Request, _ kind: SlowKind, in served: ServedSession, _ helpers: Helpers, _ payer: Payer
  ) {
    let waiting: WaitingRequest
    do throws(Errno) {
      waiting = try WaitingRequest(
        request.message, of: payer,
        isKernelsOwn: request.user == 0 && request.client == 0,
        isWiped: served.session.fileSystem.hasQueues, in: helpers.slow.budget)
    } catch {
      return served.session.refuse(UnsafeRawBufferPointer(request.message), error)
    }
    // The session is not over before this is done.
    served.enter()
    let (slow, sessions) = (helpers.slow, helpers.sessions)
    let (opcode, client) = (request.opcode, request.client)
    let patience = Wire.Patience(opcode)
    let isAdded = slow.add(
      payer.user, served.key, kind, limit: patience?.limit, ended: { sessions.leave(served) }
    ) { [traces] in
      traces.serve(opcode, from: client) { served.session.process(waiting.message) }
      slow.requests.add(opcode)
    }
    if !isAdded, let patience {
      served.session.refuse(UnsafeRawBufferPointer(request.message), patience.error)
      sessions.leave(served)
    }
  }

  /// Leaves a request to the threads of a queue.
  private func serveApart(
    _ request: Request, in served: ServedSession, _ queue: RequestQueue, _ helpers: Helpers
  ) {
    // The session is not over before this is done.
    served.enter()
    let sessions = helpers.sessions
    queue.add(
      request.message, of: served.session, served.session.fileSystem.payer(of: request.user),
      connection: served.key
    ) { sessions.leave(served) }
    requests.add(request.opcode)
  }

  private func serve(_ session: Session, _ request: Request) {
    thread.begin(request.user, isSlow: request.pace != .quick)
    traces.serve(request.opcode, from: request.client) { session.process(request.message) }
    // See `RequestQueue`.
    if request.opcode == Wire.Opcode.write, session.fileSystem.hasQueues { request.message.wipe() }
    thread.end()
    requests.add(request.opcode)
  }

  /// Looks for the next request for a while; gives its size.
  private func poll(
    _ session: Session, _ served: ServedSession, _ owner: UInt64, _ nanoseconds: UInt64
  ) -> Int? {
    let end = monotonicNanoseconds() &+ nanoseconds
    repeat {
      // The end of the connection is seen by the read that follows.
      if case .message(let count) = session.receive(into: buffer) {
        pollingGain.polled(found: true)
        return count
      }
      guard served.isOwned(owner) else { return nil }
    } while monotonicNanoseconds() < end
    pollingGain.polled(found: false)
    return nil
  }
}
