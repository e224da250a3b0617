// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO

/// Writes a bundle as one file: a tar archive of the standard's form (ustar, with pax records for what that
/// has no room for).
///
/// The same bundle gives the same bytes: entries come in the order of their names, all at one time, with the
/// modes that installed files have, and nobody owns them.
package struct ArchivePacker {
  private static let depthLimit = 100
  private static let chunk = 1 << 17

  private let output: FD
  private let time: Int64
  private let progress: ReadProgress?
  private var pending: [UInt8] = []
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.chunk, alignment: 16)

  /// Writes the bundle that a directory, open for reading, is, at the end of an open file.
  package static func pack(
    _ bundle: FD, named name: String, at time: Int64, to output: FD, progress: ReadProgress? = nil
  ) throws(ArchiveFailure) {
    var packer = ArchivePacker(output, time, progress)
    defer { packer.buffer.deallocate() }
    let top = Array(name.utf8)
    try packer.write(
      TarHeader(path: top + [0x2f], kind: TarHeader.Kind.directory, mode: 0o755, size: 0, time: time))
    try packer.write(directory: bundle, top + [0x2f], depth: 1)
    try packer.write([UInt8](repeating: 0, count: 2 * TarHeader.blockSize)[...])
    try packer.flush()
  }

  private init(_ output: FD, _ time: Int64, _ progress: ReadProgress?) {
    self.output = output
    self.time = time
    self.progress = progress
  }

  /// Writes what is in a directory; `prefix` ends in a slash.
  private mutating func write(directory: FD, _ prefix: [UInt8], depth: Int) throws(ArchiveFailure) {
    guard depth < Self.depthLimit else { throw ArchiveFailure(.tooDeep(Self.depthLimit), prefix) }
    let entries = try Self.doing("list", prefix) { () throws(Errno) in
      try directory.entries(atMost: ArchiveUnpacker.Limits().entries)
    }
    for (name, _) in entries.inOrder(by: { $0.name.lexicographicallyPrecedes($1.name) }) {
      let path = prefix + name
      let status = try Self.doing("examine", path) { () throws(Errno) in try directory.status(of: name) }
      if status.isDirectory {
        let child = try Self.doing("open", path) { () throws(Errno) in
          try directory.openDirectoryToExamine(name)
        }
        try write(
          TarHeader(path: path + [0x2f], kind: TarHeader.Kind.directory, mode: 0o755, size: 0, time: time))
        try write(directory: child.fd, path + [0x2f], depth: depth + 1)
      } else if status.isSymlink {
        let target = try Self.doing("read", path) { () throws(Errno) in try directory.linkTarget(of: name) }
        try write(
          TarHeader(
            path: path, kind: TarHeader.Kind.symlink, mode: 0o777, size: 0, time: time, target: target))
      } else {
        let file = try Self.doing("open", path) { () throws(Errno) in try directory.openToExamine(name) }
        try write(file: file.fd, path)
      }
    }
  }

  private mutating func write(file: FD, _ path: [UInt8]) throws(ArchiveFailure) {
    let status = try Self.doing("examine", path) { () throws(Errno) in try file.status() }
    guard status.isRegular else { throw ArchiveFailure(.unknownType(UInt8(ascii: "?")), path) }
    let size = Int64(status.st_size)
    let mode: UInt32 = status.permissions & 0o100 == 0 ? 0o644 : 0o755
    try write(TarHeader(path: path, kind: TarHeader.Kind.file, mode: mode, size: size, time: time))
    var done: Int64 = 0
    while done < size {
      let part = UnsafeMutableRawBufferPointer(
        rebasing: buffer.prefix(Int(min(size - done, Int64(Self.chunk)))))
      let offset = done
      let count = try Self.doing("read", path) { () throws(Errno) in try file.read(into: part, at: offset) }
      guard count > 0 else { throw ArchiveFailure(.changed, path) }
      try write(Array(part.prefix(count))[...])
      progress?.add(bytes: count)
      done += Int64(count)
    }
    try write(TarHeader.padding(after: size)[...])
    progress?.addFile()
  }

  private mutating func write(_ header: TarHeader) throws(ArchiveFailure) { try write(header.blocks[...]) }

  private mutating func write(_ bytes: ArraySlice<UInt8>) throws(ArchiveFailure) {
    pending += bytes
    if pending.count >= Self.chunk { try flush() }
  }

  private mutating func flush() throws(ArchiveFailure) {
    do throws(Errno) { try output.writeAll(pending) } catch {
      throw ArchiveFailure(.failed(doing: "write", error))
    }
    pending.removeAll(keepingCapacity: true)
  }

  private static func doing<Result: ~Copyable>(
    _ words: String, _ path: [UInt8], _ body: () throws(Errno) -> Result
  ) throws(ArchiveFailure) -> Result {
    do throws(Errno) { return try body() } catch { throw ArchiveFailure(.failed(doing: words, error), path) }
  }
}
