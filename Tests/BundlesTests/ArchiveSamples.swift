// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Archives for tests, made entry by entry.
struct ArchiveSample {
  var bytes: [UInt8] = []

  static let kinds = TarHeader.Kind.self

  /// One with the bundle's own directory in it.
  static func begun() -> ArchiveSample {
    var sample = ArchiveSample()
    sample.add("A.app/", kinds.directory)
    return sample
  }

  mutating func add(
    _ path: String, _ kind: UInt8 = TarHeader.Kind.file, _ text: String = "", mode: UInt32 = 0o644,
    target: String = ""
  ) {
    let contents = Array(text.utf8)
    let header = TarHeader(
      path: Array(path.utf8), kind: kind, mode: mode, size: Int64(contents.count), time: 1_700_000_000,
      target: Array(target.utf8))
    add(header, contents)
  }

  mutating func add(_ header: TarHeader, _ contents: [UInt8] = []) {
    bytes += header.blocks + contents + TarHeader.padding(after: Int64(contents.count))
  }

  /// With the two empty blocks that end an archive.
  var ended: [UInt8] { bytes + [UInt8](repeating: 0, count: 1024) }

  /// Puts the right sum into a header that was changed.
  static func mend(_ bytes: inout [UInt8], at start: Int) {
    guard start + 512 <= bytes.count else { return }
    let sum = (0..<512).reduce(0) { $0 + (148..<156 ~= $1 ? 0x20 : Int(bytes[start + $1])) }
    let digits = String(sum, radix: 8)
    let text = String(repeating: "0", count: max(0, 6 - digits.count)) + digits + "\u{0} "
    for (index, byte) in text.utf8.prefix(8).enumerated() { bytes[start + 148 + index] = byte }
  }
}

/// Unpacks bytes into a directory of its own, as if they came through a pipe in small pieces.
func unpack(
  _ bytes: [UInt8], into directory: FD, piece: Int = 700,
  limits: ArchiveUnpacker.Limits = ArchiveUnpacker.Limits()
) throws(ArchiveFailure) -> String {
  var rest = bytes[...]
  return try ArchiveUnpacker.unpack(into: directory, limits: limits) { limit in
    let part = rest.prefix(min(limit, piece))
    rest = rest.dropFirst(part.count)
    return part.isEmpty ? nil : Array(part)
  }
}

extension String {
  /// As a record of pax.
  var record: String {
    let rest = " \(self)\n"
    var length = rest.utf8.count
    while "\(length)".utf8.count + rest.utf8.count != length {
      length = "\(length)".utf8.count + rest.utf8.count
    }
    return "\(length)\(rest)"
  }
}
