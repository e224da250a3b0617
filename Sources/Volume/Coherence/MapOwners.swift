// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization

// Which view may store in a file through memory maps whose pages are its own.
//
//  1. With passthrough all maps of a file have the file's own pages, in all views. Such maps are not in here.
//  2. Otherwise the kernel of each view has pages of its own. It writes whole pages, some time after a store,
//     and so overwrites what was stored through another view meanwhile. So of each file one view at a time
//     owns the maps: the one that has the file open for reading and writing while no other view can write to
//     it.
//  3. In other views the file can't be mapped shared: it is opened with FOPEN_DIRECT_IO. On a connection that
//     allows such maps nevertheless (`ConnectionSettings.sharesDirectMaps`, for granted files), their
//     write-back is refused (EIO), which msync(2), fsync(2) and close(2) report.
//  4. While a view has the file open so, others open it for writing without passthrough. A view that has it
//     passed through already can't do that (EIO from the kernel): then nobody owns the maps any more.
//  5. An open is noted here before the other views are looked at, and `WriterNotes` before this is. So of two
//     opens at the same time at least one sees the other.

/// What an open can do to a file by memory maps that have pages of their own.
enum MapUse: UInt8, Sendable {
  /// Nothing: there are no shared maps of it, or they have the file's own pages.
  case none
  /// Its maps can't be prevented; what is stored in them is not written.
  case refused
  /// What is stored in its maps is written.
  case owned
}

/// See the rules above.
final class MapOwners: Sendable {
  private struct Entry {
    var owner: UInt32?
    /// How many opens each view has through which it can have such maps.
    var opens: [UInt32: Int] = [:]
  }
  private let entries = OrderedMutex<[ObjectNumber: Entry]>(.leaf, [:])
  /// How many files are in here; usually none, with passthrough.
  private let count = Atomic<Int>(0)

  private var isEmpty: Bool { count.load(ordering: .sequentiallyConsistent) == 0 }

  /// Whether any other view can have such maps of a file.
  func areElsewhere(of file: ObjectNumber, besides view: UInt32) -> Bool {
    guard !isEmpty else { return false }
    return entries.withLock { $0[file]?.opens.contains { $0.key != view } ?? false }
  }

  /// A view opens a file so that it could map it; tells whether what is stored in the maps is written.
  ///
  /// `isAlone` tells whether no other view can write to the file. `canRefuse` says that the kernel refuses
  /// the map if the file is opened so.
  func opened(
    _ file: ObjectNumber, by view: UInt32, canRefuse: Bool, isAlone: () -> Bool
  ) -> MapUse {
    let (isOwner, isNew) = change(file) { entry in
      let isNew = entry.opens.isEmpty
      if isNew { entry.owner = view }
      entry.opens[view, default: 0] += 1
      return (entry.owner == view, isNew)
    }
    if isOwner, !isNew || isAlone() { return .owned }
    change(file) { entry in if isNew, entry.owner == view { entry.owner = nil } }
    if canRefuse {
      closed(file, by: view)
      return .none
    }
    return .refused
  }

  /// An open that another worker has answered.
  func reopened(_ file: ObjectNumber, by view: UInt32, _ use: MapUse) {
    guard use != .none else { return }
    change(file) { entry in
      entry.opens[view, default: 0] += 1
      if use == .owned { entry.owner = view }
    }
  }

  /// The reverse of ``opened(_:by:canRefuse:isAlone:)``.
  func closed(_ file: ObjectNumber, by view: UInt32) {
    change(file) { entry in
      let left = (entry.opens[view] ?? 1) - 1
      entry.opens[view] = left > 0 ? left : nil
      if left <= 0, entry.owner == view { entry.owner = nil }
    }
  }

  /// Another view than the owner stores in the file's own pages.
  func disown(_ file: ObjectNumber, besides view: UInt32) {
    guard areElsewhere(of: file, besides: view) else { return }
    change(file) { entry in if entry.owner != view { entry.owner = nil } }
  }

  /// Whether a view's kernel may write what was stored in its maps of a file.
  func mayWriteBack(_ file: ObjectNumber, by view: UInt32) -> Bool {
    guard !isEmpty else { return true }
    return entries.withLock { entries in
      guard let entry = entries[file], entry.opens[view] != nil else { return true }
      return entry.owner == view
    }
  }

  /// A view has ended, and all its maps with it.
  func ended(_ view: UInt32) {
    guard !isEmpty else { return }
    let files = entries.withLock { $0.filter { $0.value.opens[view] != nil }.map(\.key) }
    for file in files {
      change(file) { entry in
        entry.opens[view] = nil
        if entry.owner == view { entry.owner = nil }
      }
    }
  }

  /// Changes what is noted of a file; a note that says nothing goes.
  @discardableResult
  private func change<Result: Sendable>(
    _ file: ObjectNumber, _ body: (inout Entry) -> Result
  ) -> Result {
    entries.withLock { entries in
      var entry = entries[file] ?? Entry()
      let result = body(&entry)
      entries[file] = entry.opens.isEmpty ? nil : entry
      count.store(entries.count, ordering: .sequentiallyConsistent)
      return result
    }
  }
}
