// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// For each user a lock on where their grants lead, while that changes.
///
/// Who holds it never waits for the filesystem: others need it to start apps and to take things back.
final class GrantMoves: Sendable {
  private struct State {
    var users: Set<UInt32> = []

    func isFree(_ wanted: Set<UInt32>) -> Bool { users.isDisjoint(with: wanted) }
  }
  private let state = Condition(State())

  /// Lets `body` work with the grants of some users; nobody else does meanwhile.
  func withLock<Result: ~Copyable, Failure: Error>(
    of users: Set<UInt32>, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let hold = hold(users)
    let result = try body()
    hold.end()
    return result
  }

  func withLock<Result: ~Copyable, Failure: Error>(
    of user: UInt32, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try withLock(of: [user], body)
  }

  /// The same if nobody has it, and else nothing.
  func withLockIfFree(of user: UInt32, _ body: () -> Void) {
    LockRank.grantMoves.enter()
    defer { LockRank.grantMoves.leave() }
    guard state.withLock({ $0.users.insert(user).inserted }) else { return }
    body()
    state.change { _ = $0.users.remove(user) }
  }

  /// The same until the end of what this gives.
  func hold(_ users: Set<UInt32>) -> Hold {
    LockRank.grantMoves.enter()
    return Hold(self, users)
  }

  struct Hold: ~Copyable {
    private let moves: GrantMoves
    private(set) var users: Set<UInt32>

    fileprivate init(_ moves: GrantMoves, _ users: Set<UInt32>) {
      self.moves = moves
      self.users = users
      moves.state.wait(until: { $0.isFree(users) }) { $0.users.formUnion(users) }
    }

    /// Holds the locks of all whom `wanted` gives, who may have become more.
    ///
    /// Where somebody has one of them, all are let go for as long as that takes: two who wait for each other
    /// would wait for ever.
    mutating func widen(to wanted: () -> Set<UInt32>) {
      while true {
        let (held, more) = (users, wanted().subtracting(users))
        if more.isEmpty { return }
        let isAtOnce = moves.state.withLock { state in
          guard state.isFree(more) else { return false }
          state.users.formUnion(more)
          return true
        }
        users.formUnion(more)
        if isAtOnce { continue }
        let all = users
        moves.state.change { $0.users.subtract(held) }
        moves.state.wait(until: { $0.isFree(all) }) { $0.users.formUnion(all) }
      }
    }

    consuming func end() {}

    deinit {
      let held = users
      if !held.isEmpty { moves.state.change { $0.users.subtract(held) } }
      LockRank.grantMoves.leave()
    }
  }
}
