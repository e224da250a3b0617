// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import LinuxIO

/// Reads files and digests them, one after another through one buffer.
final class SealReader {
  /// Enough for a large read, and little enough for it to be in the processor's cache when it is digested.
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)
  private let names = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)

  private let progress: ReadProgress?
  private let known: KnownDigests?
  private let bounds: VerificationBounds?

  init(_ bundle: CodeBundle) {
    progress = bundle.progress
    known = bundle.known
    bounds = bundle.bounds
  }

  /// Whether the last file had an extended attribute that no seal covers and that programs take for part of
  /// it.
  private(set) var hasSideband = false

  deinit {
    buffer.deallocate()
    names.deallocate()
  }

  /// The digests of a file; empty where none is wanted.
  func digests(
    of name: String, _ path: String, in directory: FD, _ wanted: ResourceSeal.Algorithm?, firstVersion: Bool
  ) throws(Finding) -> (wanted: [UInt8], firstVersion: [UInt8]?) {
    let file = try Finding.instead(of: .unreadable, path) { () throws(Errno) in
      try directory.openToExamine(name)
    }
    let status = try Finding.instead(of: .unreadable, path) { () throws(Errno) in try file.fd.status() }
    guard status.isRegular else { throw Finding(.unreadable, path, .EINVAL) }
    hasSideband = Self.namesSideband(in: file.fd, names)
    guard let wanted else { return ([], nil) }
    progress?.addFile()
    let size = Int(clamping: status.st_size)
    if !firstVersion, wanted.function == .sha256, let digest = known?.digest(of: status) {
      progress?.add(bytes: size)
      return (try wanted.checked(digest, path), nil)
    }
    if size > buffer.count { file.fd.willBeReadOnce() }
    var one = try Digest.begin(wanted.function, path)
    guard firstVersion else {
      var offset = 0
      while let piece = try piece(of: file.fd, at: &offset, size, path) { one.update(piece) }
      return (try wanted.checked(one.finish(), path), nil)
    }
    var other = try Digest.begin(.sha1, path)
    var offset = 0
    while let piece = try piece(of: file.fd, at: &offset, size, path) {
      one.update(piece)
      other.update(piece)
    }
    return (
      try wanted.checked(one.finish(), path), try ResourceSeal.Algorithm.sha1.checked(other.finish(), path)
    )
  }

  /// The next bytes of a file, in the buffer; nil at its end.
  private func piece(
    of file: FD, at offset: inout Int, _ size: Int, _ path: String
  ) throws(Finding) -> UnsafeRawBufferPointer? {
    let start = offset
    // A read that did not fill the buffer has come to the end, if it is where the file was to end: for a
    // small file, a call less.
    if start >= size, start % buffer.count != 0 { return nil }
    // A file may be as long as a disk is large, and longer with holes.
    if start > 0, let end = bounds?.end { throw end }
    let count = try Finding.instead(of: .unreadable, path) { () throws(Errno) in
      try file.read(into: buffer, at: Int64(start))
    }
    guard count > 0 else { return nil }
    // One that somebody goes on writing to has no end.
    guard count <= size - start else {
      throw Finding(.unreadable, path, detail: "it grew while it was read")
    }
    offset += count
    progress?.add(bytes: count)
    return UnsafeRawBufferPointer(rebasing: buffer[..<count])
  }

  private static let sidebands = ["user.com.apple.ResourceFork", "user.com.apple.FinderInfo"].map {
    Array($0.utf8)
  }

  /// Whether an open file has one of the attributes that programs take for part of it.
  static func hasSideband(_ file: FD) -> Bool {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    defer { buffer.deallocate() }
    return namesSideband(in: file, buffer)
  }

  private static func namesSideband(in file: FD, _ buffer: UnsafeMutableRawBufferPointer) -> Bool {
    // A filesystem without extended attributes has none of these.
    guard let count = try? file.openAttributeNames(into: buffer), count > 0 else { return false }
    return UnsafeRawBufferPointer(rebasing: buffer[..<count]).split(separator: 0).contains { name in
      sidebands.contains { $0.elementsEqual(name) }
    }
  }
}

extension Digest {
  /// A digest that goes into a seal, or is held against one.
  static func begin(_ algorithm: Algorithm, _ path: String) throws(Finding) -> Digest {
    do throws(CryptoFailure) {
      return try Digest(algorithm)
    } catch {
      throw Finding(.unreadable, path, detail: "\(error.doing): \(error.reason)")
    }
  }
}

extension ResourceSeal.Algorithm {
  /// The function that libcrypto knows.
  var function: Digest.Algorithm {
    switch self {
    case .sha1: .sha1
    case .sha256, .sha256Truncated: .sha256
    case .sha384: .sha384
    case .sha512: .sha512
    }
  }

  /// As much of a digest as is kept; a digest that libcrypto has not finished is none.
  func checked(_ digest: [UInt8], _ path: String) throws(Finding) -> [UInt8] {
    guard digest.count >= length else {
      throw Finding(.unreadable, path, detail: "its digest can't be computed")
    }
    return digest.count == length ? digest : Array(digest.prefix(length))
  }
}
