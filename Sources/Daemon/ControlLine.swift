// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import JSON

/// Messages as lines: JSON without a newline in it, then a newline.
enum ControlLine {
  /// No request is longer; a client that sends more is talking about something else.
  static let requestLimit = 16384
  /// Nor one in which there is what was read for an app.
  static let readingLimit = 1 << 16
  /// No reply is longer.
  static let replyLimit = 1 << 20
  /// What comes in parts comes in parts of about so much.
  static let pageBytes = 1 << 17

  static func encode(_ message: some Encodable) -> [UInt8] {
    // Our messages are made of numbers, strings and such, which always encode.
    ((try? JSONText.encode(message)) ?? []) + [UInt8(ascii: "\n")]
  }

  static func decode<Message: Decodable>(_ type: Message.Type, _ line: some Sequence<UInt8>) throws -> Message
  {
    try JSONText.decode(type, from: Array(line))
  }
}
