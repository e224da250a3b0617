// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO

/// A conversation with a running daemon.
package final class ControlClient: Sendable {
  private let socket: OwnedFD

  /// Connects to the daemon that listens under `name`; ECONNREFUSED or ENOENT if none does.
  package init(in directory: FD, name: String) throws(Errno) {
    socket = try LocalSocket.connect(in: directory, name: name)
  }

  /// Asks, and waits for the answer: EAGAIN when none came in time, ECONNABORTED when the daemon went away.
  package func ask(_ request: ControlRequest, milliseconds: Int32) throws(Errno) -> ControlReply {
    let line = ControlLine.encode(request)
    guard try LocalSocket.send(line[...], to: socket.fd) == line.count else { throw .EAGAIN }
    var received: [UInt8] = []
    while true {
      if let end = received.firstIndex(of: UInt8(ascii: "\n")) {
        guard let reply: ControlReply = ControlLine.decode(received[..<end]) else { throw .EIO }
        return reply
      }
      guard received.count < ControlLine.replyLimit else { throw .E2BIG }
      guard try socket.fd.waitUntilReadable(milliseconds: milliseconds) else { throw .EAGAIN }
      guard let bytes = try socket.fd.readAvailable(limit: 65536) else { throw .ECONNABORTED }
      received += bytes
    }
  }
}
