// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Glibc
internal import LinuxIO

/// Has the log say how an app has ended, which only the process knows that has waited for it.
struct EndingLog {
  private let address: ControlAddress

  init(_ address: ControlAddress) { self.address = address }

  /// A daemon that does not answer keeps nobody from going for longer.
  private static let milliseconds: Int32 = 2000
  /// While others of the same user are before us.
  private static let turns = 100
  private static let pause = 10

  /// Tells the daemon; where that can't be done, the log says that nobody knows.
  ///
  /// If it was the daemon that has ended the app, the person is told why.
  func tell(_ ending: AppEnding, _ console: Console) {
    let answer = try? address.connect().askInTurn(
      .ended(ending), milliseconds: Self.milliseconds, turns: Self.turns, pauseMilliseconds: Self.pause)
    if case .endedBecause(let sentence)? = answer?.reply { console.note(sentence) }
  }
}
