// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Store
internal import Volume

/// The grants that a worker which begins has not taken over yet, by their users.
///
/// For that it looks along their paths, where a disk may not answer, or somebody may hold a directory. So
/// each user's are looked at by a thread of their own, and nobody waits for long. What is not looked at yet
/// gives nothing.
final class UnloadedGrants: Sendable {
  private struct State {
    var numbers: [UInt32: Set<Int64>] = [:]
    /// Whether others than those who load them may change grants.
    var isServing = false
  }
  private let state = Condition(State())

  private static let patienceMilliseconds = 2000

  /// Has `load` load each user's; returns when they are all there, or after some time.
  func begin(
    _ records: [GrantRecord],
    _ load: @escaping @Sendable (_ records: [GrantRecord], _ user: UInt32) -> Void
  ) {
    let users = Dictionary(grouping: records, by: \.user)
    state.withLock { $0.numbers = users.mapValues { Set($0.map(\.id)) } }
    for (user, records) in users {
      let body = { @Sendable [self] in
        load(records, user)
        state.change { $0.numbers[user] = nil }
      }
      if let thread = try? JoinableThread(name: "grants", body) { thread.detach() } else { body() }
    }
    wait(for: nil)
    let late = state.withLock { state in
      state.isServing = true
      return state.numbers.keys.inOrder(by: <)
    }
    for user in late {
      DaemonLog.write(
        "what apps of uid \(user) were granted is not all found yet: a disk does not answer, or somebody "
          + "holds a directory; the apps have the rest")
    }
  }

  /// Waits for a user's, or for everybody's, but not for long.
  func wait(for user: UInt32?) {
    _ = state.wait(milliseconds: Self.patienceMilliseconds) { state in
      user.map { state.numbers[$0] == nil } ?? state.numbers.isEmpty
    }
  }

  /// Whether somebody may have changed what they are since they were read.
  var areLate: Bool { state.withLock { $0.isServing } }

  func numbers(of user: UInt32) -> Set<Int64> { state.withLock { $0.numbers[user] ?? [] } }

  /// Whether one is to be loaded.
  func has(_ number: Int64, of user: UInt32) -> Bool {
    state.withLock { $0.numbers[user]?.contains(number) == true }
  }

  /// They are taken back before they are loaded.
  func remove(_ numbers: some Sequence<Int64>, of user: UInt32) {
    state.withLock { $0.numbers[user]?.subtract(numbers) }
  }
}

extension GrantService {
  /// Takes over what was granted.
  func load(_ records: [GrantRecord]) {
    unloaded.begin(records) { [self] records, user in
      volume.loadGrants(records) { [unloaded] in unloaded.has($0, of: user) }
      if unloaded.areLate { settle(records.map(\.id)) }
    }
  }

  /// Brings grants in line with the registry, which others may have changed while these were not loaded.
  func settle(_ numbers: [Int64]) {
    guard let registry = try? registry(false), let known = try? registry.grants(among: Set(numbers)) else {
      return
    }
    let teams = Dictionary(known.map { ($0.id, $0.team) }) { $1 }
    let there = volume.granted(numbers)
    volume.revokeGrants(there.filter { teams[$0.id] == nil }.map(\.id))
    let moved = Set(there.filter { teams[$0.id] != $0.team }.map(\.id))
    volume.changeTeams(of: teams.filter { moved.contains($0.key) })
    tell(volume.apps(ofGrants: numbers))
  }
}
