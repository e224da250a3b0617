// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing
internal import Volume

/// What one view does, all others see when the call has returned.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct CoherenceTests {
  /// How much is done; `make coherence` does it all.
  private static func share(_ name: String, _ short: Int) -> Int {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? short
  }

  /// Two views and the whole tree, against a model.
  @Test(arguments: [false, true])
  func whatOneViewDoesAllOthersSee(rootless: Bool) throws {
    let mounts = try SeveralMounts(3, rootless: rootless)
    let client = try Client()
    #expect(try client.errno("mkdir", mounts.path(0, "work"), "\(0o777)") == 0)
    #expect(try client.errno("chmod", mounts.path(0, "work"), "\(0o777)") == 0)
    let steps = Self.share("INSULA_COHERENCE_STEPS", 4000)
    try client.send(
      ["coherence", "20261120", "\(steps)", rootless ? "no maps" : "maps", mounts.backing("work")]
        + (0..<3).map { mounts.path($0, "work") })
    let answer = try client.answer(milliseconds: Int32(clamping: 60_000 + steps * 20))
    if answer == nil { mounts.abort() }
    #expect(answer?.errno == 0, "\(answer?.words.joined(separator: " ") ?? "it hangs")")
    print(answer?.words.first ?? "")
  }
}
