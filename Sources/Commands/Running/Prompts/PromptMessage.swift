// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Glibc
internal import JSON
internal import LinuxIO

/// What `insula run` and the process that keeps the person's terminal for it say to each other about
/// questions of the app's.
enum PromptMessage: Codable, Equatable {
  /// To the terminal: ask this; the tree is mounted there, and the person is that user.
  case ask(AgentQuestion, mountPoint: String, user: UInt32)
  /// To the terminal: there is nothing to answer any more.
  case takenBack
  /// To the terminal: this became of the answer.
  case outcome(TerminalDialog.Outcome)
  /// From the terminal.
  case answer(Int64, AgentAnswer)

  private static let limit = 1 << 17

  /// False if the other end has gone, or does not take it.
  @discardableResult
  func send(to end: FD) -> Bool {
    guard let bytes = try? JSONText.encode(self), bytes.count <= Self.limit else { return false }
    return Glibc.send(end.raw, bytes, bytes.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)) == bytes.count
  }

  /// Takes the next one; nil when the other end has gone.
  static func receive(from end: FD) -> PromptMessage? {
    var bytes = [UInt8](repeating: 0, count: limit)
    guard let count = try? retrying({ recv(end.raw, &bytes, bytes.count, 0) }), count > 0 else { return nil }
    return try? JSONText.decode(PromptMessage.self, from: Array(bytes.prefix(count)))
  }
}
