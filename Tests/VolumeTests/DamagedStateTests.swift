// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import TestSupport
internal import Testing

/// What a worker leaves, some words of which are damaged: `Tests/Damaged` takes it over in a process of its
/// own each time.
struct DamagedStateTests {
  /// INSULA_DAMAGES says how often; each takes a twentieth of a second in a debug build.
  @Test(.enabled(if: MountedStore.isPossible, "needs /dev/fuse")) func nothingIsTakenForSomethingElse() throws
  {
    let rounds = ProcessInfo.processInfo.environment["INSULA_DAMAGES"] ?? "120"
    let temporary = try TemporaryDirectory()
    let program = URL(fileURLWithPath: Program.insula).deletingLastPathComponent()
      .appendingPathComponent("insula-damaged").path
    let result = try Program.run([program, rounds, "1", temporary.path])
    #expect(result.status == 0, "\(result.errors)")
  }
}
