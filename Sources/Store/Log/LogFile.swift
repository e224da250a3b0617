// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import JSON
internal import LinuxIO

/// A file of entries, a line for each: its number, a space, and JSON.
///
/// Entries are only ever added at the end, by one write. A process that is killed meanwhile leaves a part of
/// a line, which readers skip, and which the next writer ends.
struct LogFile: ~Copyable {
  private let file: OwnedFD
  private let size: Int64

  /// No line is longer: a path of control characters has six bytes for each.
  static let longestLine = 32 << 10
  private static let chunk = 64 << 10

  /// Opens a file to read it; nil if it is not there, or is none.
  init?(_ name: String, in directory: FD) {
    guard let file = try? directory.open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK),
      let status = try? file.fd.status(), status.isRegular
    else { return nil }
    self.file = file
    size = Int64(status.st_size)
  }

  /// Adds lines, and begins a new file where this one would become longer than `limit`; the one before stays
  /// under the name `old`.
  static func append(
    _ lines: [UInt8], to name: String, old: String, limit: Int, in directory: FD
  ) throws(Errno) {
    if let size = try? directory.status(of: name).st_size, Int(size) + lines.count > limit, size > 0 {
      try directory.rename(name, to: directory, old, flags: 0)
    }
    let flags = O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK
    let file = try directory.open(name, flags, mode: 0o600)
    let fd = file.fd
    let status = try fd.status()
    guard status.isRegular else { throw .EINVAL }
    let size = Int64(status.st_size)
    let last = size > 0 ? try fd.lastByte(size) : newline
    try fd.writeAll(last == newline ? lines : [newline] + lines)
  }

  /// Keeps those entries of a file that `keeps` wants, in one step; `temporary` is another name beside it.
  static func rewrite(
    _ name: String, by temporary: String, in directory: FD, keeping keeps: (LogEntry) -> Bool
  ) throws(Errno) {
    guard let file = LogFile(name, in: directory) else { return }
    var lines: [UInt8] = []
    var isAny = false
    file.entries(after: 0) { entry, _ in
      if keeps(entry) { lines += line(entry) } else { isAny = true }
      return true
    }
    guard isAny else { return }
    if directory.has(temporary) { try directory.remove(temporary, directory: false) }
    let new = try directory.open(temporary, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
    try new.fd.writeAll(lines)
    try new.fd.synchronize(dataOnly: false)
    try directory.rename(temporary, to: directory, name, flags: 0)
  }

  static let newline = UInt8(ascii: "\n")

  static func line(_ entry: LogEntry) -> [UInt8] {
    let json = (try? JSONText.encode(entry)) ?? []
    let line = Array("\(entry.number) ".utf8) + json + [newline]
    guard line.count > longestLine, entry.path != nil || entry.detail != nil else { return line }
    // A name that is too much trouble.
    var short = entry
    short.setPath(nil)
    short.detail = nil
    return Self.line(short)
  }

  /// The number of the last whole line; 0 if there is none.
  borrowing func lastNumber() -> UInt64 {
    var end = size
    while end > 0 {
      // A line may begin in one piece and end in the next.
      let start = max(0, end - Int64(Self.chunk / 2))
      let bytes = bytes(at: start)
      let first = start == 0 ? 0 : bytes.firstIndex(of: Self.newline) ?? bytes.endIndex
      // What has no end is no whole line.
      let last = bytes.lastIndex(of: Self.newline) ?? bytes.startIndex
      let lines = first < last ? bytes[first..<last].split(separator: Self.newline) : []
      if let found = lines.reversed().lazy.compactMap({ Self.entry($0)?.0 }).first { return found }
      end = start
    }
    return 0
  }

  /// Gives the entries after one of that number, in their order, for as long as `body` wants more.
  ///
  /// Lines that are damaged are no entries.
  borrowing func entries(after number: UInt64, _ body: (_ entry: LogEntry, _ length: Int) -> Bool) {
    var offset = self.offset(ofEntriesAfter: number)
    var rest: [UInt8] = []
    while true {
      let read = bytes(at: offset)
      if read.isEmpty { return }
      offset += Int64(read.count)
      var lines = (rest + read).split(separator: Self.newline, omittingEmptySubsequences: false)
      rest = Array(lines.popLast() ?? [])
      // No line of ours.
      if rest.count > Self.longestLine { rest = [] }
      for line in lines {
        guard let (found, entry) = Self.entry(line), found > number else { continue }
        guard body(entry, line.count) else { return }
      }
    }
  }

  /// Where to begin for entries after one of that number: not far before the first one.
  private borrowing func offset(ofEntriesAfter number: UInt64) -> Int64 {
    guard number > 0 else { return 0 }
    var low: Int64 = 0
    var high = size
    while high - low > Int64(Self.chunk) {
      let middle = low + (high - low) / 2
      let bytes = bytes(at: middle)
      // The first line may have begun before.
      guard let start = bytes.firstIndex(of: Self.newline),
        let found = bytes[start...].split(separator: Self.newline).lazy.compactMap(Self.number).first
      else { return low }
      if found <= number { low = middle } else { high = middle }
    }
    return low
  }

  private borrowing func bytes(at offset: Int64) -> [UInt8] {
    let room = Self.chunk
    return [UInt8](unsafeUninitializedCapacity: room) { buffer, filled in
      filled = (try? file.fd.read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)) ?? 0
    }
  }

  private static func number(_ line: ArraySlice<UInt8>) -> UInt64? {
    let digits = line.prefix { $0 != UInt8(ascii: " ") }
    // No store comes near that.
    guard digits.count < line.count, let number = UInt64(String(decoding: digits, as: UTF8.self)) else {
      return nil
    }
    return number < 1 << 62 ? number : nil
  }

  private static func entry(_ line: ArraySlice<UInt8>) -> (UInt64, LogEntry)? {
    guard let number = number(line), let space = line.firstIndex(of: UInt8(ascii: " ")),
      var entry = try? JSONText.decode(LogEntry.self, from: Array(line[(space + 1)...]))
    else { return nil }
    entry.number = number
    return (number, entry)
  }
}

extension FD {
  fileprivate func lastByte(_ size: Int64) throws(Errno) -> UInt8 {
    var byte: UInt8 = 0
    _ = try withUnsafeMutableBytes(of: &byte) { (bytes) throws(Errno) in try read(into: bytes, at: size - 1) }
    return byte
  }
}
