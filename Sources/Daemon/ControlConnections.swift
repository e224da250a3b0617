// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// The connections of the control socket, by user.
///
/// A user who exceeds their share loses one of their own connections: the one that was silent for longest.
/// Root and the daemon's owner have a reserve that nobody else can take. Those that read for apps are not
/// counted, and are not taken away either: each has the share of its app's view, and ends with that view.
package struct ControlConnections {
  /// How many connections there may be.
  package struct Limits: Sendable {
    package var ofOneUser = 64
    package var ofAll = 512
    /// Kept for root and the daemon's owner.
    package var reserve = 64
    /// How much of what they send may be kept of all that read for apps of one user, in bytes.
    package var ofReading = 4 << 20

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
    guard !connection.isReader else { return readsTooMuch(connection) ? remove(connection) : nil }
    if !caller.isPrivileged { unprivileged += 1 }
    if let line = lines[caller.account], Self.counted(line) > limits.ofOneUser {
      return removeSilent(of: caller.account)
    }
    guard !caller.isPrivileged, unprivileged > limits.ofAll - limits.reserve else { return nil }
    return removeFromLargest()
  }

  @discardableResult
  mutating func remove(_ connection: ControlConnection) -> ControlConnection {
    removeAll(of: connection.caller.account) { $0 === connection }
    return connection
  }

  /// Removes all that are over, however many.
  mutating func removeAll(where isOver: (ControlConnection) -> Bool) {
    for user in lines.keys { removeAll(of: user, where: isOver) }
  }

  private mutating func removeAll(of user: UInt32, where isOver: (ControlConnection) -> Bool) {
    guard let line = lines[user] else { return }
    let left = line.filter { !isOver($0) }
    guard left.count < line.count else { return }
    lines[user] = left.isEmpty ? nil : left
    if line.first?.caller.isPrivileged == false { unprivileged -= Self.counted(line) - Self.counted(left) }
  }

  private static func counted(_ line: [ControlConnection]) -> Int { line.count { !$0.isReader } }

  /// Whether all that read for apps of a user have sent too much that is no whole request yet.
  private func readsTooMuch(_ connection: ControlConnection) -> Bool {
    guard connection.held > ControlLine.requestLimit else { return false }
    let readers = (lines[connection.caller.account] ?? []).filter(\.isReader)
    return readers.reduce(0) { $0 + $1.held } > limits.ofReading
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
