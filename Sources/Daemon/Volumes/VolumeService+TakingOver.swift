// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Store
internal import Synchronization
internal import Volume

extension VolumeService {
  /// How long whoever takes over from another worker waits for homes that this one has had.
  private static let homesMilliseconds = 1000

  /// Does something with each of some, and waits for all together, but no longer than so long; gives those
  /// for which there was no thread.
  @discardableResult
  func eachOnItsThread<Piece: Sendable>(
    _ pieces: [Piece], milliseconds: Int, _ body: @escaping @Sendable (Piece) -> Void
  ) -> [Piece] {
    var without: [Piece] = []
    let left = Condition(pieces.count)
    for piece in pieces {
      let thread = try? JoinableThread(name: "volumes") {
        body(piece)
        left.change { $0 -= 1 }
      }
      if let thread {
        thread.detach()
      } else {
        left.change { $0 -= 1 }
        without.append(piece)
      }
    }
    _ = left.wait(milliseconds: milliseconds) { $0 == 0 }
    return without
  }

  /// The numbers of those that another worker has left, and that this one serves on.
  ///
  /// A home is looked into before it is a part of the tree, and its disk or server may not answer. After a
  /// moment everybody else is served, and the home is away until it does.
  func takeOver(_ records: [VolumeRecord]) -> Set<Int64> {
    let left = records.compactMap { record in engines.left(record).map { (record, $0) } }
    var homes: [(VolumeRecord, VolumeEngines.Left)] = []
    var served: Set<Int64> = []
    for (record, left) in left {
      if record.place == .users, begin(with: record.id) {
        homes.append((record, left))
        served.insert(record.id)
      } else if takeOver(record, left) {
        served.insert(record.id)
      }
    }
    let without = eachOnItsThread(homes, milliseconds: Self.homesMilliseconds) { [self] record, left in
      #if DEBUG
        Halt.at(.homeTakenOver)
      #endif
      let isThere = takeOver(record, left)
      end(with: record.id)
      if isThere { awaitAll() } else { attach(record) }
    }
    for (record, _) in without { end(with: record.id) }
    return served
  }

  private func takeOver(_ record: VolumeRecord, _ left: VolumeEngines.Left) -> Bool {
    guard let attached = engines.attach(record, left) else { return false }
    changes.withLock { _ in
      // It may have been ejected while its disk or server did not answer, or given away there.
      do throws(VolumeFailure) {
        try requireNoted(record)
        try requireOwner(of: attached)
      } catch {
        switch error {
        case .gone, .homeOfOther:
          engines.forget(record.id)
          return end(attached, isHurried: true)
        default: break
        }
      }
      // Whoever has attached it may have been stopped before.
      try? link(record)
      attach(attached)
    }
    return true
  }
}
