// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// The connections of the control socket, by user.
///
/// A user who exceeds their share loses one of their own connections: the one that was silent for longest.
/// Root and the daemon's owner have a reserve that nobody else can take. Those that read for apps, one for
/// each that runs, are counted nowhere, and are not taken away either: they are silent for as long as apps
/// want nothing.
package struct ControlConnections {
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
  private var unprivileged = 0

  init(_ limits: Limits) { self.limits = limits }

  var isEmpty: Bool { lines.isEmpty }
  var all: [ControlConnection] { lines.values.flatMap { $0 } }
  /// Whether someone has sent a request that was not looked at yet.
  var hasRequests: Bool { lines.values.contains { $0.contains(where: \.hasRequest) } }

  /// For each user, the next connection that has something to read.
  func turns(_ isReady: (ControlConnection) -> Bool) -> [ControlConnection] {
    lines.values.compactMap { $0.first { $0.hasRequest || isReady($0) } }
  }

  /// Adds a connection as the most recently active one; returns the one that must be closed for it.
  mutating func add(_ connection: ControlConnection) -> ControlConnection? {
    let caller = connection.caller
    lines[caller.account, default: []].append(connection)
    guard !connection.isReader else { return nil }
    if !caller.isPrivileged { unprivileged += 1 }
    if let count = lines[caller.account]?.count(where: { !$0.isReader }), count > limits.ofOneUser {
      return removeSilent(of: caller.account)
    }
    guard !caller.isPrivileged, unprivileged > limits.ofAll - limits.reserve else { return nil }
    return removeFromLargest()
  }

  mutating func remove(_ connection: ControlConnection) {
    let user = connection.caller.account
    guard let index = lines[user]?.firstIndex(where: { $0 === connection }) else { return }
    lines[user]?.remove(at: index)
    if lines[user]?.isEmpty == true { lines[user] = nil }
    if !connection.caller.isPrivileged, !connection.isReader { unprivileged -= 1 }
  }

  /// Takes one connection from the user who has the most; root's are left alone.
  mutating func removeFromLargest() -> ControlConnection? {
    let others = lines.values.filter { $0.first?.caller.isPrivileged == false }.map { line in
      line.filter { !$0.isReader }
    }
    let most = others.map(\.count).max()
    let oldest = others.filter { $0.count == most }.compactMap(\.first).min { $0.activity < $1.activity }
    guard let oldest else { return nil }
    remove(oldest)
    return oldest
  }

  private mutating func removeSilent(of user: UInt32) -> ControlConnection? {
    guard let first = lines[user]?.first(where: { !$0.isReader }) else { return nil }
    remove(first)
    return first
  }
}
