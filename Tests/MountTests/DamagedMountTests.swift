// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// The daemon is killed, and some words of what it leaves are damaged before the next one looks at it: see
/// `Fixtures/damaged.py`.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct DamagedMountTests {
  private static let script = Checkout.path("Tests/Fixtures/damaged.py")

  /// INSULA_DAMAGES says how often.
  @Test(arguments: ["", "nopassthrough"]) func mountGoesOnOrIsGone(options: String) throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    let rounds = ProcessInfo.processInfo.environment["INSULA_DAMAGES"] ?? "6"
    let temporary = try TemporaryDirectory(mode: 0o755)
    let result = try Program.run(
      ["/usr/bin/python3", Self.script, Program.insula, options, temporary.path, rounds, "1"],
      environment: ["HOME": temporary.appending("home"), "XDG_RUNTIME_DIR": "", "XDG_DATA_HOME": ""])
    #expect(result.status == 0, "\(result.output)\(result.errors)")
  }
}
