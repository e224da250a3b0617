// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import TestSupport
internal import Testing

/// A minute of `make stress`: load by fio, stress-ng and a mix of ordinary tools, after which nothing may be
/// left behind.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct QuickStressTests {
  @Test func loadLeavesNothingBehind() throws {
    let repository = Checkout.root
    let result = try Program.run(
      [repository + "/mount-scripts/stress.sh", "--quick"], environment: ["INSULA": Program.insula])
    #expect(result.status == 0, "\(result.output.suffix(2000))\n\(result.errors.suffix(4000))")
  }
}
