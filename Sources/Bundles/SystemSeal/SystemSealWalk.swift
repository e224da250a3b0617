// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// Why a tree can't be sealed, or looked at to verify it.
package struct SystemSealFailure: Error, Equatable, Sendable, CustomStringConvertible {
  package let path: String
  package let reason: String

  package var description: String { "\(path.isEmpty ? "the top directory" : path) \(reason)" }
}

/// Goes through a tree and tells all that a seal says.
///
/// Nothing is followed, no other filesystem entered; a directory at a time is open for each level.
struct SystemSealWalk {
  /// Whose things count as whose.
  enum Owners {
    /// All are the store's owner's.
    case everything
    /// Those of this one are the store's owner's, all others are their own.
    case owner(uid: UInt32, gid: UInt32)
  }

  private static let depth = 100
  private static let entries = 1_000_000

  private let owners: Owners
  private let progress: (Int64) -> Void
  private var device: UInt64 = 0
  private var found: [SystemSeal.Entry] = []
  private let buffer = Buffer()

  private final class Buffer {
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
    deinit { bytes.deallocate() }
  }

  init(_ owners: Owners, progress: @escaping (Int64) -> Void) {
    self.owners = owners
    self.progress = progress
  }

  mutating func walk(_ top: FD) throws(SystemSealFailure) -> [SystemSeal.Entry] {
    let reading = try doing("open", []) { () throws(Errno) in try top.reopened(O_RDONLY | O_DIRECTORY) }
    let status = try doing("examine", []) { () throws(Errno) in try reading.fd.status() }
    device = UInt64(status.st_dev)
    try add(.directory, [], reading.fd, status)
    try enter(reading.fd, [], depth: 1)
    return found.inOrder { $0.path.lexicographicallyPrecedes($1.path) }
  }

  private mutating func enter(_ directory: FD, _ path: [UInt8], depth: Int) throws(SystemSealFailure) {
    guard depth <= Self.depth else {
      throw Self.failure(path, "is nested too deeply: the limit is \(Self.depth)")
    }
    let entries = try doing("list", path) { () throws(Errno) in try directory.entries() }
    for entry in entries {
      if path.isEmpty, entry.name.elementsEqual(SystemSeal.directoryName.utf8) { continue }
      let child = path.isEmpty ? entry.name : path + [UInt8(ascii: "/")] + entry.name
      guard found.count < Self.entries else {
        throw Self.failure(path, "has too much in it to be sealed: the limit is \(Self.entries) objects")
      }
      try look(at: entry.name, child, in: directory, depth: depth)
    }
  }

  private mutating func look(
    at name: [UInt8], _ path: [UInt8], in directory: FD, depth: Int
  ) throws(SystemSealFailure) {
    let object = try doing("open", path) { () throws(Errno) in
      try directory.child(name)
    }
    let status = try doing("examine", path) { () throws(Errno) in try object.fd.status() }
    guard UInt64(status.st_dev) == device else { throw Self.failure(path, "is on another filesystem") }
    switch status.type {
    case S_IFDIR:
      let reading = try doing("open", path) { () throws(Errno) in
        try object.fd.reopened(O_RDONLY | O_DIRECTORY)
      }
      try add(.directory, path, reading.fd, status)
      try enter(reading.fd, path, depth: depth + 1)
    case S_IFREG:
      let reading = try doing("open", path) { () throws(Errno) in try object.fd.reopened(O_RDONLY) }
      let (size, digest) = try digest(reading.fd, path)
      try add(.file(size: size, digest: digest), path, reading.fd, status)
    case S_IFLNK:
      let target = try doing("read", path) { () throws(Errno) in try object.fd.linkTarget() }
      try add(.link(target: target), path, object.fd, status)
    default: throw Self.failure(path, "is a fifo, a socket or a device, which a system domain can't contain")
    }
  }

  private func digest(_ file: FD, _ path: [UInt8]) throws(SystemSealFailure) -> (UInt64, [UInt8]) {
    var digest = try crypto(path) { () throws(CryptoFailure) in try Digest(.sha256) }
    var position: Int64 = 0
    while true {
      let count = try doing("read", path) { () throws(Errno) in
        try file.read(into: buffer.bytes, at: position)
      }
      if count == 0 { break }
      digest.update(UnsafeRawBufferPointer(rebasing: buffer.bytes[..<count]))
      position += Int64(count)
      progress(Int64(count))
    }
    return (UInt64(position), digest.finish())
  }

  private mutating func add(
    _ kind: SystemSeal.Entry.Kind, _ path: [UInt8], _ object: FD, _ status: FileStatus
  ) throws(SystemSealFailure) {
    var owner: (uid: UInt32, gid: UInt32) = (0, 0)
    if case .owner(let uid, let gid) = owners {
      owner = (status.st_uid == uid ? 0 : status.st_uid, status.st_gid == gid ? 0 : status.st_gid)
    }
    let isLink = if case .link = kind { true } else { false }
    found.append(
      SystemSeal.Entry(
        path: path, kind: kind, mode: isLink ? 0o777 : status.permissions, uid: owner.uid, gid: owner.gid,
        attributes: isLink ? nil : try attributes(of: object, path)))
  }

  /// The digest of all attributes that go with a file, by name.
  func attributes(of object: FD, _ path: [UInt8]) throws(SystemSealFailure) -> [UInt8]? {
    let length: Int
    do throws(Errno) {
      length = try object.attributeNames(into: buffer.bytes)
    } catch .EOPNOTSUPP {
      return nil
    } catch {
      throw Self.failure(path, "has attributes that can't be listed: \(error.message)")
    }
    guard length > 0 else { return nil }
    let names = buffer.bytes[..<length].split(separator: 0).map { Array($0) }
      .filter(KeptAttributes.contains).inOrder { $0.lexicographicallyPrecedes($1) }
    if names.isEmpty { return nil }
    var all: [UInt8] = []
    for name in names {
      let count = try doing("read an attribute of", path) { () throws(Errno) in
        try name.withName { (name) throws(Errno) in try object.attribute(name.bytes, into: buffer.bytes) }
      }
      // The length ends all doubt about where a value does.
      all += name + [0] + Array("\(count)".utf8) + [0] + Array(buffer.bytes[..<count])
    }
    return try crypto(path) { () throws(CryptoFailure) in try Digest.whole(all) }
  }

  private func doing<Result: ~Copyable>(
    _ words: String, _ path: [UInt8], _ body: () throws(Errno) -> Result
  ) throws(SystemSealFailure) -> Result {
    do throws(Errno) { return try body() } catch {
      throw Self.failure(path, "can't be examined (\(words)): \(error.message)")
    }
  }

  private func crypto<Result: ~Copyable>(
    _ path: [UInt8], _ body: () throws(CryptoFailure) -> Result
  ) throws(SystemSealFailure) -> Result {
    do throws(CryptoFailure) { return try body() } catch { throw Self.failure(path, error.description) }
  }

  private static func failure(_ path: [UInt8], _ reason: String) -> SystemSealFailure {
    SystemSealFailure(path: String(decoding: path, as: UTF8.self), reason: reason)
  }
}
