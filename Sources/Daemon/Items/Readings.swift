// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Synchronization

// What apps want to be told of what is private, and who reads it for them.
//
//  1. The daemon reads none of it. The process that has started an app does, with that user's rights: it has
//     said so over a connection of its own, and is given what its own app wants and nothing else.
//  2. It is given one reading at a time. Others of the same app wait until that one is answered.
//  3. A reader that goes leaves what it was given to the next one, which is the same process again: it
//     connects once more when the daemon was replaced.
//  4. What has waited for a reader, or for its answer, for too long has failed.
//  5. The one answer that counts is the reader's to what it was given, and only while somebody waits for it.

/// See the rules above.
final class Readings: Sendable {
  private struct Reading {
    let number: Int64
    let view: UInt64
    let task: AgentTask
    weak var call: PromptCall?
    /// In nanoseconds.
    var end: UInt64
    /// Who was given it.
    var reader: UInt64?
  }

  private struct State {
    var last: Int64 = 0
    var lastReader: UInt64 = 0
    /// In the order of their numbers.
    var readings: [Reading] = []
    /// By the number of the view.
    var readers: [UInt64: UInt64] = [:]
    /// Whether somebody looks at the time.
    var isWatched = false

    mutating func forgetGone() { readings.removeAll { $0.call == nil } }

    /// What a reader of a view was given is to be read by the next one.
    mutating func giveBack(of view: UInt64, until end: UInt64) {
      for index in readings.indices where readings[index].view == view {
        readings[index].reader = nil
        readings[index].end = end
      }
    }

    /// Whether one waits for the reader of its view to be done with another one; then only that is late.
    func isBehindAnother(_ reading: Reading) -> Bool {
      reading.reader == nil && readings.contains { $0.view == reading.view && $0.reader != nil }
    }
  }

  private let state = Mutex(State())
  private let patience: Patience
  private let now: @Sendable () -> UInt64

  /// For how long, in nanoseconds, one waits.
  struct Patience {
    var forReader: UInt64 = 10_000_000_000
    var forAnswer: UInt64 = 30_000_000_000
  }

  init(patience: Patience = Patience(), now: @escaping @Sendable () -> UInt64) {
    self.patience = patience
    self.now = now
  }

  /// Adds something to be read; true if nobody looks at the time yet, which is up to the caller then.
  func add(
    _ question: AgentTask.Question, for app: AgentApp, view: UInt64, _ call: PromptCall
  ) -> Bool {
    state.withLock { state in
      state.forgetGone()
      state.last += 1
      state.readings.append(
        Reading(
          number: state.last, view: view,
          task: AgentTask(number: state.last, app: app, question: question), call: call,
          end: now() &+ patience.forReader))
      defer { state.isWatched = true }
      return !state.isWatched
    }
  }

  // MARK: Readers

  /// A new reader of a view, by the number that it has until it leaves; nil if there is one.
  func join(view: UInt64) -> UInt64? {
    state.withLock { state in
      guard state.readers[view] == nil else { return nil }
      state.lastReader += 1
      state.readers[view] = state.lastReader
      return state.lastReader
    }
  }

  /// Gives a reader something to read, if there is something and it has nothing yet.
  func next(for reader: UInt64, view: UInt64) -> AgentTask? {
    state.withLock { state in
      guard state.readers[view] == reader else { return nil }
      state.forgetGone()
      let own = state.readings.indices.filter { state.readings[$0].view == view }
      guard let first = own.first, !own.contains(where: { state.readings[$0].reader != nil }) else {
        return nil
      }
      state.readings[first].reader = reader
      state.readings[first].end = now() &+ patience.forAnswer
      return state.readings[first].task
    }
  }

  /// Whether somebody waits for what a reader was given.
  func isAwaited(_ number: Int64, by reader: UInt64) -> Bool {
    state.withLock { state in
      state.readings.contains { $0.number == number && $0.reader == reader && $0.call != nil }
    }
  }

  /// Who waits for what a reader has answered; nil if nobody does any more, or that was never asked of it.
  func answered(_ number: Int64, by reader: UInt64) -> PromptCall? {
    state.withLock { state in
      let found = state.readings.firstIndex { $0.number == number && $0.reader == reader }
      guard let found else { return nil }
      let reading = state.readings.remove(at: found)
      state.giveBack(of: reading.view, until: now() &+ patience.forReader)
      return reading.call
    }
  }

  func leave(_ reader: UInt64, view: UInt64) {
    state.withLock { state in
      guard state.readers[view] == reader else { return }
      state.readers[view] = nil
      state.giveBack(of: view, until: now() &+ patience.forReader)
    }
  }

  // MARK: The time

  /// Who has waited for too long: for a reader, or for its answer.
  struct Late {
    let call: PromptCall
    let hadReader: Bool
  }

  /// Takes away who has waited for too long.
  ///
  /// Also says in how many milliseconds that is to be asked again; nil if nobody waits, and nobody looks at
  /// the time any more.
  func expire() -> (late: [Late], milliseconds: Int?) {
    state.withLock { state in
      state.forgetGone()
      let now = now()
      let ended = state.readings.filter { $0.end <= now && !state.isBehindAnother($0) }
      let calls = ended.compactMap { reading in
        reading.call.map { Late(call: $0, hadReader: reading.reader != nil) }
      }
      let numbers = Set(ended.map(\.number))
      state.readings.removeAll { numbers.contains($0.number) }
      // Those behind have their time from now on.
      for reading in ended where reading.reader != nil {
        state.giveBack(of: reading.view, until: now &+ patience.forReader)
      }
      guard let next = state.readings.filter({ !state.isBehindAnother($0) }).map(\.end).min() else {
        state.isWatched = false
        return (calls, nil)
      }
      return (calls, Int((next &- now) / 1_000_000) + 1)
    }
  }

  /// Nobody can look at the time.
  func isUnwatched() { state.withLock { $0.isWatched = false } }

  var counts: (readings: Int, readers: Int) { state.withLock { ($0.readings.count, $0.readers.count) } }
}
