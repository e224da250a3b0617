// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

@Suite struct StorageRuleTests {
  private static let app = AppIdentifier("com.example.Editor")
  private let owner = StorageOwner(user: 1000, app: app, name: "My Editor")

  private func zone(_ path: String) -> StorageZone {
    let names = path.split(separator: "/").map { Array($0.utf8) }
    return names.reduce(StorageZone.container) { zone, name in
      // A dot at the end stands for a file, an at sign for a link.
      let last = name.last
      let isFile = last == UInt8(ascii: "."), isLink = last == UInt8(ascii: "@")
      let bare = isFile || isLink ? Array(name.dropLast()) : name
      return zone.child(bare, isDirectory: !isFile && !isLink, isLink: isLink, of: owner)
    }
  }

  @Test(arguments: [
    ("Data", StorageZone.home), ("Data/Documents", .part(.documents)),
    ("Data/Documents/Library/Caches", .part(.documents)), ("Data/tmp/Documents", .part(.tmp)),
    ("Data/Library/Caches/a/b", .part(.caches)), ("Data/Library/Preferences/x.", .part(.data)),
    ("Data/Library", .library), ("Data/Library/Application Support", .support),
    ("Data/.config/x", .part(.data)), ("Data/Editor.app@", .part(.data)),
    (".com.apple.mobile_container_manager.metadata.plist.", .part(.data)),
    // What is no directory is none of the standard ones.
    ("Data/Documents.", .advised(.misplaced)), ("Data.", .advised(.misplaced)),
    ("Data/Library/Caches.", .advised(.misplaced)),
    ("Other/Data/Documents", .advised(.misplaced)), ("Data/Stuff/x/y", .advised(.misplaced)),
    ("Data/Library/file.", .advised(.misplaced)), ("Data/Library/Saved/x.", .part(.data)),
    ("Data/Library/Application Support/com.example.Editor/x", .part(.data)),
    ("Data/Library/Application Support/COM.EXAMPLE.editor", .part(.data)),
    ("Data/Library/Application Support/example", .part(.data)),
    ("Data/Library/Application Support/com.example", .part(.data)),
    ("Data/Library/Application Support/my editor", .part(.data)),
    ("Data/Library/Application Support/com", .advised(.unnamedSupport)),
    ("Data/Library/Application Support/com.example.Editor.", .advised(.unnamedSupport)),
    ("Data/Library/Application Support/db/x", .advised(.unnamedSupport)),
  ])
  func everyPlaceCountsAsOnePart(path: String, zone expected: StorageZone) {
    #expect(zone(path) == expected)
  }

  /// What is advised about is data all the same, and what is in a directory of a part is of that part.
  @Test func partsAreKnown() {
    #expect(StorageZone.advised(.misplaced).part == .data && StorageZone.home.part == .data)
    #expect(zone("Data/Documents").part == .documents && zone("Data/tmp").part == .tmp)
    #expect(zone("Data/tmp").isPurged && zone("Data/Library/Caches").isPurged)
    #expect(!zone("Data/Library").isPurged && !zone("Data/Documents").isPurged)
  }

  @Test(arguments: [
    ("film.mp4", true), ("FILM.MOV", true), ("a.b.flac", true), (".mp3", true), ("mp4", false),
    ("film.mp4.part", false), ("notes.txt", false), ("x.", false), ("", false),
  ])
  func mediaAreKnownByTheirNames(name: String, isMedia: Bool) {
    #expect(StorageAdvice.isMedia(Array(name.utf8)) == isMedia)
    #expect(!StorageAdvice.isMedia([0xff, UInt8(ascii: "."), 0xff, 0xfe]))
  }

  @Test(arguments: [
    (ran: Int64?.some(0), installed: Int64(0), has: true, unused: true),
    (1000, 0, true, false), (0, 1000, true, false),
    // Whoever has a container has used it, only nobody knows when.
    (nil, 0, true, false), (nil, 0, false, true), (nil, 1000, false, false),
    (.min, .min, true, true), (.max, 0, true, false),
  ])
  func appsThatNobodyUsesAreTold(ran: Int64?, installed: Int64, has: Bool, unused: Bool) {
    let now = StorageAdvice.unusedSeconds + 1
    #expect(
      StorageAdvice.isUnused(lastRun: ran, installed: installed, hasContainer: has, now: now) == unused)
    #expect(!StorageAdvice.isUnused(lastRun: .min, installed: .min, hasContainer: true, now: .min))
  }

  @Test func adviceHasFewExamplesAndNoLongOnes() {
    var advice = StorageAdvice(.misplaced)
    for _ in 0..<10 {
      advice.add(.max) { [Array("d".utf8), [0xff], Array(repeating: UInt8(ascii: "x"), count: 5000)] }
    }
    #expect(advice.count == 10 && advice.bytes == .max)
    #expect(advice.examples.count == StorageAdvice.mostExamples)
    #expect(advice.examples.allSatisfy { $0.unicodeScalars.count == StorageAdvice.longestExample + 1 })
  }

  private static let gibibyte: Int64 = 1 << 30

  @Test(arguments: [
    // On a disk of 100 GiB, 4 GiB are to stay free.
    (free: Int64(10), purgeable: Int64(5), rule: PurgeRule.usual, important: Int64(15), other: Int64(11)),
    (1, 1, .usual, 2, 0), (10, 5, .never, 10, 6),
    (10, 5, .below(.percent(5), until: .percent(12)), 15, 3),
    (10, 5, .below(.bytes(1), until: .bytes(2 * gibibyte)), 15, 13),
    // There is never more than the disk has.
    (99, 50, .usual, 100, 96), (-1, -1, .usual, 0, 0), (200, 0, .usual, 100, 96),
  ])
  func spaceIsWhatIsFreeAndCouldBe(
    free: Int64, purgeable: Int64, rule: PurgeRule, important: Int64, other: Int64
  ) {
    let gibibyte = Self.gibibyte
    let space = AvailableSpace(
      DiskSpace(total: 100 * gibibyte, free: free * gibibyte), purgeable: purgeable * gibibyte, rule: rule)
    #expect(space.importantUsage == important * gibibyte && space.opportunisticUsage == other * gibibyte)
    #expect(space.free == min(max(0, free), 100) * gibibyte)
  }

  /// Less than a step of what others have is not told.
  @Test func whatCouldBeFreedIsToldInSteps() {
    let disk = DiskSpace(total: 1 << 40, free: 1 << 30)
    for (purgeable, told) in [
      (AvailableSpace.grain - 1, 0), (AvailableSpace.grain, 1), (2 * AvailableSpace.grain - 1, 1),
    ] {
      let space = AvailableSpace(disk, purgeable: purgeable, rule: .usual)
      #expect(space.importantUsage - space.free == Int64(told) * AvailableSpace.grain)
    }
    #expect(AvailableSpace(DiskSpace(total: .max, free: 0), purgeable: .max, rule: .usual).free == 0)
    #expect(AvailableSpace.grain >= 1 << 20)
  }

  @Test func sizesNeverOverflow() {
    var sizes = StorageSizes()
    for part in StoragePart.allCases { sizes.add(.max, to: part) }
    var sum = sizes
    sum.add(sizes)
    #expect(sum.total == .max && sum[.tmp] == .max)
  }
}
