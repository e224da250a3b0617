// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import TestSupport
internal import Testing

/// What is killed, aborted or unmounted in the middle of a request leaves nothing hanging.
///
/// `make aborts` does it ten thousand times.
@Suite(.enabled(if: MountedStore.isPossible && Program.isRoot, "aborting a connection needs root"))
struct AbortTests {
  @Test func nothingHangsAndNothingIsLeft() throws {
    let script = Checkout.path("Tests/Kills/aborts.py")
    let result = try Program.run(
      ["/usr/bin/python3", script, "--clients", "160", "--connections", "12"],
      environment: ["INSULA": Program.insula, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"])
    #expect(result.status == 0, "\(result.output)\(result.errors)")
    #expect(result.output.contains("4 connections aborted, 4 connections detached, 4 connections unmounted"))
  }
}
