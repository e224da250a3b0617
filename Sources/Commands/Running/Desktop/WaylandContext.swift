// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// A socket of the app's own at a Wayland compositor, which knows by it that a sandboxed app connects, and
/// keeps from it what such apps are not to have: screen contents, other windows' input, the clipboard's
/// history.
///
/// That is the protocol `security-context-v1`. Compositors without it treat all clients alike.
struct WaylandContext {
  /// When this is closed, the compositor listens no more.
  private let life: SharedFD

  private static let manager = "wp_security_context_manager_v1"
  private static let patience: Int32 = 2000
  /// A compositor has some fifty globals.
  private static let mostEvents = 10_000

  // Objects are numbered by the client; the display is always the first.
  private static let (display, registry, firstSync): (UInt32, UInt32, UInt32) = (1, 2, 3)
  private static let (managerObject, context, lastSync): (UInt32, UInt32, UInt32) = (4, 5, 6)

  /// Has the compositor listen at `name` in a directory for an app; nil if it has no such protocol.
  ///
  /// `socket` is the compositor's own, in the same directory.
  init?(
    at socket: String, listeningAt name: String, in directory: FD, for identifier: String
  ) throws(Errno) {
    let connection = try LocalSocket.connect(in: directory, name: socket)
    try connection.fd.setNonBlocking()
    var conversation = Conversation(socket: connection.fd)
    try conversation.send(WaylandMessage(to: Self.display, 1).word(Self.registry))
    try conversation.send(WaylandMessage(to: Self.display, 0).word(Self.firstSync))
    guard let number = try Self.managersNumber(&conversation) else { return nil }
    let listener = try LocalSocket.listen(in: directory, name: name, mode: 0o600)
    let ends = try pipe()
    // The name of a new object's interface goes along where the request does not determine it.
    try conversation.send(
      WaylandMessage(to: Self.registry, 0).word(number).text(Self.manager).word(1).word(Self.managerObject))
    try conversation.send(
      WaylandMessage(to: Self.managerObject, 1).word(Self.context), with: listener.fd, ends.read.fd)
    for (request, text) in [(1, "org.insula"), (2, identifier), (3, "\(identifier)-\(getpid())")] {
      try conversation.send(WaylandMessage(to: Self.context, UInt16(request)).text(text))
    }
    try conversation.send(WaylandMessage(to: Self.context, 4))
    try conversation.send(WaylandMessage(to: Self.display, 0).word(Self.lastSync))
    for _ in 0..<Self.mostEvents where try conversation.next().object == Self.lastSync {
      life = SharedFD(ends.takeWrite())
      return
    }
    throw Errno(EPROTO)
  }

  /// The number by which the compositor offers the protocol.
  private static func managersNumber(_ conversation: inout Conversation) throws(Errno) -> UInt32? {
    var number: UInt32?
    for _ in 0..<mostEvents {
      var event = try conversation.next()
      if event.object == firstSync { return number }
      guard event.object == registry, event.opcode == 0, let name = event.word() else { continue }
      if event.text() == manager { number = name }
    }
    throw Errno(EPROTO)
  }

  /// Requests go out, and events come in.
  private struct Conversation {
    let socket: FD
    private var buffer: [UInt8] = []

    init(socket: FD) { self.socket = socket }

    /// Descriptors are taken in the order of their arrival, whichever bytes they come with.
    func send(_ message: WaylandMessage, with descriptors: FD...) throws(Errno) {
      var rest = message.bytes[...]
      for descriptor in descriptors {
        guard try LocalSocket.send(rest.prefix(4), with: descriptor, to: socket) == 4 else {
          throw Errno(EPROTO)
        }
        rest = rest.dropFirst(4)
      }
      while !rest.isEmpty {
        do throws(Errno) {
          rest = rest.dropFirst(try LocalSocket.send(rest, to: socket))
        } catch .EAGAIN {
          guard try socket.waitUntilWritable(milliseconds: patience) else { throw Errno(ETIMEDOUT) }
        }
      }
    }

    mutating func next() throws(Errno) -> WaylandEvent {
      while true {
        if let event = WaylandEvent(takenFrom: &buffer) {
          // The compositor ends the connection after an error.
          if event.object == display, event.opcode == 0 { throw Errno(EPROTO) }
          return event
        }
        guard try socket.waitUntilReadable(milliseconds: patience) else { throw Errno(ETIMEDOUT) }
        guard let received = try LocalSocket.receive(from: socket, limit: 4096, takesDescriptor: false) else {
          throw .ECONNRESET
        }
        buffer += received.bytes
      }
    }
  }
}
