// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
package import LinuxIO
internal import Synchronization

/// A conversation with a running daemon.
package final class ControlClient: Sendable {
  private let socket: OwnedFD
  private let directory: OwnedFD
  private let name: String
  /// Who must be the one to answer; nil for whoever does.
  private let user: UInt32?
  /// What has arrived beyond the last reply.
  private let received = Mutex<[UInt8]>([])
  /// What has come along with the last reply.
  private let passed = Mutex<SharedFD?>(nil)

  /// Connects to the daemon that listens under `name`; ECONNREFUSED or ENOENT if none does.
  ///
  /// With a `user` it must be theirs, and is not waited for.
  package init(in directory: FD, name: String, of user: UInt32? = nil) throws(Errno) {
    if let user {
      socket = try LocalSocket.connect(in: directory, name: name, of: user)
    } else {
      socket = try LocalSocket.connect(in: directory, name: name)
    }
    self.user = user
    self.directory = try directory.duplicated()
    self.name = name
  }

  /// Another conversation with the same daemon, whatever may hide its place by now.
  package func again() throws(Errno) -> ControlClient {
    try ControlClient(in: directory.fd, name: name, of: user)
  }

  /// Where the daemon is, for a conversation later on; it keeps none open until then.
  package func address() throws(Errno) -> ControlAddress {
    ControlAddress(directory: try directory.fd.duplicated(), name: name)
  }

  /// Asks, and waits for the answer: EAGAIN when none came in time, ECONNABORTED when the daemon went away.
  package func ask(_ request: ControlRequest, milliseconds: Int32) throws(Errno) -> ControlReply {
    try send(request, nil)
    return try receiveReply(milliseconds: milliseconds)
  }

  /// Asks something whose answer ``awaitReply(milliseconds:)`` gives.
  package func send(_ request: ControlRequest) throws(Errno) { try send(request, nil) }

  /// Waits for the answer to what was sent, as ``ask(_:milliseconds:)`` does.
  package func awaitReply(milliseconds: Int32) throws(Errno) -> ControlReply {
    try receiveReply(milliseconds: milliseconds)
  }

  /// Whether all that was sent has been read by the other end.
  package var hasBeenHeard: Bool { (try? LocalSocket.unheard(socket.fd)) == 0 }

  /// Has something to read when there is an answer, or none will come.
  package var fd: FD { socket.fd }

  /// Asks, and asks again if the daemon is replaced by another one meanwhile, unless that may be once too
  /// often; gives the conversation in which the answer came, too.
  package func askAgain(
    _ request: ControlRequest, milliseconds: Int32
  ) throws(Errno) -> (reply: ControlReply, client: ControlClient) {
    var client = self
    var left = request.mayBeRepeated ? Self.mostReplacements : 0
    while true {
      do throws(Errno) {
        return (try client.ask(request, milliseconds: milliseconds), client)
      } catch {
        guard error == .ECONNABORTED, left > 0 else { throw error }
      }
      left -= 1
      client = try client.again()
    }
  }

  /// The same; where the daemon has too many requests of this user, again after a moment.
  ///
  /// It keeps no list of those it has turned away, and tells none of them when it has room.
  package func askInTurn(
    _ request: ControlRequest, milliseconds: Int32, turns: Int = 1000, pauseMilliseconds: Int = 30
  ) throws(Errno) -> (reply: ControlReply, client: ControlClient) {
    var answer = try askAgain(request, milliseconds: milliseconds)
    for _ in 1..<turns where answer.reply.isCrowded {
      pauseThread(milliseconds: pauseMilliseconds)
      answer = try answer.client.again().askAgain(request, milliseconds: milliseconds)
    }
    return answer
  }

  /// More often a daemon is not replaced within ten seconds, usually.
  private static let mostReplacements = 5

  /// Asks for something that takes its time, and waits for as long as it takes; `descriptor` is passed on.
  package func ask(
    _ request: ControlRequest, with descriptor: FD?, progress: (InstallProgress) -> Void = { _ in }
  ) throws(Errno) -> ControlReply {
    do throws(Errno) {
      try send(request, descriptor)
    } catch .EPERM where descriptor != nil {
      if let refusal = try pass(descriptor) { return refusal }
      try send(request, nil)
    }
    return try receiveReply(milliseconds: -1, progress)
  }

  /// The descriptor that has come along with what was asked for.
  package func takePassed() -> SharedFD? { passed.withLock { $0.take() } }

  /// Passes a descriptor on for the next request, as a daemon wants it that can refuse others; gives what it
  /// answers if it does not take it.
  private func pass(_ descriptor: FD?) throws(Errno) -> ControlReply? {
    try send(.pass, nil)
    switch try receive(until: nil) {
    case .awaitsDescriptor: break
    case .reply(let refusal): return refusal
    case .progress: throw .EIO
    }
    _ = try LocalSocket.send([UInt8(ascii: "\n")], with: descriptor, to: socket.fd)
    let taken = try receiveReply(milliseconds: -1)
    return taken == .done ? nil : taken
  }

  private func send(_ request: ControlRequest, _ descriptor: FD?) throws(Errno) {
    let line = ControlLine.encode(request)
    do throws(Errno) {
      guard try LocalSocket.send(line[...], with: descriptor, to: socket.fd) == line.count else {
        throw .EAGAIN
      }
    } catch .EPIPE {
      // Who hangs up has said why, if there was a reason: that can still be read.
    }
  }

  /// What a daemon says at last; until then, how far it is.
  private func receiveReply(
    milliseconds: Int32, _ progress: (InstallProgress) -> Void = { _ in }
  ) throws(Errno) -> ControlReply {
    let end = milliseconds < 0 ? nil : monotonicNanoseconds() + UInt64(milliseconds) * 1_000_000
    while true {
      switch try receive(until: end) {
      case .reply(let reply): return reply
      case .progress(let step): progress(step)
      case .awaitsDescriptor: throw .EIO
      }
    }
  }

  /// What a daemon has sent; one that ends may leave something of ours unread.
  private func arrived() throws(Errno) -> (bytes: [UInt8], descriptor: FD?) {
    do throws(Errno) {
      guard let arrived = try LocalSocket.receive(from: socket.fd, limit: 65536) else { throw .ECONNABORTED }
      return arrived
    } catch .ECONNRESET {
      throw .ECONNABORTED
    }
  }

  /// Who sends a little again and again gets no more time.
  private func receive(until end: UInt64?) throws(Errno) -> ControlMessage {
    try received.withLock { (received) throws(Errno) in
      while true {
        if let end = received.firstIndex(of: UInt8(ascii: "\n")) {
          let line = received[..<end]
          received = Array(received[(end + 1)...])
          guard let message = try? ControlLine.decode(ControlMessage.self, line) else { throw .EIO }
          return message
        }
        guard received.count < ControlLine.replyLimit else { throw .E2BIG }
        var left: Int32 = -1
        if let end {
          let now = monotonicNanoseconds()
          guard now < end else { throw .EAGAIN }
          left = Int32(clamping: (end - now) / 1_000_000 + 1)
        }
        guard try socket.fd.waitUntilReadable(milliseconds: left) else { throw .EAGAIN }
        let arrived = try arrived()
        if let descriptor = arrived.descriptor {
          passed.withLock { $0 = SharedFD(OwnedFD(owning: descriptor.raw)) }
        }
        received += arrived.bytes
      }
    }
  }
}

/// Where a daemon is, whatever may hide its place by then.
package final class ControlAddress: Sendable {
  private let directory: OwnedFD
  private let name: String

  init(directory: consuming OwnedFD, name: String) {
    self.directory = directory
    self.name = name
  }

  package func connect() throws(Errno) -> ControlClient { try ControlClient(in: directory.fd, name: name) }
}
