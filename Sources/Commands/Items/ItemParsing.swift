// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import JSON
internal import LinuxIO
internal import Policy

// What the process that reads and the one that parses say to each other: lines of JSON, and with each request
// the file.

/// Which part of what is in a file is wanted.
struct ParseRequest: Codable, Equatable {
  let kind: PrivateItems
  /// Another one for each listing and file: what was parsed of it before may still be there.
  let file: String
  /// The extension of its name.
  let type: String
  /// How many of them were told before.
  let first: Int
  /// How many are wanted, and how many bytes they may have.
  let most: Int
  let room: Int
}

/// What was found.
struct ParseReply: Codable, Equatable {
  var items: [JSONValue] = []
  /// How many of the file were told by now, if there are more.
  var next: Int?
  /// Why nothing can be read in any file.
  var failure: String?
}

/// A socket on which lines come and go, with files beside them.
final class ItemLines {
  private let socket: FD
  private var received: [UInt8] = []
  private var descriptor: OwnedFD?

  static let longest = 1 << 17

  init(_ socket: FD) { self.socket = socket }

  /// Sends a line whole.
  func send(_ message: some Encodable, with file: FD? = nil) throws(Errno) {
    guard let text = try? JSONText.encode(message), text.count < Self.longest else { throw .E2BIG }
    let line = text + [UInt8(ascii: "\n")]
    guard try LocalSocket.send(line[...], with: file, to: socket) == line.count else { throw .EAGAIN }
  }

  /// The next line; nil at the end.
  ///
  /// EAGAIN when the time is over.
  func receive<Message: Decodable>(
    _ type: Message.Type, milliseconds: Int32
  ) throws(Errno) -> Message? {
    let end = monotonicNanoseconds() &+ UInt64(max(0, milliseconds)) * 1_000_000
    while true {
      if let line = takeLine() {
        guard let message = try? JSONText.decode(type, from: line) else { throw .EIO }
        return message
      }
      guard received.count < Self.longest else { throw .E2BIG }
      let left = Int64(clamping: end) - Int64(clamping: monotonicNanoseconds())
      let wait = milliseconds < 0 ? -1 : Int32(clamping: max(0, left / 1_000_000))
      guard try socket.waitUntilReadable(milliseconds: wait) else { throw .EAGAIN }
      guard let arrived = try LocalSocket.receive(from: socket, limit: 65536) else { return nil }
      received += arrived.bytes
      if let new = arrived.descriptor { descriptor = OwnedFD(owning: new.raw) }
    }
  }

  /// The file that came with the last line.
  func takeFile() -> OwnedFD? { descriptor.take() }

  private func takeLine() -> [UInt8]? {
    guard let end = received.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
    let line = Array(received[..<end])
    received.removeFirst(end + 1)
    return line
  }
}
