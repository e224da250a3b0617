// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Synchronization

/// The names that a directory had when its listing began, for as long as it is open.
///
/// A program that serves a volume may count names. To it an offset means another name when one before that
/// has come or gone, so a listing in several pages would leave names out, or show them twice. Here an offset
/// is a place in what was read at once.
final class KeptListing: Sendable {
  /// Entries as the kernel gives them, and where each begins.
  struct Names: Sendable {
    fileprivate(set) var bytes: [UInt8] = []
    fileprivate(set) var starts: [Int] = []

    /// Calls `body` with the entries from a place on, until it says that it is enough.
    func list(from place: Int64, _ body: (_ entry: DirectoryEntries.Entry, _ next: Int64) -> Bool) {
      bytes.withUnsafeBytes { bytes in
        for index in starts.indices.dropFirst(Int(clamping: place)) {
          var entries = DirectoryEntries(UnsafeRawBufferPointer(rebasing: bytes[starts[index]...]))
          guard let entry = entries.next(), body(entry, Int64(index) + 1) else { return }
        }
      }
    }
  }

  private let names = OrderedMutex<Names?>(.leaf, nil)
  private static let chunk = 1 << 15

  /// The names for a page; those of now for the first one.
  ///
  /// Nil if the user has no memory left for them.
  func names(
    of directory: FD, from place: Int64, _ budget: Budget, by payer: Payer
  ) throws(Errno) -> Names? {
    if place != 0, let known = names.withLock({ $0 }) { return known }
    let found = try read(directory, budget, payer)
    replace(by: found, budget, payer)
    return found
  }

  /// Nobody reads it any more.
  func giveBack(to budget: Budget, by payer: Payer) { replace(by: nil, budget, payer) }

  private func replace(by found: Names?, _ budget: Budget, _ payer: Payer) {
    let before = names.withLock { names in
      defer { names = found }
      return names
    }
    if let before { budget.give(.memory, before.bytes.count, by: payer) }
  }

  private func read(_ directory: FD, _ budget: Budget, _ payer: Payer) throws(Errno) -> Names? {
    _ = try directory.seek(0, SEEK_SET)
    var names = Names()
    let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.chunk, alignment: 16)
    defer { chunk.deallocate() }
    do throws(Errno) {
      while true {
        let count = try directory.readDirectory(into: chunk)
        guard count > 0 else { return names }
        guard budget.takeQuietly(.memory, count, by: payer) else { throw .ENOMEM }
        var at = 0
        while at + 18 <= count {
          names.starts.append(names.bytes.count + at)
          at += max(Int(chunk[at + 16]) | Int(chunk[at + 17]) << 8, 19)
        }
        names.bytes += chunk[..<count]
      }
    } catch {
      budget.give(.memory, names.bytes.count, by: payer)
      if error == .ENOMEM { return nil }
      throw error
    }
  }
}
