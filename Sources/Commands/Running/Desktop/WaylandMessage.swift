// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A request to an object of a Wayland compositor.
struct WaylandMessage {
  private let object: UInt32
  private let opcode: UInt16
  private var arguments: [UInt8] = []

  init(to object: UInt32, _ opcode: UInt16) {
    self.object = object
    self.opcode = opcode
  }

  func word(_ value: UInt32) -> Self {
    var longer = self
    longer.arguments += Self.bytes(value)
    return longer
  }

  /// With a zero at its end, and filled up to whole words.
  func text(_ value: String) -> Self {
    let count = value.utf8.count + 1
    var longer = word(UInt32(truncatingIfNeeded: count))
    longer.arguments += Array(value.utf8) + [UInt8](repeating: 0, count: (count + 3) / 4 * 4 - count + 1)
    return longer
  }

  var bytes: [UInt8] {
    let size = UInt32(truncatingIfNeeded: arguments.count + 8)
    return Self.bytes(object) + Self.bytes(size << 16 | UInt32(opcode)) + arguments
  }

  /// In the machine's own order.
  private static func bytes(_ value: UInt32) -> [UInt8] { withUnsafeBytes(of: value) { Array($0) } }
}

/// What a Wayland compositor tells of an object.
struct WaylandEvent {
  let object: UInt32
  let opcode: UInt16
  private var arguments: ArraySlice<UInt8>

  /// The first of what has arrived; nil if that is not whole yet.
  init?(takenFrom buffer: inout [UInt8]) {
    var rest = buffer[...]
    guard let object = Self.word(&rest), let head = Self.word(&rest) else { return nil }
    // One that says that it is shorter than its own head is taken to end there.
    let size = max(Int(head >> 16), 8)
    guard buffer.count >= size else { return nil }
    self.object = object
    opcode = UInt16(truncatingIfNeeded: head)
    arguments = buffer[8..<size]
    buffer.removeFirst(size)
  }

  mutating func word() -> UInt32? { Self.word(&arguments) }

  mutating func text() -> String? {
    guard let count = word(), count > 0, count <= arguments.count else { return nil }
    return String(decoding: arguments.prefix(Int(count) - 1), as: UTF8.self)
  }

  private static func word(_ rest: inout ArraySlice<UInt8>) -> UInt32? {
    guard rest.count >= 4 else { return nil }
    defer { rest = rest.dropFirst(4) }
    return rest.prefix(4).withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) }
  }
}
