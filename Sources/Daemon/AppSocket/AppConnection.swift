// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// The socket of one view.
final class AppEndpoint: Sendable {
  let number: UInt64
  let user: UInt32
  let payer: Payer
  private let listener: OwnedFD
  let handler: AppSocketServer.Handler

  var fd: FD { listener.fd }

  init(
    _ number: UInt64, _ user: UInt32, _ view: UInt32, _ listener: consuming OwnedFD,
    _ handler: @escaping AppSocketServer.Handler
  ) {
    self.number = number
    self.user = user
    payer = Payer(user: user, view: view)
    self.listener = listener
    self.handler = handler
  }
}

/// One caller inside a view, and what has arrived of the next call.
final class AppConnection {
  /// What becomes of a connection after its turn.
  enum Next {
    case goesOn
    case isOver
    /// It has to wait for its answer.
    case waits(for: AppTopic, until: @Sendable () -> ControlReply?)
  }

  let endpoint: AppEndpoint
  private let socket: OwnedFD
  private let share: BudgetShare
  private var bytes: [UInt8] = []
  /// How many of the bytes are known to hold no end of a line.
  private var searched = 0
  /// What gives the answer that the caller waits for; while there is none, nothing more is read.
  var answer: (@Sendable () -> ControlReply?)?

  var fd: FD { socket.fd }
  /// Whether there may be a whole request among what has arrived.
  var hasRequest: Bool { searched < bytes.count }

  init(_ socket: consuming OwnedFD, of endpoint: AppEndpoint, _ share: BudgetShare) {
    self.socket = socket
    self.endpoint = endpoint
    self.share = share
  }

  /// Takes in what has arrived, unless a request is left from before, and answers one.
  func takeTurn(requestLimit: Int) -> Next {
    if !hasRequest, !receive() { return .isOver }
    guard let line = takeLine() else { return bytes.count <= requestLimit ? .goesOn : .isOver }
    guard line.count <= requestLimit else { return .isOver }
    let request: ControlRequest
    do {
      request = try ControlLine.decode(ControlRequest.self, line)
    } catch {
      return send(.failure(ControlFailure(unreadable: error))) ? .goesOn : .isOver
    }
    switch endpoint.handler(request) {
    case .reply(let reply): return send(reply) ? .goesOn : .isOver
    case .waits(let topic, let until): return .waits(for: topic, until: until)
    }
  }

  /// Sends an answer whole, or tells that it could not: it fits, unless earlier ones were left lying there.
  func send(_ reply: ControlReply) -> Bool {
    let line = ControlLine.encode(ControlMessage.reply(reply))
    return (try? LocalSocket.send(line[...], to: fd)) == line.count
  }

  /// False when the caller has hung up.
  private func receive() -> Bool {
    do throws(Errno) {
      guard let arrived = try LocalSocket.receive(from: fd, limit: 4096, takesDescriptor: false) else {
        return false
      }
      bytes += arrived.bytes
      return true
    } catch {
      return error == .EAGAIN
    }
  }

  private func takeLine() -> [UInt8]? {
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
