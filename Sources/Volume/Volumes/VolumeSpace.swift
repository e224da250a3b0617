// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
package import LinuxIO
internal import Policy
internal import Store
internal import Synchronization

/// How much a volume may take on the disk where its files lie.
///
/// What it takes is measured, and what is written since is added to that. When that comes to the limit, it is
/// measured again: files have become smaller since, or are gone. So the limit holds to within the writes that
/// are under way, and what the disk keeps to find the blocks.
package final class VolumeSpace: Sendable {
  private struct State {
    /// Nil before it was measured.
    var measured: Int64?
    /// What was written since, and while it was measured.
    var written: Int64 = 0
    /// Before that time it is not to be measured again.
    var next: UInt64 = 0

    var taken: Int64? { measured.map { $0.adding(clamped: written) } }
  }
  private let limit: Int64
  private let open: @Sendable () throws(Errno) -> SharedFD
  private let state = Mutex(State())
  /// Held by the one thread that measures.
  private let measuring = Mutex<SharedFD?>(nil)

  /// At the limit each write measures, and a volume of many files must not cost a processor for that: four
  /// fifths of the time are left to others.
  private static let restFactor: UInt64 = 4
  /// For so long a write waits until it may measure; if that is later, there is no room.
  private static let patienceNanoseconds: UInt64 = 1_000_000_000

  /// Disks give room by blocks of that size.
  static let block: Int64 = 4096

  static func roundedUp(_ bytes: Int64) -> Int64 { bytes.adding(clamped: block - 1) & ~(block - 1) }

  /// What a file of so many bytes takes encrypted: gocryptfs adds to the file and to each block.
  static func encrypted(_ bytes: Int64) -> Int64 {
    let (ofFile, ofBlock): (Int64, Int64) = (18, 32)
    guard bytes > 0 else { return 0 }
    return roundedUp(bytes.adding(clamped: ofFile + roundedUp(bytes) / block * ofBlock))
  }

  /// `open` opens the directory where the files lie.
  package init(limit: Int64, open: @escaping @Sendable () throws(Errno) -> SharedFD) {
    self.limit = limit
    self.open = open
  }

  /// Takes room for so many bytes; ENOSPC if there is none.
  func take(_ bytes: Int64) throws(Errno) {
    if isTaken(bytes) { return }
    try measuring.withLock { (directory) throws(Errno) in
      // Somebody else may just have measured it.
      if isTaken(bytes) { return }
      try rest()
      try measure(&directory)
      guard isTaken(bytes) else { throw .ENOSPC }
    }
  }

  private func isTaken(_ bytes: Int64) -> Bool {
    state.withLock { state in
      guard let taken = state.taken, taken.adding(clamped: bytes) <= limit else { return false }
      state.written = state.written.adding(clamped: bytes)
      return true
    }
  }

  private func rest() throws(Errno) {
    let (next, now) = (state.withLock { $0.next }, monotonicNanoseconds())
    let left = next > now ? next - now : 0
    guard left <= Self.patienceNanoseconds else { throw .ENOSPC }
    if left > 0 { _ = Condition(()).wait(milliseconds: Int(left / 1_000_000) + 1) { _ in false } }
  }

  private func measure(_ directory: inout SharedFD?) throws(Errno) {
    let began = monotonicNanoseconds()
    let opened: SharedFD
    if let directory { opened = directory } else { opened = try open() }
    directory = opened
    let before = state.withLock { $0.written }
    let usage = try opened.use { (fd) throws(Errno) in
      try StorageUsage(of: fd, as: .part(.data), StorageOwner(user: nil))
    }
    let ended = monotonicNanoseconds()
    state.withLock { state in
      // Of more than can be counted it is full.
      state.measured = usage.isComplete ? usage.sizes.total : .max
      state.written -= before
      state.next = ended &+ (ended &- began) &* Self.restFactor
    }
  }

  /// Shows the limit in the place of what the disk has.
  func limit(_ status: inout FilesystemStatus) throws(Errno) {
    let block = Int64(clamping: status.f_frsize)
    guard block > 0 else { return }
    if state.withLock({ $0.next < monotonicNanoseconds() }) {
      try measuring.withLock { (directory) throws(Errno) in try measure(&directory) }
    }
    let taken = state.withLock { $0.taken } ?? 0
    let left = UInt(clamping: max(0, limit - min(limit, taken)) / block)
    status.f_blocks = UInt(clamping: limit / block)
    status.f_bfree = min(status.f_bfree, left)
    status.f_bavail = min(status.f_bavail, left)
  }
}

extension View {
  /// Takes room for a new name on a volume; ENOSPC if that may take no more.
  func takeSpace(for kind: Object.Kind, onVolume number: UInt32) throws(Errno) {
    guard let space = volume.attached.space(ofVolume: number) else { return }
    switch kind {
    // What is empty takes no more than its name does.
    case .file, .special: try space.take(256)
    case .symlink: try space.take(VolumeSpace.block)
    // gocryptfs has a file in each.
    case .directory: try space.take(2 * VolumeSpace.block)
    }
  }

  /// The same for an attribute.
  func takeSpace(forAttribute length: Int, onVolume number: UInt32) throws(Errno) {
    try volume.attached.space(ofVolume: number)?.take(VolumeSpace.roundedUp(Int64(length)))
  }

  /// The same for what is written to a file at `offset`, or at its end, as far as it does not have that room.
  func takeSpace(_ length: Int, at offset: Int64?, in file: FD, _ node: NodeID) throws(Errno) {
    guard volume.attached.haveSpaces, let number = nodes.with(node, { $0.volume }),
      let space = volume.attached.space(ofVolume: number)
    else { return }
    let status = try file.statusInMemory()
    let size = Int64(status.st_size)
    let end = (offset ?? size).adding(clamped: Int64(length))
    var needed = max(0, VolumeSpace.encrypted(end) - VolumeSpace.encrypted(size))
    // A file with holes gets new blocks within its size too.
    if status.bytesOnDisk < size {
      needed = max(needed, VolumeSpace.encrypted(Int64(length)).adding(clamped: VolumeSpace.block))
    }
    if needed > 0 { try space.take(needed) }
  }
}
