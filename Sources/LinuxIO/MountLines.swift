// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

/// The mount table of a namespace, of which no more is understood than where its mounts lie.
///
/// Any user can have a hundred thousand mounts in a namespace of their own. So nothing is made of a line but
/// numbers, and each question costs no more than one look at each line.
package struct MountLines {
  private struct Line {
    let id: Int64
    let parent: Int64
    let device: DeviceNumber
    /// Among the bytes.
    let root: Range<Int>
    let mountPoint: Range<Int>
  }

  private let bytes: [UInt8]
  private var lines: [Line] = []

  /// Understands the text of `/proc/PID/mountinfo`; lines that make no sense are left out.
  package init(_ bytes: [UInt8]) {
    self.bytes = bytes
    bytes.withUnsafeBufferPointer { bytes in
      var start = 0
      while start < bytes.count {
        var end = start
        while end < bytes.count, bytes[end] != UInt8(ascii: "\n") { end += 1 }
        if let line = Self.line(start..<end, bytes) { lines.append(line) }
        start = end + 1
      }
    }
  }

  /// What a process has mounted; EFBIG if that is longer than `limit`.
  static func read(ofProcess process: String, limit: Int) throws(Errno) -> MountLines {
    let file = try FD.cwd.openFollowing("/proc/\(process)/mountinfo", O_RDONLY)
    let bytes = try file.fd.readToEnd(limit: limit)
    guard bytes.count < limit else { throw .EFBIG }
    return MountLines(bytes)
  }

  /// Where a filesystem is mounted first.
  package func first(_ device: DeviceNumber) -> String? {
    lines.first { $0.device == device }.map { text($0.mountPoint) }
  }

  /// What is mounted on a directory or in it, as far as there is room for it in the answer.
  ///
  /// By the mounts that each one lies on: one of the directory's filesystem says where in the filesystem that
  /// is, and whatever lies on a mount in the directory is in it too.
  package func mounts(in place: MountTable.Place, limit: Int = .max) -> [String] {
    let path = Array(place.path.utf8)
    var indexes: [Int64: Int] = [:]
    indexes.reserveCapacity(lines.count)
    for (index, line) in lines.enumerated() { indexes[line.id] = index }
    var (found, onTop): ([Int], [Int: [Int]]) = ([], [:])
    for (index, line) in lines.enumerated() {
      guard let below = indexes[line.parent], below != index else { continue }
      onTop[below, default: []].append(index)
      if lines[below].device == place.device, isInside(path, line, on: lines[below]) { found.append(index) }
    }
    // A table that was changed while it was read could have a circle in it.
    var known = Set(found)
    var next = 0
    while next < found.count {
      found += (onTop[found[next]] ?? []).filter { known.insert($0).inserted }
      next += 1
    }
    return Set(found.prefix(limit).map { text(lines[$0].mountPoint) }).inOrder(by: <)
  }

  /// Whether a mount lies on a directory or in it, which is in the filesystem of the mount below.
  private func isInside(_ path: [UInt8], _ line: Line, on below: Line) -> Bool {
    let (own, above) = (unescaped(line.mountPoint), unescaped(below.mountPoint))
    let slash = UInt8(ascii: "/")
    let prefix = above == [slash] ? [] : above
    guard own.starts(with: prefix) else { return false }
    let rest = own.dropFirst(prefix.count)
    guard rest.isEmpty || rest.first == slash else { return false }
    let root = unescaped(below.root)
    let location = (root == [slash] ? [] : root) + rest
    guard path != [slash] else { return true }
    return location.starts(with: path) && (location.count == path.count || location[path.count] == slash)
  }

  // MARK: Fields

  private static func line(_ range: Range<Int>, _ bytes: UnsafeBufferPointer<UInt8>) -> Line? {
    var fields: [Range<Int>] = []
    var start = range.lowerBound
    for index in range where bytes[index] == UInt8(ascii: " ") {
      fields.append(start..<index)
      start = index + 1
      if fields.count == 5 { break }
    }
    guard fields.count == 5, let id = number(fields[0], bytes), let parent = number(fields[1], bytes),
      let colon = fields[2].first(where: { bytes[$0] == UInt8(ascii: ":") }),
      let major = number(fields[2].lowerBound..<colon, bytes),
      let minor = number(colon + 1..<fields[2].upperBound, bytes),
      let device = UInt32(exactly: major).flatMap({ major in
        UInt32(exactly: minor).map { DeviceNumber(major: major, minor: $0) }
      })
    else { return nil }
    return Line(id: id, parent: parent, device: device, root: fields[3], mountPoint: fields[4])
  }

  private static func number(_ range: Range<Int>, _ bytes: UnsafeBufferPointer<UInt8>) -> Int64? {
    // No number of the kernel's has more digits.
    guard !range.isEmpty, range.count <= 18 else { return nil }
    var sum: Int64 = 0
    for index in range {
      guard bytes[index] >= UInt8(ascii: "0"), bytes[index] <= UInt8(ascii: "9") else { return nil }
      sum = sum * 10 + Int64(bytes[index] - UInt8(ascii: "0"))
    }
    return sum
  }

  private func text(_ field: Range<Int>) -> String { String(decoding: unescaped(field), as: UTF8.self) }

  /// The kernel writes blanks, tabs, newlines and backslashes as a backslash and three octal digits.
  private func unescaped(_ field: Range<Int>) -> [UInt8] {
    let escape = UInt8(ascii: "\\")
    guard bytes[field].contains(escape) else { return Array(bytes[field]) }
    var (found, index): ([UInt8], Int) = ([], field.lowerBound)
    while index < field.upperBound {
      let digits = bytes[field].dropFirst(index - field.lowerBound + 1).prefix(3)
      if bytes[index] == escape, digits.count == 3, let byte = Self.octal(digits) {
        found.append(byte)
        index += 4
      } else {
        found.append(bytes[index])
        index += 1
      }
    }
    return found
  }

  private static func octal(_ digits: ArraySlice<UInt8>) -> UInt8? {
    var sum = 0
    for digit in digits {
      guard digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "7") else { return nil }
      sum = sum * 8 + Int(digit - UInt8(ascii: "0"))
    }
    return UInt8(exactly: sum)
  }
}
