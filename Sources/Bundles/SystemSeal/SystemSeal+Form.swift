// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// The file: a line for each thing, its fields separated by single blanks, with the path last:
//
//     insula-system-seal 1
//     version 26.1
//     team EXAMPLE
//     d 755 0 0 - - - .
//     f 644 0 0 1234 DIGEST - Library/file
//     l 777 0 0 6 TARGET - Library/link
//
// The fields are: type, mode in octal, uid, gid, size, digest or target, digest of the attributes. In paths
// and targets, whatever is not a visible character of ASCII is spelled by its number (%20), and so is the
// percent sign.

/// Why bytes are no seal of a system.
package struct MalformedSystemSeal: Error, Equatable, Sendable {
  package let reason: String
}

extension SystemSeal {
  private static let magic = "insula-system-seal 1"

  /// The bytes of the file.
  package var bytes: [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity(entries.count * 128)
    text += Array("\(Self.magic)\nversion ".utf8)
    Self.escape(Array(version.utf8), into: &text)
    text += Array("\nteam ".utf8)
    Self.escape(Array(team.utf8), into: &text)
    text.append(UInt8(ascii: "\n"))
    for entry in entries { Self.write(entry, to: &text) }
    return text
  }

  /// Reads such a file.
  ///
  /// Strict: bytes that this program would not write are no seal.
  package init(reading bytes: [UInt8]) throws(MalformedSystemSeal) {
    guard bytes.count <= Self.maximumSize else { throw MalformedSystemSeal(reason: "it is too long") }
    var lines = Lines(bytes)
    guard let magic = lines.next(), magic.elementsEqual(Self.magic.utf8) else {
      throw MalformedSystemSeal(reason: "it does not begin with '\(Self.magic)'")
    }
    version = try Self.header("version", lines.next())
    team = try Self.header("team", lines.next())
    entries = []
    while let line = lines.next() {
      guard let entry = Self.entry(line) else {
        throw MalformedSystemSeal(reason: "line \(entries.count + 4) is invalid")
      }
      if let last = entries.last, !last.path.lexicographicallyPrecedes(entry.path) {
        throw MalformedSystemSeal(reason: "line \(entries.count + 4) is not in its place")
      }
      entries.append(entry)
    }
    guard let top = entries.first, top.path.isEmpty, top.kind == .directory else {
      throw MalformedSystemSeal(reason: "it does not describe the top directory")
    }
    try checkParents()
    guard self.bytes == bytes else { throw MalformedSystemSeal(reason: "it is not in canonical form") }
  }

  /// Everything lies in a directory that is sealed too.
  private func checkParents() throws(MalformedSystemSeal) {
    for entry in entries where !entry.path.isEmpty {
      let names = entry.path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
      let isPath = names.allSatisfy { name in
        !name.isEmpty && name.count <= 255 && !name.contains(0) && !name.elementsEqual(".".utf8)
          && !name.elementsEqual("..".utf8)
      }
      let parent = entry.path.prefix(max(entry.path.count - (names.last?.count ?? 0) - 1, 0))
      guard isPath, self.entry(at: Array(parent))?.kind == .directory else {
        throw MalformedSystemSeal(reason: "'\(entry.text)' is in no directory")
      }
      guard !names[0].elementsEqual(Self.directoryName.utf8) else {
        throw MalformedSystemSeal(reason: "it includes its own directory")
      }
    }
  }

  private static func header(
    _ name: String, _ line: ArraySlice<UInt8>?
  ) throws(MalformedSystemSeal) -> String {
    guard let line, line.starts(with: "\(name) ".utf8),
      let value = unescape(line.dropFirst(name.utf8.count + 1)),
      let text = String(validating: value, as: UTF8.self)
    else { throw MalformedSystemSeal(reason: "it has no \(name)") }
    return text
  }

  private static func write(_ entry: Entry, to text: inout [UInt8]) {
    let size: String
    let kind: String
    switch entry.kind {
    case .directory: (kind, size) = ("d", "-")
    case .file(let bytes, _): (kind, size) = ("f", "\(bytes)")
    case .link(let target): (kind, size) = ("l", "\(target.count)")
    }
    text += Array("\(kind) \(String(entry.mode, radix: 8)) \(entry.uid) \(entry.gid) \(size) ".utf8)
    switch entry.kind {
    case .directory: text.append(UInt8(ascii: "-"))
    case .file(_, let digest): hex(digest, into: &text)
    case .link(let target): escape(target, into: &text)
    }
    text.append(UInt8(ascii: " "))
    if let attributes = entry.attributes {
      hex(attributes, into: &text)
    } else {
      text.append(UInt8(ascii: "-"))
    }
    text.append(UInt8(ascii: " "))
    if entry.path.isEmpty { text.append(UInt8(ascii: ".")) } else { escape(entry.path, into: &text) }
    text.append(UInt8(ascii: "\n"))
  }

  /// What comes out is held against what would be written, so only what could be read in two ways is looked
  /// at here.
  private static func entry(_ line: ArraySlice<UInt8>) -> Entry? {
    let fields = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
    guard fields.count == 8, let mode = number(fields[1], radix: 8), mode <= 0o7777,
      let uid = number(fields[2]).flatMap({ UInt32(exactly: $0) }),
      let gid = number(fields[3]).flatMap({ UInt32(exactly: $0) }), uid != .max, gid != .max,
      let path = fields[7].elementsEqual(".".utf8) ? [] : unescape(fields[7])
    else { return nil }
    var attributes: [UInt8]?
    if !fields[6].elementsEqual("-".utf8) {
      guard let digest = bytes(hex: fields[6]) else { return nil }
      attributes = digest
    }
    let kind: Entry.Kind
    switch String(decoding: fields[0], as: UTF8.self) {
    case "d": kind = .directory
    case "f":
      guard let size = number(fields[4]), let digest = bytes(hex: fields[5]) else { return nil }
      kind = .file(size: size, digest: digest)
    case "l":
      guard let target = unescape(fields[5]), !target.isEmpty, target.count < 4096 else { return nil }
      kind = .link(target: target)
    default: return nil
    }
    return Entry(path: path, kind: kind, mode: UInt32(mode), uid: uid, gid: gid, attributes: attributes)
  }

  // MARK: Spelling

  private static func escape(_ bytes: [UInt8], into text: inout [UInt8]) {
    for byte in bytes {
      if (0x21...0x7e).contains(byte), byte != UInt8(ascii: "%") {
        text.append(byte)
      } else {
        text.append(UInt8(ascii: "%"))
        hex([byte], into: &text)
      }
    }
  }

  private static func unescape(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    var rest = text
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else {
        return nil
      }
      bytes.append(high << 4 | low)
    }
    return bytes
  }

  private static func hex(_ bytes: [UInt8], into text: inout [UInt8]) {
    let digits = Array("0123456789abcdef".utf8)
    for byte in bytes {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
  }

  /// A digest of 32 bytes.
  private static func bytes(hex text: ArraySlice<UInt8>) -> [UInt8]? {
    guard text.count == 64 else { return nil }
    var bytes: [UInt8] = []
    var rest = text
    while let high = rest.popFirst(), let low = rest.popFirst() {
      guard let high = digit(high), let low = digit(low) else { return nil }
      bytes.append(high << 4 | low)
    }
    return bytes
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    default: nil
    }
  }

  private static func number(_ text: ArraySlice<UInt8>, radix: Int = 10) -> UInt64? {
    guard !text.isEmpty, text.count <= 19 else { return nil }
    return UInt64(String(decoding: text, as: UTF8.self), radix: radix)
  }

  /// The lines of a text that ends in a newline.
  private struct Lines {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    mutating func next() -> ArraySlice<UInt8>? {
      guard let end = rest.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
      defer { rest = rest[(end + 1)...] }
      return rest[..<end]
    }
  }
}
