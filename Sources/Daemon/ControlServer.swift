// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
internal import Synchronization

/// Who asks, as the kernel noted when they connected.
package struct ControlPeer: Equatable, Sendable {
  package let pid: Int32
  package let uid: UInt32
}

/// Answers commands on a local socket, on a thread of its own.
///
/// Nothing that a client does, or fails to do, keeps another waiting: what it sends is collected until a line is whole, what it
/// does not fetch is not sent again, and the one that has been silent for longest goes when too many are connected.
package final class ControlServer: Sendable {
  /// Answers one request; runs on the server's thread.
  package typealias Handler = @Sendable (ControlRequest, ControlPeer) -> ControlReply

  private static let mostClients = 32

  private let listener: OwnedFD
  private let wakeup: Wakeup
  private let handler: Handler
  private let thread = Mutex<JoinableThread?>(nil)

  /// Listens in `directory`; a socket of that name that nobody listens on any more is cleared away.
  ///
  /// Only one who holds the store's lock may call this: that is what makes an old socket a stale one.
  package init(
    in directory: FD, name: String, mode: UInt32, handler: @escaping Handler
  ) throws(Errno) {
    do throws(Errno) {
      try name.withName { (name) throws(Errno) in try directory.remove(name, directory: false) }
    } catch {
      guard error == .ENOENT else { throw error }
    }
    listener = try LocalSocket.listen(in: directory, name: name, mode: mode)
    wakeup = try Wakeup()
    self.handler = handler
  }

  /// Starts to answer.
  package func start() throws(Errno) {
    let started = try JoinableThread(name: "control") { [self] in serve() }
    thread.withLock { $0 = started }
  }

  /// Ends after the answer that is being given, if one is.
  package func stop() {
    wakeup.ring()
    let thread = thread.withLock { $0.take() }
    if let thread { thread.join() }
  }

  private func serve() {
    // Oldest activity first.
    var clients: [ControlConnection] = []
    while true {
      let watched = [wakeup.fd, listener.fd] + clients.map(\.fd)
      guard let ready = try? waitForAny(of: watched, milliseconds: -1), !ready[0] else { return }
      var silent: [ControlConnection] = []
      var active: [ControlConnection] = []
      for (client, isReady) in zip(clients, ready.dropFirst(2)) {
        if !isReady {
          silent.append(client)
        } else if client.receive(answeringWith: handler) {
          active.append(client)
        }
      }
      clients = silent + active
      if ready[1] { welcome(&clients) }
    }
  }

  private func welcome(_ clients: inout [ControlConnection]) {
    do throws(Errno) {
      clients.append(try ControlConnection(try LocalSocket.accept(listener.fd)))
      if clients.count > Self.mostClients { clients.removeFirst() }
    } catch {
      // Without a free descriptor the caller stays in the queue; asking again at once would only spin.
      guard error == .EMFILE || error == .ENFILE || error == .ENOMEM else { return }
      if clients.isEmpty {
        _ = try? wakeup.fd.waitUntilReadable(milliseconds: 100)
      } else {
        clients.removeFirst()
      }
    }
  }
}

/// One caller, and what has arrived of its next request.
private final class ControlConnection {
  private let socket: OwnedFD
  private let peer: ControlPeer
  private var received: [UInt8] = []

  var fd: FD { socket.fd }

  init(_ socket: consuming OwnedFD) throws(Errno) {
    let peer = try LocalSocket.peer(of: socket.fd)
    self.peer = ControlPeer(pid: peer.pid, uid: peer.uid)
    self.socket = socket
  }

  /// Takes in what has arrived and answers the lines that are whole; false when the connection is over.
  func receive(answeringWith handler: ControlServer.Handler) -> Bool {
    do throws(Errno) {
      guard let bytes = try fd.readAvailable(limit: 4096) else { return false }
      received += bytes
    } catch {
      return error == .EAGAIN
    }
    while let end = received.firstIndex(of: UInt8(ascii: "\n")) {
      let line = received[..<end]
      received = Array(received[(end + 1)...])
      guard answer(line, handler) else { return false }
    }
    return received.count <= ControlLine.requestLimit
  }

  private func answer(_ line: ArraySlice<UInt8>, _ handler: ControlServer.Handler) -> Bool {
    let request: ControlRequest? = ControlLine.decode(line)
    let reply =
      request.map { handler($0, peer) }
      ?? ControlReply(ok: false, message: "this is not a request that this insula understands")
    let bytes = ControlLine.encode(reply)
    // A reply fits into the socket's buffer, unless the client has left earlier ones lying there.
    return (try? LocalSocket.send(bytes[...], to: fd)) == bytes.count
  }
}
