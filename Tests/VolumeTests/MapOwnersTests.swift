// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing
@testable internal import Volume

/// Which view's memory maps are written to a file, where each view's kernel has pages of its own.
struct MapOwnersTests {
  private static let file = ObjectNumber(inode: 1, device: 1)
  private static let other = ObjectNumber(inode: 2, device: 1)

  private func open(
    _ maps: MapOwners, _ view: UInt32, canRefuse: Bool = false, isAlone: Bool = true
  ) -> MapUse {
    maps.opened(Self.file, by: view, canRefuse: canRefuse) { isAlone }
  }

  @Test func oneViewAtATimeOwnsThem() {
    let maps = MapOwners()
    #expect(open(maps, 1) == .owned && open(maps, 1) == .owned)
    #expect(open(maps, 2) == .refused)
    #expect(maps.mayWriteBack(Self.file, by: 1) && !maps.mayWriteBack(Self.file, by: 2))
    #expect(maps.mayWriteBack(Self.other, by: 2))
    maps.closed(Self.file, by: 1)
    #expect(maps.mayWriteBack(Self.file, by: 1) && !maps.mayWriteBack(Self.file, by: 2))
    maps.closed(Self.file, by: 1)
    // What the other has in its pages may be older than what the first has stored.
    #expect(!maps.mayWriteBack(Self.file, by: 2) && open(maps, 2) == .refused)
    maps.closed(Self.file, by: 2)
    maps.closed(Self.file, by: 2)
    #expect(open(maps, 2) == .owned && maps.mayWriteBack(Self.file, by: 2))
  }

  /// Where the kernel refuses the map there is nothing to watch.
  @Test func refusedMapsAreNotCounted() {
    let maps = MapOwners()
    #expect(open(maps, 1) == .owned && open(maps, 2, canRefuse: true) == .none)
    #expect(!maps.areElsewhere(of: Self.file, besides: 1) && maps.areElsewhere(of: Self.file, besides: 2))
    maps.closed(Self.file, by: 1)
    #expect(open(maps, 2, canRefuse: true) == .owned)
    #expect(open(maps, 3, canRefuse: true, isAlone: false) == .none)
  }

  @Test(arguments: [false, true])
  func whoIsNotAloneOwnsNothing(canRefuse: Bool) {
    let maps = MapOwners()
    #expect(open(maps, 1, canRefuse: canRefuse, isAlone: false) == (canRefuse ? .none : .refused))
    #expect(maps.mayWriteBack(Self.file, by: 1) == canRefuse)
    #expect(maps.areElsewhere(of: Self.file, besides: 2) != canRefuse)
  }

  /// Whoever stores in the file's own pages ends it for the one who has pages of their own.
  @Test func storesPastThemEndThem() {
    let maps = MapOwners()
    #expect(open(maps, 1) == .owned)
    maps.disown(Self.file, besides: 1)
    #expect(maps.mayWriteBack(Self.file, by: 1))
    maps.disown(Self.file, besides: 2)
    #expect(!maps.mayWriteBack(Self.file, by: 1) && open(maps, 1) == .refused)
  }

  @Test func viewThatEndsOwnsNothing() {
    let maps = MapOwners()
    #expect(open(maps, 1) == .owned && open(maps, 1) == .owned)
    maps.ended(1)
    #expect(!maps.areElsewhere(of: Self.file, besides: 2) && open(maps, 2) == .owned)
  }

  @Test func anotherWorkerKnowsTheOwner() {
    for order in [[UInt32(1), 2], [2, 1]] {
      let maps = MapOwners()
      for view in order { maps.reopened(Self.file, by: view, view == 1 ? .owned : .refused) }
      maps.reopened(Self.file, by: 3, .none)
      #expect(maps.mayWriteBack(Self.file, by: 1) && !maps.mayWriteBack(Self.file, by: 2))
      #expect(maps.mayWriteBack(Self.file, by: 3) && open(maps, 1) == .owned)
    }
  }
}
