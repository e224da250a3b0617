// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// A display of an X server on this machine, by what the variable DISPLAY says.
struct XDisplay: Equatable {
  /// In decimal.
  let number: String
  let screen: String?

  /// ":1", ":1.0" or "unix:1"; nil for those of other machines.
  init?(_ text: String) {
    guard let colon = text.utf8.lastIndex(of: UInt8(ascii: ":")) else { return nil }
    let host = text[..<colon]
    guard host.isEmpty || host == "unix" else { return nil }
    let parts = text[text.utf8.index(after: colon)...].parts(between: ".", keepingEmpty: true)
    guard let number = parts.first, (1...2).contains(parts.count), parts.allSatisfy(Self.isNumber) else {
      return nil
    }
    self.number = String(number)
    screen = parts.count == 2 ? String(parts[1]) : nil
  }

  var text: String { ":" + number + (screen.map { "." + $0 } ?? "") }

  var socket: String { "/tmp/.X11-unix/X" + number }

  private static func isNumber(_ text: Substring) -> Bool {
    (1...5).contains(text.utf8.count)
      && text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  }
}

/// A file of cookies that X servers ask for, as xauth(1) keeps it.
enum XAuthority {
  /// No file of one person is larger.
  static let limit = 1 << 20

  private static let localFamily = 256
  /// A cookie of this family is for every address.
  private static let wildFamily = 65535

  /// A file with the cookies of one display, which count wherever its socket is; nil if there are none.
  static func cookies(in file: [UInt8], for display: XDisplay, host: String) -> [UInt8]? {
    var rest = file[...]
    var found: [UInt8] = []
    while let family = number(&rest), let address = counted(&rest), let wanted = counted(&rest),
      let name = counted(&rest), let data = counted(&rest)
    {
      let isHere = family == wildFamily || family == localFamily && address.elementsEqual(host.utf8)
      guard isHere, wanted.isEmpty || wanted.elementsEqual(display.number.utf8) else { continue }
      found += bytes(wildFamily) + bytes(0) + bytes(0)
      for part in [name, data] { found += bytes(part.count) + part }
    }
    return found.isEmpty ? nil : found
  }

  private static func number(_ rest: inout ArraySlice<UInt8>) -> Int? {
    guard let high = rest.popFirst(), let low = rest.popFirst() else { return nil }
    return Int(high) << 8 | Int(low)
  }

  private static func counted(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    guard let count = number(&rest), count <= rest.count else { return nil }
    defer { rest = rest.dropFirst(count) }
    return rest.prefix(count)
  }

  private static func bytes(_ number: Int) -> [UInt8] {
    [UInt8(truncatingIfNeeded: number >> 8), UInt8(truncatingIfNeeded: number)]
  }
}
