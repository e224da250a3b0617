// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// A file whose bytes are held against a seal.
struct SealedFile {
  private let file: FD
  private let path: String
  /// Enough for a large read, and a multiple of a page.
  private static let bufferSize = 256 << 10

  /// `file` is open for reading; `path` is for messages.
  init(_ file: FD, _ path: String) {
    self.file = file
    self.path = path
  }

  /// Of a file that is longer than `limit`, it is the digest of a part.
  func digest(
    _ algorithm: ResourceSeal.Algorithm, atMost limit: UInt64 = .max
  ) throws(Finding) -> [UInt8] {
    var digest = try Digest.begin(algorithm.function, path)
    try forEachPiece(atMost: limit) { (piece) throws(Finding) in digest.update(piece) }
    return try algorithm.checked(digest.finish(), path)
  }

  /// What stands for an executable: its size, and the digest of the digests of its pages.
  func pageDigest() throws(Finding) -> [UInt8] {
    let (size, pages) = try pages()
    return Self.payload(size: size, pages: try Digest.sha256(of: pages))
  }

  /// The file's size, and the digests of its pages, one behind the other.
  ///
  /// Of one that is longer than `limit`, which may have holes larger than any disk: a size beyond that, and a
  /// part of the digests.
  func pages(
    atMost limit: UInt64 = .max, _ read: (Int) -> Void = { _ in }
  ) throws(Finding) -> (size: UInt64, digests: [UInt8]) {
    var size: UInt64 = 0
    var pages: PageDigests
    do throws(CryptoFailure) { pages = try PageDigests() } catch { throw finding(error) }
    try forEachPiece(atMost: limit) { (piece) throws(Finding) in
      size += UInt64(piece.count)
      for start in stride(from: 0, to: piece.count, by: SealedParts.pageSize) {
        let page = piece[start..<min(start + SealedParts.pageSize, piece.count)]
        do throws(CryptoFailure) {
          try pages.append(UnsafeRawBufferPointer(rebasing: page))
        } catch {
          throw finding(error)
        }
      }
      read(piece.count)
    }
    return (size, pages.bytes)
  }

  static func payload(size: UInt64, pages: [UInt8]) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: size >> UInt64($0 * 8)) } + pages
  }

  private func finding(_ failure: CryptoFailure) -> Finding {
    Finding(.unreadable, path, detail: "SHA-256: \(failure.reason)")
  }

  /// Reads the file from start to end, in pieces that are whole pages but for the last; none is begun beyond
  /// `limit`.
  private func forEachPiece(
    atMost limit: UInt64 = .max, _ body: (UnsafeRawBufferPointer) throws(Finding) -> Void
  ) throws(Finding) {
    let size = try Finding.instead(of: .unreadable, path) { () throws(Errno) in try file.status().st_size }
    if size > Self.bufferSize { file.willBeReadOnce() }
    // One more byte, so that the end of a small file is seen with the first read.
    let wanted = min(
      Self.bufferSize, max(0, Int(clamping: size)) / SealedParts.pageSize * SealedParts.pageSize)
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: max(wanted + SealedParts.pageSize, SealedParts.pageSize), alignment: SealedParts.pageSize)
    defer { buffer.deallocate() }
    var offset: Int64 = 0
    while true {
      var filled = 0
      while filled < buffer.count {
        let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
        let (start, done) = (offset, filled)
        let count = try Finding.instead(of: .unreadable, path) { () throws(Errno) in
          try file.read(into: rest, at: start + Int64(done))
        }
        if count == 0 { break }
        filled += count
      }
      if filled > 0 { try body(UnsafeRawBufferPointer(rebasing: buffer[..<filled])) }
      if filled < buffer.count { return }
      offset += Int64(filled)
      if UInt64(offset) > limit { return }
    }
  }
}

/// The rules of a seal, for the few paths that it does not list.
final class PathRules: Sendable {
  private let rules: SealRules
  /// Made when the first such path is asked for.
  private let matcher = Mutex<RuleMatcher?>(nil)

  init(_ rules: SealRules) { self.rules = rules }

  /// The rule for a path; nil if there is none.
  func rule(for path: String) throws(Finding) -> SealRule? {
    let number = try matcher.withLock { (matcher) throws(Finding) -> Int? in
      if matcher == nil { matcher = try rules.matcher() }
      return try matcher?.rule(for: path.utf8)
    }
    return number.map { rules.rules[$0] }
  }
}
