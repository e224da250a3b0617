// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO
package import Policy

// How much room something takes is what `du -x` says: the blocks of files, directories and links, of a file
// with several names once. Whoever owns a tree can make it as large and as deep as they like, and change it
// meanwhile: no link is followed, no other filesystem entered, little is kept in memory, and what disappears
// is not counted.

/// Is called for each name, and rests for as long as it likes; it ends what is done by throwing EINTR.
package typealias Pause = () throws(Errno) -> Void

/// What a directory takes on the disk, with all that is below it.
package struct StorageUsage: Codable, Equatable, Sendable {
  package private(set) var sizes = StorageSizes()
  /// Of everything that has a name.
  package private(set) var count: Int64 = 0
  /// What a purge would free, at most.
  package private(set) var purgeable = FreedSpace()
  package private(set) var advice: [StorageAdvice] = []
  /// Whether all of it was counted.
  package fileprivate(set) var isComplete = true

  package init() {}

  /// So many directories may be known and not visited yet.
  package static let mostWaiting = 500_000

  /// Walks through a directory; `pause` is called for each name, and ends it by throwing EINTR.
  ///
  /// Of more than `most` names the rest is not counted, since somebody can add names for ever; nor is what is
  /// in directories beyond those `waiting` that may be known and not visited yet.
  package init(
    of directory: FD, as zone: StorageZone, _ owner: StorageOwner, most: Int64 = 50_000_000,
    waiting: Int = mostWaiting, pause: Pause = {}
  ) throws(Errno) {
    var walk = UsageWalk(zone, owner, most, waiting)
    do throws(Errno) {
      try walk.run(directory, pause)
    } catch .EINTR {
      throw .EINTR
    } catch {
      walk.usage.isComplete = false
    }
    self = walk.usage
  }

  fileprivate mutating func add(_ bytes: Int64, to part: StoragePart) {
    count = count.adding(clamped: 1)
    sizes.add(bytes, to: part)
  }

  fileprivate mutating func addPurgeable(_ status: FileStatus) { purgeable.add(status) }

  fileprivate mutating func advise(
    _ kind: StorageAdvice.Kind, _ bytes: Int64, _ path: () -> [[UInt8]]
  ) {
    let index = advice.firstIndex { $0.kind == kind } ?? advice.count
    if index == advice.count { advice.append(StorageAdvice(kind)) }
    advice[index].add(bytes, at: path)
  }
}

private struct UsageWalk {
  var usage = StorageUsage()
  private let top: StorageZone
  private let owner: StorageOwner
  private let most: Int64
  private let waiting: Int
  private var device: UInt = 0
  /// Files with several names that were counted; of more than there is room for, each name counts its share.
  private var linked: Set<UInt> = []
  /// Of the directory whose entries come now.
  private var visit = -1
  private var zone: StorageZone
  private var isExcluded: Bool?

  private static let mostLinked = 100_000
  private static let mostParents = 64

  init(_ zone: StorageZone, _ owner: StorageOwner, _ most: Int64, _ waiting: Int) {
    (top, self.zone) = (zone, zone)
    self.owner = owner
    (self.most, self.waiting) = (most, waiting)
  }

  mutating func run(_ directory: FD, _ pause: () throws(Errno) -> Void) throws(Errno) {
    let status = try directory.status()
    device = UInt(status.st_dev)
    usage.add(Self.size(status), to: top.part)
    let isWhole = try DeepWalk.through(directory, mostWaiting: waiting) { (entry) throws(Errno) in
      try pause()
      guard usage.count < most else { throw .EOVERFLOW }
      return see(entry)
    }
    usage.isComplete = isWhole
  }

  private mutating func see(_ entry: DeepWalk.Entry) -> Bool {
    let found = try? entry.name.withName { (name) throws(Errno) in try entry.directory.status(of: name) }
    guard let status = found, UInt(status.st_dev) == device else { return false }
    if entry.visit != visit {
      visit = entry.visit
      zone = zone(ofDirectory: entry)
      isExcluded = nil
    }
    let child = zone.child(
      entry.name, isDirectory: status.isDirectory, isLink: status.isSymlink, of: owner)
    let size = sizeOnce(status)
    usage.add(size, to: child.part)
    if zone.isPurged, owner.user == nil || status.st_uid == owner.user, !isTag(entry) {
      usage.addPurgeable(status)
    }
    guard status.isRegular else { return status.isDirectory }
    if case .advised(let kind) = child {
      usage.advise(kind, size) { entry.path }
    } else if child == .part(.documents), size >= StorageAdvice.largeBytes,
      StorageAdvice.isMedia(entry.name), !isExcludedFromBackups(entry)
    {
      usage.advise(.largeMedia, size) { entry.path }
    }
    return false
  }

  /// Whether it is the tag of a directory that may be purged, which a purge keeps.
  private func isTag(_ entry: DeepWalk.Entry) -> Bool {
    guard CacheDirectoryTag.isName(entry.name) else { return false }
    let directory = entry.beginning(4).map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
    return PurgePlace.allCases.contains { $0.path == directory }
  }

  /// The first names of the way say it.
  private func zone(ofDirectory entry: DeepWalk.Entry) -> StorageZone {
    entry.beginning(4).reduce(top) { $0.child($1, isDirectory: true, isLink: false, of: owner) }
  }

  private mutating func sizeOnce(_ status: FileStatus) -> Int64 {
    let size = Self.size(status)
    guard !status.isDirectory, status.st_nlink > 1 else { return size }
    if linked.contains(UInt(status.st_ino)) { return 0 }
    guard linked.count < Self.mostLinked else { return size / Int64(clamping: status.st_nlink) }
    linked.insert(UInt(status.st_ino))
    return size
  }

  private static func size(_ status: FileStatus) -> Int64 {
    let size = Int64(status.st_blocks).multipliedReportingOverflow(by: 512)
    return size.overflow ? .max : max(0, size.partialValue)
  }

  // MARK: Backups

  /// Whether a file, or a directory that it is in, is marked to be left out of backups.
  private mutating func isExcludedFromBackups(_ entry: DeepWalk.Entry) -> Bool {
    let own = try? entry.name.withName { (name) throws(Errno) in try entry.directory.child(name) }
    if let own, Self.isMarked(own.fd) { return true }
    if let isExcluded { return isExcluded }
    let known = isInExcluded(entry)
    isExcluded = known
    return known
  }

  private func isInExcluded(_ entry: DeepWalk.Entry) -> Bool {
    guard var directory = try? entry.directory.duplicated() else { return false }
    // Not above the container, which is three directories above what is in Documents.
    for _ in 0..<min(Self.mostParents, entry.depth) {
      if Self.isMarked(directory.fd) { return true }
      guard let parent = try? directory.fd.openParent() else { return false }
      directory = parent
    }
    return false
  }

  /// The marks are the same in every store.
  private static func isMarked(_ object: FD) -> Bool { !Metadata(isSystem: true).marks(of: object).isEmpty }
}
