// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO

/// Removes what processes have left that were stopped.
///
/// A user who holds a file of it in the kernel makes whoever removes it wait for as long as they like. So in
/// a process that serves others, nobody waits for that: each thing is removed on a thread of its own, one
/// after the other. One that does not get on is left alone and named, and the rest is removed.
package final class Leftovers: Sendable {
  /// All of this process.
  package static let ofProcess = Leftovers()

  /// Removes what has a name in a directory.
  package typealias Removal = @Sendable (_ directory: FD, _ name: Name) throws(Errno) -> Void

  private struct Key: Hashable, Sendable {
    let device: UInt64
    let directory: UInt64
    let name: [UInt8]
  }
  private struct Item: Sendable {
    let key: Key
    let directory: SharedFD
    let removal: Removal
  }
  private struct State {
    /// Where it is said what stays; nil where whoever asks for a removal waits for it.
    var report: (@Sendable (String) -> Void)?
    var waiting: [Item] = []
    /// What waits, and what is being removed.
    var known: Set<Key> = []
    /// What has been reported, which is said once.
    var reported: Set<Key> = []
    /// Whether a thread begins what waits.
    var isServed = false
  }
  private let state = Condition(State())
  private let turns = KeyedTurns<Key>()
  private let patience: Int

  /// Of more that does not get on, nothing else is begun for now.
  private static let mostRemoved = 32

  /// What takes longer keeps the rest no more.
  package init(patience milliseconds: Int = 10_000) { patience = milliseconds }

  /// From here on this process serves others.
  package func servesOthers(reporting report: @escaping @Sendable (String) -> Void) {
    state.withLock { $0.report = report }
  }

  /// Removes some of what is in a directory; where others are served, only has that begun.
  package func remove(
    _ names: [[UInt8]], from directory: consuming OwnedFD, _ removal: @escaping Removal
  ) throws(Errno) {
    guard !names.isEmpty else { return }
    let status = try directory.fd.statusInMemory()
    let shared = SharedFD(directory)
    let items = names.map { name in
      let key = Key(device: UInt64(status.st_dev), directory: UInt64(status.st_ino), name: name)
      return Item(key: key, directory: shared, removal: removal)
    }
    if begin(items) { return }
    for item in items {
      try turns.with(item.key) { () throws(Errno) in try Self.remove(item) }
    }
  }

  /// False where whoever asks waits.
  private func begin(_ items: [Item]) -> Bool {
    state.withLock { state in
      guard state.report != nil else { return false }
      for item in items where state.known.insert(item.key).inserted { state.waiting.append(item) }
      if !state.isServed, !state.waiting.isEmpty {
        let thread = try? JoinableThread(name: "leftovers") { [self] in removeWaiting() }
        thread?.detach()
        state.isServed = thread != nil
      }
      return true
    }
  }

  private func removeWaiting() {
    while let item = next() {
      let isOver = Condition(false)
      let thread = try? JoinableThread(name: "leftover") { [self] in
        do throws(Errno) { try Self.remove(item) } catch {
          report(item, "can't be removed: \(error.message)")
        }
        _ = state.withLock { $0.known.remove(item.key) }
        isOver.change { $0 = true }
      }
      guard let thread else {
        // The next one who looks tries again.
        _ = state.withLock { $0.known.remove(item.key) }
        continue
      }
      thread.detach()
      guard !isOver.wait(milliseconds: patience, until: { $0 }) else { continue }
      report(item, "is not removed yet: it is large, or somebody holds a file of it; nothing waits for it")
    }
  }

  private func next() -> Item? {
    state.withLock { state in
      let removed = state.known.count - state.waiting.count
      guard !state.waiting.isEmpty, removed < Self.mostRemoved else {
        for item in state.waiting { state.known.remove(item.key) }
        state.waiting = []
        state.isServed = false
        return nil
      }
      return state.waiting.removeFirst()
    }
  }

  private func report(_ item: Item, _ what: String) {
    let report = state.withLock { $0.reported.insert(item.key).inserted ? $0.report : nil }
    let name = String(decoding: item.key.name, as: UTF8.self)
    report?("'\(name)', which an interrupted change has left, \(what)")
  }

  private static func remove(_ item: Item) throws(Errno) {
    do throws(Errno) {
      try item.directory.use { (directory) throws(Errno) in
        try item.key.name.withName { (name) throws(Errno) in try item.removal(directory, name) }
      }
    } catch .ENOENT {
      // Another thread or process was faster.
    }
  }
}
