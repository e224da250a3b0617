// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Testing
@testable internal import Volume

/// The numbers that programs see of objects on volumes.
struct ObjectNumberTests {
  /// Programs take a number above 2^63 for a negative one, or none.
  @Test func numbersOfVolumesFitIntoASignedNumber() {
    var seen: Set<UInt64> = []
    let inodes = Array(UInt64(0)...200) + [1 << 32, 1 << 47, 1 << 63, UInt64.max, UInt64(Int64.max)]
    for device in UInt32(1)...300 {
      for inode in inodes {
        let shown = ObjectNumber(inode: inode, device: device).shownBesideOthers
        #expect(shown > 0 && shown <= UInt64(Int64.max), "\(inode) on \(device): \(shown)")
        if inode > 1, inode <= 200 { seen.insert(shown) }
      }
    }
    // Different devices hardly ever share one: 15 bits tell them apart.
    #expect(seen.count > 199 * 290, "\(seen.count)")
  }
}
