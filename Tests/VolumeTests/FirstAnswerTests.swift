// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Testing
internal import Volume

/// A view begins in two steps: it has agreed with the kernel, and then the kernel has been told so.
struct FirstAnswerTests {
  /// The kernel passes nothing through before it has its answer.
  ///
  /// A store that is asked for that too early would be taken for one whose files can't be passed through, for
  /// as long as it is mounted.
  @Test func whoWaitsForTheBeginningWaitsForTheAnswer() throws {
    let tree = try Tree(passthrough: true)
    let view = try View(tree.volume)
    view.started(RecordingConnection(passthrough: true, canWithdraw: true))
    #expect(!view.waitUntilStarted(milliseconds: 0))
    view.began(by: [])
    #expect(view.waitUntilStarted(milliseconds: 0))
    view.ended()
  }
}
