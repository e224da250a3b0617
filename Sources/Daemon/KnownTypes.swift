// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Policy
internal import Store
internal import Synchronization

/// The types that each user's files may have: read when they are first asked for, and again when apps have
/// changed.
final class KnownTypes: Sendable {
  private struct State {
    var version = -1
    var machine: TypeTable?
    /// With what a user's own apps say.
    var users: [UInt32: TypeTable] = [:]
  }

  /// Users whose own apps are remembered at a time.
  private static let mostUsers = 64

  private let registry: GrantService.RegistrySource
  private let state = Mutex(State())
  private let globs = Mutex<MIMEGlobs?>(nil)

  init(_ registry: @escaping GrantService.RegistrySource) { self.registry = registry }

  func table(for user: UInt32) -> TypeTable {
    let registry = (try? registry(false)) ?? nil
    let globs = globs.withLock { known in
      if let known { return known }
      let read = MIMEGlobs.ofMachine()
      known = read
      return read
    }
    let version = registry?.typesVersion ?? 0
    return state.withLock { state in
      if state.version != version {
        state = State()
        state.version = version
      }
      if let known = state.users[user] { return known }
      let machine = state.machine ?? Self.table(over: .base.with(globs), registry, nil)
      state.machine = machine
      if state.users.count >= Self.mostUsers { state.users = [:] }
      let table = Self.table(over: machine, registry, user)
      state.users[user] = table
      return table
    }
  }

  /// With what the machine's apps say, or a user's own; what can't be read says nothing.
  private static func table(over table: TypeTable, _ registry: Registry?, _ user: UInt32?) -> TypeTable {
    guard let apps = try? registry?.documents(of: user), !apps.isEmpty else { return table }
    return table.adding(TypeLayer(apps.map { AppDeclarations(text: $0.declarations) }, over: table))
  }
}
