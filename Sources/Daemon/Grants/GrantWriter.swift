// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Store
internal import Synchronization
internal import Volume

/// Writes down where grants are, so that no rename waits for it.
///
/// What is written is what the volume knows at that moment, one writer at a time: so what was written last is
/// what holds.
final class GrantWriter: Sendable {
  private struct State {
    var changed: Set<Int64> = []
    /// Of those, what was taken back: the next worker must not give it again.
    var revoked: Set<Int64> = []
    var isWriting = false
    var isEnding = false
    var thread: JoinableThread?
  }

  private let volume: Volume
  private let registry: GrantService.RegistrySource
  private let state: Condition<State>
  private let turn = Mutex(())
  private let unrecorded: UnrecordedChanges<Int64>

  /// `kept` has what another worker could not write.
  init(_ volume: Volume, _ kept: KeptState?, _ registry: @escaping GrantService.RegistrySource) {
    self.volume = volume
    self.registry = registry
    unrecorded = UnrecordedChanges(kept, .owedRevocations)
    let left = unrecorded.entries
    state = Condition(State(changed: left, revoked: left))
  }

  /// Has something written, soon.
  func note(_ changed: some Sequence<Int64>) {
    state.withLock { state in
      state.changed.formUnion(changed)
      guard !state.isWriting else { return }
      // It has nothing left to do but to end.
      state.thread.take()?.join()
      state.thread = try? JoinableThread(name: "grants") { [self] in writeAll() }
      state.isWriting = state.thread != nil
    }
  }

  /// What could not be written yet, or is about to be.
  var owed: Set<Int64> { state.withLock { $0.changed } }

  /// Writes at once what could not be written before, and that these were taken back.
  ///
  /// If that fails, all of it is written with whatever is written next, be it by the next worker.
  func writeOwed(and revoked: [Int64] = []) throws(StoreError) {
    let batch = state.withLock { state in
      defer { state.changed = [] }
      return state.changed.union(revoked)
    }
    guard !batch.isEmpty else { return }
    defer { unrecorded.note { state.withLock { $0.revoked } } }
    do throws(StoreError) {
      try write(batch, takenBack: state.withLock { $0.revoked.union(revoked) })
      state.withLock { $0.revoked.subtract(batch) }
    } catch {
      state.withLock { state in
        state.changed.formUnion(batch)
        state.revoked.formUnion(revoked)
      }
      throw error
    }
  }

  /// A user who renames all the time has the disk synchronized no more often than this.
  private static let pauseMilliseconds = 100

  private func writeAll() {
    while goesOn() {
      do throws(StoreError) {
        try writeOwed()
      } catch {
        DaemonLog.write(
          "can't record where granted files are now (\(error)); trying again with the next change")
        state.withLock { $0.isWriting = false }
        return
      }
      _ = state.wait(milliseconds: Self.pauseMilliseconds) { $0.isEnding }
    }
  }

  /// Whether there is more to write; if not, what is noted next needs another thread.
  private func goesOn() -> Bool {
    state.withLock { state in
      state.isWriting = !state.changed.isEmpty
      return state.isWriting
    }
  }

  /// Writes down what has become of some; those that the volume does not know any more are gone, or lie in a
  /// home that was ejected.
  func write(
    _ numbers: some Sequence<Int64> & Sendable, takenBack: Set<Int64> = []
  ) throws(StoreError) {
    try turn.withLock { _ throws(StoreError) in
      guard let registry = try registry(false) else { return }
      let records = volume.granted(numbers)
      let gone = Set(numbers).subtracting(records.map(\.id))
      if !records.isEmpty { try registry.update(records) }
      if !gone.isEmpty { try registry.removeGrants(Array(gone), takenBack: takenBack) }
    }
  }

  /// Returns when all is written that was noted before.
  func finish() {
    state.change { $0.isEnding = true }
    // What is noted while it writes is written by the same thread, which ends when nothing is left.
    while let thread = state.withLock({ $0.thread.take() }) { thread.join() }
    writeAll()
  }
}
