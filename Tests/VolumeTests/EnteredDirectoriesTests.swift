// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing
@testable internal import Volume

struct EnteredDirectoriesTests {
  @Test func latestEntriesAreKnownAsLongAsTheyMatter() {
    var entries = LatestEntries()
    #expect(entries.last(in: 7) == 0 && entries.threads(in: 7) == [])
    let before = monotonicNanoseconds()
    entries.add(in: 7, by: 100)
    entries.add(in: 8, by: 101)
    #expect(entries.last(in: 7) >= before && entries.threads(in: 7) == [100])
    #expect(entries.last(in: 9) == 0 && entries.threads(in: 9) == [])
    usleep(UInt32(LatestEntries.nanoseconds / 1000) + 1000)
    #expect(entries.threads(in: 7) == [] && entries.last(in: 7) >= before)
    entries.add(in: 7, by: 100)
    #expect(!entries.isBusy(7))
    for _ in 0..<10 { entries.add(in: 7, by: 102) }
    #expect(entries.isBusy(7) && !entries.isBusy(8))
    // What has been pushed out counts as just now.
    for thread in 0..<200 { entries.add(in: 8, by: Int32(thread)) }
    #expect(entries.last(in: 7) > before)
    usleep(UInt32(LatestEntries.nanoseconds / 1000) + 1000)
    #expect(entries.threads(in: 7) == [])
  }

  @Test func whereRefusalsAreAlwaysUnderWayADirectoryIsHeld() {
    var refusalRates = RefusalRates()
    func isHeld(_ directory: UInt32, times: Int = 1, holdsEntered: Bool = true) -> Bool {
      (0..<times).map { _ in refusalRates.refused(in: directory, holdsEntered: holdsEntered) }.contains(true)
    }
    let atFirst = isHeld(7)
    refusalRates.found(in: 7)
    let onceFound = isHeld(7, times: 1000)
    #expect(!atFirst && !onceFound)
    refusalRates.found(in: 7)
    let (afterMany, elsewhere) = (isHeld(7), isHeld(8))
    #expect(afterMany && !elsewhere)
    // Where nobody has ever been, people may look at what is in a directory as often as they like.
    _ = isHeld(9, times: 1000, holdsEntered: false)
    refusalRates.found(in: 9)
    let neverEntered = isHeld(9, holdsEntered: false)
    #expect(!neverEntered)
  }

  /// However often someone is refused, the daemon looks at all processes but now and then.
  @Test func looksAreLimited() {
    let scanner = WorkingDirectoryScanner()
    var looks = 0
    while looks < 10_000, scanner.scan(on: 1, for: 54321) != nil { looks += 1 }
    #expect(looks < 10_000)
  }
}
