// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import JSON
internal import LinuxIO
internal import Synchronization

/// Changes that hold and that the registry does not have yet, for the next worker.
///
/// A list is written as a whole before the last one is given up, so a worker that dies leaves one of both. It
/// has a line for every few, each of which can be read by itself: however many one user has, those of others
/// are read.
final class UnrecordedChanges<Entry: Codable & Hashable & Sendable>: Sendable {
  private struct State {
    var entries: Set<Entry> = []
    /// Lists are numbered; the last one counts.
    var number: UInt32 = 0
    /// The list is open for as long as this is there.
    var memory: SharedMemory?
  }
  private let kept: KeptState?
  private let kind: KeptState.Kind
  private let state: Mutex<State>

  /// Reads what another worker has left; without `kept` there is no other worker.
  init(_ kept: KeptState?, _ kind: KeptState.Kind) {
    self.kept = kept
    self.kind = kind
    state = Mutex(kept.flatMap { Self.left(in: $0, kind) } ?? State())
  }

  private static func left(in kept: KeptState, _ kind: KeptState.Kind) -> State? {
    let numbers = kept.all.filter { $0.kind == kind }.map(\.view).inOrder(by: >)
    for number in numbers {
      guard let (bytes, memory) = kept.data(kind, view: number) else { continue }
      let lines = bytes.split(separator: newline).compactMap { line in
        try? JSONText.decode([Entry].self, from: Array(line))
      }
      if lines.isEmpty { continue }
      return State(entries: Set(lines.joined()), number: number, memory: memory)
    }
    // One that can't be read must not be taken for the next one's.
    return numbers.first.map { State(number: $0) }
  }

  private static var newline: UInt8 { UInt8(ascii: "\n") }
  /// Far fewer than make a text that is too long to be read.
  private static var entriesOfLine: Int { 512 }

  /// What the last worker has left, or what was noted last.
  var entries: Set<Entry> { state.withLock { $0.entries } }

  /// Notes what is unrecorded now; `entries` is called with the lock on the list.
  func note(_ entries: () -> Set<Entry>) {
    state.withLock { state in
      let entries = entries()
      guard let kept, entries != state.entries else { return }
      do throws(Errno) {
        try Self.write(entries, kept, kind, &state)
        state.entries = entries
      } catch {
        DaemonLog.write(
          "there is no memory for what could not be recorded (\(error.message)); the process that follows "
            + "this one would not know of it")
      }
    }
  }

  private static func write(
    _ entries: Set<Entry>, _ kept: KeptState, _ kind: KeptState.Kind, _ state: inout State
  ) throws(Errno) {
    var memory: SharedMemory?
    if !entries.isEmpty {
      let all = Array(entries)
      var bytes: [UInt8] = []
      for start in stride(from: 0, to: all.count, by: entriesOfLine) {
        let line = Array(all[start..<min(start + entriesOfLine, all.count)])
        guard let text = try? JSONText.encode(line) else { throw .EINVAL }
        bytes += text + [newline]
      }
      let next = state.number &+ 1
      memory = try kept.keep(bytes, as: kind, view: next)
      state.number = next
    }
    let current = entries.isEmpty ? nil : state.number
    // A number must be forgotten before its descriptor is closed.
    for other in kept.all where other.kind == kind && other.view != current {
      kept.forget(kind, view: other.view)
    }
    // This closes the descriptor of the list before.
    state.memory = memory
  }
}
