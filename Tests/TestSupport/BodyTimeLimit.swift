// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
package import Testing

/// The longest that a test may take from its first line to its last.
///
/// The library's own `timeLimit` begins before the body has a thread to run on. Our tests block their
/// threads, so it counted the tests that were waited for: one slow test failed others.
package struct BodyTimeLimit: TestTrait, SuiteTrait, TestScoping {
  fileprivate let seconds: UInt64

  package var isRecursive: Bool { true }

  package func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    let began = monotonicNanoseconds()
    try await function()
    let took = (monotonicNanoseconds() - began) / 1_000_000_000
    if took >= seconds { Issue.record("it took \(took) s, and may take \(seconds) s") }
  }
}

extension Trait where Self == BodyTimeLimit {
  package static func mayTake(seconds: UInt64) -> Self { Self(seconds: seconds) }
}
