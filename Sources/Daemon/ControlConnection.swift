// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization

/// One caller, and what has arrived of its next request.
final class ControlConnection: Sendable {
  /// What becomes of a connection after something has arrived on it.
  enum Next {
    case goesOn
    case isOver
    /// It belongs to a job from now on.
    case waits(ControlQueue, ControlJob)
  }

  private struct Incoming {
    var bytes: [UInt8] = []
    /// How many of the bytes are known to hold no end of a line.
    var searched = 0
    var descriptor: SharedFD?

    mutating func takeLine() -> [UInt8]? {
      guard let end = bytes[searched...].firstIndex(of: UInt8(ascii: "\n")) else {
        searched = bytes.count
        return nil
      }
      let line = Array(bytes[..<end])
      bytes.removeFirst(end + 1)
      searched = 0
      return line
    }
  }

  private let socket: OwnedFD
  let caller: ControlCaller
  private let passed: PassedDescriptors
  /// Only the server's thread takes in requests; a job only looks whether the caller is still there.
  private let incoming = Mutex(Incoming())
  /// What gives the answer that the caller waits for, if there is none yet.
  private let awaited = Mutex<(@Sendable () -> ControlReply?)?>(nil)
  /// The agent that the caller is for as long as it is connected, if it is one.
  private let presence = Mutex<AgentPresence?>(nil)
  /// What of a message could not be sent yet.
  private let unsent = Mutex<[UInt8]>([])
  private let lastActivity = Atomic<UInt64>(monotonicNanoseconds())

  var fd: FD { socket.fd }
  /// When it last said something.
  var activity: UInt64 { lastActivity.load(ordering: .relaxed) }
  /// Whether its caller waits for an answer, and has nothing to say.
  var isWaiting: Bool { awaited.withLock { $0 != nil } }
  /// Whether what it was there for has ended.
  var hasEnded: Bool { agent?.hasEnded() ?? false }
  /// How much has arrived that is not answered.
  var held: Int { incoming.withLock { $0.bytes.count } }
  /// Whether there may be a whole request among what has arrived.
  var hasRequest: Bool { incoming.withLock { $0.searched < $0.bytes.count } }

  init(_ socket: consuming OwnedFD, _ passed: PassedDescriptors) throws(Errno) {
    caller = try ControlCaller(of: socket.fd)
    self.passed = passed
    self.socket = socket
  }

  /// Has its turn: takes in what has arrived, unless a request is left from before, and answers one.
  func takeTurn(answeringWith handler: ControlServer.Handler) -> Next {
    incoming.withLock { incoming in
      lastActivity.store(monotonicNanoseconds(), ordering: .relaxed)
      if isWaiting { return .isOver }
      if incoming.searched == incoming.bytes.count, !receive(&incoming) { return .isOver }
      let limit = isReader ? ControlLine.readingLimit : ControlLine.requestLimit
      guard let line = incoming.takeLine() else { return incoming.bytes.count <= limit ? .goesOn : .isOver }
      defer { incoming.descriptor = nil }
      switch answer(line, incoming.descriptor, handler) {
      case .reply(let reply): return send(.reply(reply)) && sendRest() ? .goesOn : .isOver
      case .job(let queue, let job): return .waits(queue, job)
      case .waits(let until):
        awaited.withLock { $0 = until }
        return answerAwaited() ? .goesOn : .isOver
      }
    }
  }

  /// Gives the answer that the caller waits for, if there is one by now; false if it could not be sent, or
  /// if it is the last one.
  func answerAwaited() -> Bool {
    if let until = awaited.withLock({ $0 }), let reply = until() {
      awaited.withLock { $0 = nil }
      guard send(.reply(reply)), sendRest() else { return false }
    }
    return !hasEnded
  }

  var agent: AgentPresence? { presence.withLock { $0 } }

  /// Whether it is there for the one process that reads for an app: there is no more of those than of apps.
  var isReader: Bool { agent?.isReader ?? false }

  /// The agent that the caller is from here on, for one app or for all.
  func agent(
    of view: UInt64?, isReader: Bool = false, _ make: () -> AgentPresence?
  ) -> AgentPresence? {
    presence.withLock { presence in
      if let known = presence, known.view == view, known.isReader == isReader { return known }
      guard let new = make() else { return nil }
      presence = new
      return new
    }
  }

  /// False when the caller has hung up.
  private func receive(_ incoming: inout Incoming) -> Bool {
    do throws(Errno) {
      let arrived = try LocalSocket.receive(
        from: fd, limit: 4096, takesDescriptor: passed.takes(from: caller.account))
      guard let arrived else { return false }
      incoming.bytes += arrived.bytes
      if let descriptor = arrived.descriptor {
        incoming.descriptor = passed.keep(descriptor, of: caller.account)
      }
      return true
    } catch {
      return error == .EAGAIN
    }
  }

  /// Lets the caller pass on a descriptor, and takes it in for their next request.
  ///
  /// Runs on a thread of that user's, since it may be theirs to wait there; afterwards the socket holds
  /// nothing that could keep whoever closes it.
  private func takeDescriptor() -> ControlReply {
    guard LocalSocket.allowDescriptors(true, to: fd) else {
      return .failure(ControlFailure("this socket does not accept descriptors", .EINVAL))
    }
    var arrived: FD?
    if send(.awaitsDescriptor), (try? fd.waitUntilReadable(milliseconds: Self.patience)) == true {
      let takes = passed.takes(from: caller.account)
      arrived = (try? LocalSocket.receive(from: fd, limit: 1, takesDescriptor: takes))??.descriptor
    }
    _ = LocalSocket.allowDescriptors(false, to: fd)
    // More than fits into a socket: what is left after that has arrived when no descriptor could.
    for _ in 0..<Self.mostPieces {
      guard (try? LocalSocket.receive(from: fd, limit: 65536, takesDescriptor: false)) ?? nil != nil else {
        break
      }
    }
    let kept = arrived.flatMap { passed.keep($0, of: caller.account) }
    incoming.withLock { $0.descriptor = kept }
    return .done
  }

  /// How long to wait for a descriptor that was announced.
  private static let patience: Int32 = 10_000
  private static let mostPieces = 1024

  private func answer(
    _ line: [UInt8], _ descriptor: SharedFD?, _ handler: ControlServer.Handler
  ) -> ControlAnswer {
    let request: ControlRequest
    do {
      request = try ControlLine.decode(ControlRequest.self, line)
    } catch {
      return .reply(.failure(ControlFailure(unreadable: error)))
    }
    if request == .pass { return .job(.passing) { [self] _ in takeDescriptor() } }
    var call = ControlCall(request: request, caller: caller, connection: self, descriptor: descriptor)
    if request.isAboutCaller, let process = try? ProcessID.openPeer(of: fd) {
      call.process = SharedFD(process)
    }
    return handler(call)
  }

  /// Begins to send a message, of which a part may have to wait until the client has read (``sendRest()``);
  /// false if nothing of it was sent.
  func send(_ message: ControlMessage, with descriptor: FD? = nil) -> Bool {
    guard sendRest() else { return false }
    let bytes = ControlLine.encode(message)
    guard let count = try? LocalSocket.send(bytes[...], with: descriptor, to: fd), count > 0 else {
      return false
    }
    unsent.withLock { $0 = Array(bytes.dropFirst(count)) }
    return true
  }

  /// Goes on with the last message; false while a part of it is left.
  func sendRest() -> Bool {
    unsent.withLock { rest in
      guard !rest.isEmpty else { return true }
      if let count = try? LocalSocket.send(rest[...], to: fd) { rest.removeFirst(count) }
      return rest.isEmpty
    }
  }

  /// Says that it goes, since there are too many of the same user.
  func dismiss() { _ = try? LocalSocket.send(Self.dismissal[...], to: fd) }

  private static let dismissal = ControlLine.encode(ControlMessage.reply(.failure(.crowded)))

  /// Whether the caller has hung up.
  ///
  /// Who waits for an answer has nothing to say: one that talks all the same is not listened to any more.
  var isOver: Bool { (try? fd.waitUntilReadable(milliseconds: 0)) == true }
}
