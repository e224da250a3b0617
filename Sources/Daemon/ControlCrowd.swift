// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// The connections of the control socket, by user.
///
/// A user has a share of them, and whoever connects beyond it loses one of their own: the one that was silent
/// for longest. Root and the daemon's owner have a reserve that nobody else can take.
package struct ControlCrowd {
  /// How many connections there may be.
  package struct Limits: Sendable {
    package var ofOneUser = 64
    package var ofAll = 512
    /// Kept for root and the daemon's owner.
    package var reserve = 64

    package init() {}
  }

  private let limits: Limits
  /// Of each user, longest silent first.
  private var lines: [UInt32: [ControlConnection]] = [:]
  /// How many are neither root's nor the owner's.
  private var strangers = 0

  init(_ limits: Limits) { self.limits = limits }

  var isEmpty: Bool { lines.isEmpty }
  var all: [ControlConnection] { lines.values.flatMap { $0 } }
  /// Whether someone has sent a request that was not looked at yet.
  var hasRequests: Bool { lines.values.contains { $0.contains(where: \.hasRequest) } }

  /// Of each user the one whose turn it is, of those that have something to say.
  func turns(_ isReady: (ControlConnection) -> Bool) -> [ControlConnection] {
    lines.values.compactMap { $0.first { $0.hasRequest || isReady($0) } }
  }

  /// Takes a connection in, as the one that was active last; returns the one that must go for it.
  mutating func add(_ connection: ControlConnection) -> ControlConnection? {
    let peer = connection.peer
    lines[peer.account, default: []].append(connection)
    if !peer.isMaster { strangers += 1 }
    if let count = lines[peer.account]?.count, count > limits.ofOneUser {
      return removeSilent(of: peer.account)
    }
    guard !peer.isMaster, strangers > limits.ofAll - limits.reserve else { return nil }
    return removeFromLargest()
  }

  mutating func remove(_ connection: ControlConnection) {
    let user = connection.peer.account
    guard let index = lines[user]?.firstIndex(where: { $0 === connection }) else { return }
    lines[user]?.remove(at: index)
    if lines[user]?.isEmpty == true { lines[user] = nil }
    if !connection.peer.isMaster { strangers -= 1 }
  }

  /// Takes one connection from the user who has the most; root's are left alone.
  mutating func removeFromLargest() -> ControlConnection? {
    let others = lines.values.filter { $0.first?.peer.isMaster == false }
    let most = others.map(\.count).max()
    let oldest = others.filter { $0.count == most }.compactMap(\.first).min { $0.activity < $1.activity }
    guard let oldest else { return nil }
    remove(oldest)
    return oldest
  }

  private mutating func removeSilent(of user: UInt32) -> ControlConnection? {
    guard let first = lines[user]?.first else { return nil }
    remove(first)
    return first
  }
}
