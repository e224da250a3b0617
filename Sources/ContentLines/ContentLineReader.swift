// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The properties of a file, one after the other; lines that are none are left out.
struct ContentLineReader {
  private let bytes: [UInt8]
  private var position = 0

  /// What is longer, pictures mostly, is cut.
  static let longestLine = 1 << 16

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    if bytes.starts(with: [0xef, 0xbb, 0xbf]) { position = 3 }
  }

  mutating func next() -> ContentLine? {
    while position < bytes.count {
      if let line = ContentLine(unfolded()) { return line }
    }
    return nil
  }

  /// The next line with those that continue it: they begin with a blank, or follow an equals sign at the end
  /// of what is quoted-printable.
  private mutating func unfolded() -> [UInt8] {
    var line: [UInt8] = []
    append(physicalLine(), to: &line)
    let isQuotedPrintable = ContentLine.isQuotedPrintable(line[...])
    while position < bytes.count {
      if isQuotedPrintable, line.last == UInt8(ascii: "="), line.count < Self.longestLine {
        line.removeLast()
        append(physicalLine(), to: &line)
      } else if Self.isBlank(bytes[position]) {
        position += 1
        append(physicalLine(), to: &line)
      } else {
        break
      }
    }
    return line
  }

  private func append(_ part: ArraySlice<UInt8>, to line: inout [UInt8]) {
    line += part.prefix(max(0, Self.longestLine - line.count))
  }

  /// Without its end, which is a line feed, a carriage return, or both.
  private mutating func physicalLine() -> ArraySlice<UInt8> {
    let rest = bytes[position...]
    let end = rest.firstIndex { $0 == 0x0a || $0 == 0x0d } ?? bytes.count
    position = end < bytes.count ? end + 1 : end
    if end < bytes.count, bytes[end] == 0x0d, position < bytes.count, bytes[position] == 0x0a {
      position += 1
    }
    return rest[..<end]
  }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}
