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
    var descriptor: SharedFD?
  }

  private let socket: OwnedFD
  let peer: ControlPeer
  private let passed: PassedDescriptors
  /// Only the server's thread takes in requests; a job only looks whether the caller is still there.
  private let incoming = Mutex(Incoming())

  var fd: FD { socket.fd }

  init(_ socket: consuming OwnedFD, _ passed: PassedDescriptors) throws(Errno) {
    peer = try ControlPeer(of: socket.fd)
    self.passed = passed
    self.socket = socket
  }

  /// Takes in what has arrived and answers the lines that are whole.
  func receive(answeringWith handler: ControlServer.Handler) -> Next {
    incoming.withLock { incoming in
      do throws(Errno) {
        let arrived = try LocalSocket.receive(
          from: fd, limit: 4096, takesDescriptor: passed.takes(from: peer.uid))
        guard let arrived else { return .isOver }
        incoming.bytes += arrived.bytes
        if let descriptor = arrived.descriptor { incoming.descriptor = passed.keep(descriptor, of: peer.uid) }
      } catch {
        return error == .EAGAIN ? .goesOn : .isOver
      }
      while let end = incoming.bytes.firstIndex(of: UInt8(ascii: "\n")) {
        let line = incoming.bytes[..<end]
        incoming.bytes = Array(incoming.bytes[(end + 1)...])
        switch answer(line, incoming.descriptor, handler) {
        case .reply(let reply): if !send(reply) { return .isOver }
        // Nothing is read while it runs, so what else has arrived would lie there unseen.
        case .job(let queue, let job): return .waits(queue, job)
        }
        incoming.descriptor = nil
      }
      return incoming.bytes.count <= ControlLine.requestLimit ? .goesOn : .isOver
    }
  }

  private func answer(
    _ line: ArraySlice<UInt8>, _ descriptor: SharedFD?, _ handler: ControlServer.Handler
  ) -> ControlAnswer {
    guard let request: ControlRequest = ControlLine.decode(line) else {
      return .reply(
        ControlReply(ok: false, message: "this is not a request that this insula understands"))
    }
    var call = ControlCall(request: request, peer: peer, descriptor: descriptor)
    if request.verb == .run, let process = try? ProcessID.openPeer(of: fd) {
      call.process = SharedFD(process)
    }
    return handler(call)
  }

  /// Sends a reply whole, or tells that it could not.
  ///
  /// It fits into the socket's buffer, unless the client has left earlier ones lying there.
  func send(_ reply: ControlReply, with descriptor: FD? = nil) -> Bool {
    let bytes = ControlLine.encode(reply)
    return (try? LocalSocket.send(bytes[...], with: descriptor, to: fd)) == bytes.count
  }

  /// Whether the caller has hung up.
  ///
  /// Who waits for an answer has nothing to say: one that talks all the same is not listened to any more.
  var isOver: Bool { (try? fd.waitUntilReadable(milliseconds: 0)) == true }
}
