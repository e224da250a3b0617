// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// The end of what a program has said.
struct EngineOutput {
  private var bytes: [UInt8]
  /// Nobody can say anything any more.
  private(set) var isOver = false
  private static let most = 2000

  init(_ bytes: [UInt8] = []) { self.bytes = bytes }

  mutating func read(_ pipe: SharedFD) {
    var chunk = [UInt8](repeating: 0, count: 4096)
    while !isOver {
      let count = Glibc.read(pipe.number, &chunk, chunk.count)
      if count == 0 { isOver = true }
      guard count > 0 else { return }
      bytes = (bytes + chunk[..<count]).suffix(Self.most)
    }
  }

  /// In one line, without what could not be shown.
  var text: String {
    let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
    return lines.lazy.compactMap(Self.loggedError).first ?? lines.suffix(4).joined(separator: "; ")
  }

  /// The words of an error in GlusterFS's way to log: `[TIME] E [MSGID: NUMBER] [PLACE] 0-PART: WORDS`.
  ///
  /// Errors that follow the first one are its consequences.
  private static func loggedError(_ line: Substring) -> String? {
    guard line.first == "[" else { return nil }
    var rest = line
    var isError = false
    while let next = rest.first, " [E".contains(next) {
      if next == "[" { rest = rest.drop { $0 != "]" } }
      if next == "E" { isError = true }
      rest = rest.dropFirst()
    }
    let words = rest.drop { $0 != " " }.dropFirst()
    return isError && !words.isEmpty ? String(words) : nil
  }

  var asReason: String { text.isEmpty ? "" : "; it says: \(text)" }
}
