// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Policy
internal import Store
internal import Synchronization

/// The types that each user's files may have, as that user or one of their apps may know them: read when
/// somebody asks, and again when apps have changed.
///
/// Whoever asks first after a change reads and builds, without a lock; who asks meanwhile is told what was
/// known before. What other users have for themselves changes nothing of this.
final class KnownTypes: Sendable {
  /// Who asks; with no user, what the machine's apps say.
  private struct Asker: Hashable {
    var user: UInt32?
    var app: String?
  }

  private struct Known {
    var version: Int
    var table: TypeTable
    /// How much has been declared of it.
    var bytes: Int
  }

  private struct State {
    var machine: Known?
    var users: [UInt32: [Asker: Known]] = [:]
    var building: Set<Asker> = []

    subscript(asker: Asker) -> Known? {
      asker.user.map { users[$0]?[asker] } ?? machine
    }

    mutating func keep(_ known: Known, for asker: Asker) {
      guard let user = asker.user else {
        machine = known
        return
      }
      if users[user] == nil, users.count >= KnownTypes.mostUsers { users = [:] }
      var own = users[user] ?? [:]
      own[asker] = nil
      let bytes = own.values.reduce(known.bytes) { $0 + $1.bytes }
      if bytes > KnownTypes.mostBytes || own.count >= KnownTypes.mostAskers { own = [:] }
      own[asker] = known
      users[user] = own
    }
  }

  /// Users of whom something is remembered at a time, and how much of each: a table takes some times what is
  /// declared of it.
  private static let mostUsers = 64
  private static let mostAskers = 64
  private static let mostBytes = Registry.declarationBytes.own

  private let registry: GrantService.RegistrySource
  private let state = Mutex(State())
  private let globs = Mutex<MIMEGlobs?>(nil)

  init(_ registry: @escaping GrantService.RegistrySource) { self.registry = registry }

  /// What a user may know, or, with an app, what that app may: the base system's types and its own.
  ///
  /// It is not to learn which other apps there are.
  func table(for user: UInt32, in app: AppIdentifier?) -> TypeTable {
    guard let registry = (try? registry(false)) ?? nil else { return base }
    return table(for: Asker(user: user, app: app?.text), registry) {
      guard let app else { return (self.machine(registry), try registry.documents(of: user).declared) }
      return (self.base, try registry.declarations(of: app, for: user).map { [$0] } ?? [])
    }
  }

  private func machine(_ registry: Registry) -> TypeTable {
    table(for: Asker(), registry) { (self.base, try registry.documents(of: nil).declared) }
  }

  private func table(
    for asker: Asker, _ registry: Registry, _ read: () throws -> (TypeTable, [AppDeclarations])
  ) -> TypeTable {
    // Read before what it stands for: what changes meanwhile is read once more.
    let version = registry.typesVersion(for: asker.user)
    let (known, builds) = state.withLock { state in
      let known = state[asker]
      let isNew = known?.version == version
      return (known, !isNew && state.building.insert(asker).inserted)
    }
    if let known, !builds { return known.table }
    defer { if builds { state.withLock { _ = $0.building.remove(asker) } } }
    // What can't be read says nothing.
    guard let (below, apps) = try? read() else { return known?.table ?? base }
    let table = apps.isEmpty ? below : below.adding(TypeLayer(apps, over: below))
    let bytes = apps.reduce(0) { $0 + $1.text.utf8.count }
    if builds { state.withLock { $0.keep(Known(version: version, table: table, bytes: bytes), for: asker) } }
    return table
  }

  /// What is known where there are no apps.
  private var base: TypeTable {
    .base.with(
      globs.withLock { known in
        if let known { return known }
        let read = MIMEGlobs.ofMachine()
        known = read
        return read
      })
  }
}

extension [AppDocuments] {
  fileprivate var declared: [AppDeclarations] { map { AppDeclarations(text: $0.declarations) } }
}
