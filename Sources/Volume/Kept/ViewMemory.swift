// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// What of a view outlives the worker that serves it: one file in memory, which nearly all is holes.
struct ViewMemory {
  /// How many nodes there may be, as a power of two: fewer where the daemon may not map so much.
  private static let shifts = [26, 23, 20]
  private static let mostHandles = 1 << 20

  let session: SharedRegion
  let nodes: SharedRegion
  let names: SharedRegion
  let files: SharedRegion
  let directories: SharedRegion
  /// Whether another worker has left it.
  let isKept: Bool
  /// Whether that worker's descriptors are still open under their numbers: not where a service manager has
  /// started the keeper again, where the same numbers may by chance stand for our own.
  let keepsDescriptors: Bool

  /// The memory of a view, as it was kept or new.
  init(of view: UInt32, in kept: KeptState?) throws(Errno) {
    let sizes = Self.shifts.map { Self.layout($0).last?.upperBound ?? 0 }
    let (memory, isKept) = try Self.memory(view, kept, sizes)
    let parts = Self.layout(Self.shifts[sizes.firstIndex(of: memory.size) ?? 0]).map {
      SharedRegion(memory, $0)
    }
    session = parts[0]
    (files, directories, names, nodes) = (parts[1], parts[2], parts[3], parts[4])
    self.isKept = isKept
    keepsDescriptors = isKept && kept?.lastReason != .keeperEnded
  }

  /// For a view that nobody takes over.
  init() throws(Errno) { try self.init(of: 0, in: nil) }

  private static func memory(
    _ view: UInt32, _ kept: KeptState?, _ sizes: [Int]
  ) throws(Errno) -> (SharedMemory, Bool) {
    if let kept { return try kept.memory(.viewMemory, view: view, name: "insula-view", sizes: sizes) }
    var failure = Errno.ENOMEM
    for size in sizes {
      do throws(Errno) {
        return (try SharedMemory("insula-view", size: size), false)
      } catch {
        failure = error
      }
    }
    throw failure
  }

  private static func layout(_ shift: Int) -> [Range<Int>] {
    var end = 0
    return [
      KeptRecords<KeptSession>.size(1),
      KeptRecords<OpenFile.Record>.size(mostHandles), KeptRecords<OpenDirectory.Record>.size(mostHandles),
      Slab<NameCell>.size(1 << shift), Slab<Node>.size(1 << shift),
    ].map { size in
      defer { end += size }
      return end..<end + size
    }
  }
}
