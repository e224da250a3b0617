// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Thousands who wait for one lock cost no more when they go than when they came.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct WaitingTests {
  private static let count = 2500

  @Test func thousandsWhoWaitAreEndedAtOnce() throws {
    let mounted = try MountedStore.mounted()
    let daemon = try #require(try mounted.daemon())
    let path = mounted.path("Users/Shared/locked")
    let sign = mounted.temporary.appending("sign")
    let script = Checkout.path("Tests/Fixtures/waiting-for-a-lock.py")
    let thread = try JoinableThread(name: "waiting") {
      _ = try? Program.run(["python3", script, path, "\(Self.count)", sign])
    }
    #expect(try eventually { try mounted.count("locks") == Self.count + 1 })
    let before = try #require(processorSeconds(of: daemon))
    _ = try mounted.temporary.write("", to: "sign")
    thread.join()
    #expect(try eventually { try mounted.count("locks") == 0 })
    // When each had the whole queue gone through, it took more than ten of the processor's.
    #expect(try #require(processorSeconds(of: daemon)) - before < 4)
  }
}
