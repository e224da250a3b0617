// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO

/// Asks a person, one question at a time.
protocol Asker: AnyObject {
  /// Has something to read when ``look()`` is to be called although nothing is being asked.
  var events: FD? { get }

  /// Looks whether there still is somebody to ask; throws if not.
  func look() throws(CommandFailure)

  func begin(_ question: AgentQuestion) throws(CommandFailure)

  /// Waits for the answer; nil if none is wanted any more.
  func answer(_ watch: TaskWatch) throws(CommandFailure) -> AgentAnswer?

  /// Says what became of an answer; false if the person is asked again.
  func end(_ outcome: TerminalDialog.Outcome, of answer: AgentAnswer) -> Bool

  func takeBack()
}
