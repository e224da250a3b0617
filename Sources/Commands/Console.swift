// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import FoundationEssentials
internal import Glibc
internal import LinuxIO

/// Where a command's words go.
struct Console: Sendable {
  let write: @Sendable (String) -> Void
  let writeError: @Sendable (String) -> Void
  /// For names of files, which may be any bytes; nil if everything has to be text.
  var writeBytes: (@Sendable ([UInt8]) -> Void)?
  /// Whether a person reads what is written, on a screen that some bytes would upset.
  var isTerminal = false
  /// Where to say how far something is; nil if nobody looks.
  var writeProgress: (@Sendable (String) -> Void)?

  /// Standard output and standard error.
  static let standard: Console = {
    var console = Console(
      write: { try? FD(1).writeAll($0.utf8) }, writeError: { try? FD(2).writeAll($0.utf8) })
    console.writeBytes = { try? FD(1).writeAll($0) }
    console.isTerminal = isatty(1) == 1
    if isatty(2) == 1 { console.writeProgress = { try? FD(2).writeAll($0.utf8) } }
    return console
  }()

  /// Prints a line for the person.
  func print(_ line: String = "") { write(line + "\n") }

  /// Prints bytes as they are, where that can be.
  func print(bytes: [UInt8]) {
    if let writeBytes { writeBytes(bytes) } else { write(String(decoding: bytes, as: UTF8.self)) }
  }

  /// Tells something beside the result.
  func note(_ message: String) { writeError("insula: \(message)\n") }

  /// Prints a value for programs: keys sorted, one to a line.
  func print(json value: some Encodable) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(value) else { return }
    print(String(decoding: data, as: UTF8.self))
  }

  /// Prints rows with their columns below each other.
  func print(table rows: [[String]]) {
    let columns = rows.map(\.count).max() ?? 0
    let widths = (0..<columns).map { column in
      rows.map { $0.indices.contains(column) ? $0[column].count : 0 }.max() ?? 0
    }
    for row in rows {
      let cells = row.enumerated().map { index, cell in
        index == row.count - 1 ? cell : cell + String(repeating: " ", count: widths[index] - cell.count)
      }
      print(cells.joined(separator: "  "))
    }
  }
}
