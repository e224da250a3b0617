// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

// The small file operations that most checks start from. They state that they succeed.
extension Trial {
  func open(
    _ path: String, _ flags: Int32, _ mode: mode_t = 0o644, file: StaticString = #fileID, line: UInt = #line
  ) throws -> Int32 {
    try ok(clx_open(path, flags, mode), file: file, line: line)
  }

  func make(
    _ path: String, _ text: String = "", mode: mode_t = 0o644, file: StaticString = #fileID,
    line: UInt = #line
  ) throws {
    let fd = try open(path, O_WRONLY | O_CREAT | O_EXCL, mode, file: file, line: line)
    try put(fd, text, file: file, line: line)
    try ok(close(fd), file: file, line: line)
  }

  func dir(
    _ path: String, mode: mode_t = 0o755, file: StaticString = #fileID, line: UInt = #line
  ) throws {
    try ok(mkdir(path, mode), file: file, line: line)
  }

  /// All of a text, at the descriptor's offset.
  func put(_ fd: Int32, _ text: String, file: StaticString = #fileID, line: UInt = #line) throws {
    let bytes = Array(text.utf8)
    let written = try ok(write(fd, bytes, bytes.count), file: file, line: line)
    try equal(written, bytes.count, "bytes written", file: file, line: line)
  }

  /// Up to `count` bytes at the descriptor's offset.
  func get(_ fd: Int32, _ count: Int, file: StaticString = #fileID, line: UInt = #line) throws -> String {
    String(decoding: try bytes(fd, count, file: file, line: line), as: UTF8.self)
  }

  func bytes(
    _ fd: Int32, _ count: Int, at offset: off_t? = nil, file: StaticString = #fileID, line: UInt = #line
  ) throws -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: count)
    let got =
      if let offset {
        try ok(pread(fd, &buffer, count, offset), file: file, line: line)
      } else {
        try ok(read(fd, &buffer, count), file: file, line: line)
      }
    return Array(buffer.prefix(got))
  }

  /// The whole content of a file.
  func contents(_ path: String, file: StaticString = #fileID, line: UInt = #line) throws -> [UInt8] {
    let fd = try open(path, O_RDONLY, file: file, line: line)
    defer { close(fd) }
    var all: [UInt8] = []
    while true {
      let part = try bytes(fd, 65536, file: file, line: line)
      guard !part.isEmpty else { return all }
      all += part
    }
  }

  func text(_ path: String, file: StaticString = #fileID, line: UInt = #line) throws -> String {
    String(decoding: try contents(path, file: file, line: line), as: UTF8.self)
  }

  /// `lstat(2)`.
  func info(_ path: String, file: StaticString = #fileID, line: UInt = #line) throws -> stat {
    var info = stat()
    try ok(lstat(path, &info), file: file, line: line)
    return info
  }

  func info(_ fd: Int32, file: StaticString = #fileID, line: UInt = #line) throws -> stat {
    var info = stat()
    try ok(fstat(fd, &info), file: file, line: line)
    return info
  }

  func statx(
    _ path: String, _ flags: Int32 = AT_SYMLINK_NOFOLLOW, file: StaticString = #fileID, line: UInt = #line
  ) throws -> clx_statx {
    var info = clx_statx()
    let mask = CLX_STATX_BASIC_STATS | CLX_STATX_BTIME
    try ok(clx_statx(AT_FDCWD, path, flags, mask, &info), file: file, line: line)
    return info
  }

  func missing(_ path: String, file: StaticString = #fileID, line: UInt = #line) throws {
    var info = stat()
    try fails(ENOENT, lstat(path, &info), file: file, line: line)
  }

  /// Names and types as `getdents64(2)` gives them, `.` and `..` included.
  func entries(
    _ path: String, buffer size: Int = 32768, file: StaticString = #fileID, line: UInt = #line
  ) throws -> [Entry] {
    let fd = try open(path, O_RDONLY | O_DIRECTORY, file: file, line: line)
    defer { close(fd) }
    var all: [Entry] = []
    while true {
      let part = try someEntries(fd, buffer: size, file: file, line: line)
      guard !part.isEmpty else { return all }
      all += part
    }
  }

  /// One call's worth of entries.
  func someEntries(
    _ fd: Int32, buffer size: Int, file: StaticString = #fileID, line: UInt = #line
  ) throws -> [Entry] {
    var buffer = [UInt8](repeating: 0, count: size)
    let got = try ok(clx_getdents64(fd, &buffer, size), file: file, line: line)
    var all: [Entry] = []
    var at = 0
    while at + 19 < got {
      // struct linux_dirent64: ino 8, off 8, reclen 2, type 1, then the name with its NUL.
      let length = Int(buffer[at + 16]) | Int(buffer[at + 17]) << 8
      try expect(length > 19 && at + length <= got, "sound record lengths", file: file, line: line)
      let name = buffer[(at + 19)..<(at + length)].prefix { $0 != 0 }
      let inode = (0..<8).reduce(ino_t(0)) { $0 | ino_t(buffer[at + $1]) << (8 * ino_t($1)) }
      all.append(Entry(name: Array(name), type: buffer[at + 18], inode: inode))
      at += length
    }
    return all
  }

  /// Names without `.` and `..`, sorted.
  func names(_ path: String, file: StaticString = #fileID, line: UInt = #line) throws -> [String] {
    try entries(path, file: file, line: line).map(\.text).filter { $0 != "." && $0 != ".." }.sorted()
  }
}

/// One record of a directory.
struct Entry {
  var name: [UInt8]
  var type: UInt8
  var inode: ino_t

  var text: String { String(decoding: name, as: UTF8.self) }
}

extension stat {
  /// The twelve mode bits.
  var bits: mode_t { st_mode & 0o7777 }
  var kind: mode_t { st_mode & S_IFMT }
  var modified: Int { st_mtim.tv_sec * 1_000_000_000 + st_mtim.tv_nsec }
  var accessed: Int { st_atim.tv_sec * 1_000_000_000 + st_atim.tv_nsec }
  var changed: Int { st_ctim.tv_sec * 1_000_000_000 + st_ctim.tv_nsec }
}
