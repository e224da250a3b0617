// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import TestSupport
internal import Testing

/// What fails a test that takes too long.
@Suite struct BodyTimeLimitTests {
  @Test func whoTakesLongerFails() async throws {
    let test = try #require(Test.current)
    await withKnownIssue {
      try await BodyTimeLimit.mayTake(seconds: 0).provideScope(for: test, testCase: nil) {}
    }
    try await BodyTimeLimit.mayTake(seconds: 100).provideScope(for: test, testCase: nil) {}
  }
}
