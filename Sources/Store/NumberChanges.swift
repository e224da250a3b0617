// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
internal import Policy

// Accounts get other numbers and other names, and exchange them (usermod). What lies in a home is the home's
// owner's, whatever number it is noted under; what was decided is the account's that has decided it.
// Everything that is noted for a number follows both here, and nowhere else, before a store is used.
//
// The account that has decided is known by its name, and a name alone proves nothing: the login can be called
// otherwise by now, and somebody else as it was. So refusals follow a name, which can't hurt more than a
// question. What allows something stays with a number, or goes to another one, if the home in the store that
// is called by the name says so; it is forgotten otherwise. A home that is away says nothing.

extension Store {
  /// Has what is noted for users' numbers follow their accounts; with a home, what lies in that one alone.
  ///
  /// Whoever calls it has the store alone, or what it moves is in nobody's memory yet. Interrupted changes of
  /// apps are ended before. It can be stopped, and done again.
  package func followNumbers(
    in registry: Registry, home: String? = nil, _ accounts: LocalAccounts = .users
  ) throws(StoreError) {
    // A user's own store has one user.
    guard description.mode == .system else { return }
    let strays = try strays(in: registry, home)
    let changes = home == nil ? try numberChanges(in: registry, strays, accounts) : NumberChanges()
    // First, since by what is decided the rest is found again. If we are stopped before that follows, it has
    // no proof any more, and is forgotten.
    var left = try give(strays, in: registry)
    left.formUnion(try followRemoved(inHome: home, in: registry, accounts))
    left.formUnion(changes.moves.keys)
    left.formUnion(changes.former)
    // What they did is nobody else's business; each entry says by number whose it is.
    let log = StoreLog(self, accounts)
    log.handOver(left, try registry.holders())
    if changes.isEmpty { return }
    let forgotten = try registry.follow(changes)
    // What this machine notes of volumes says for which number they were added.
    for user in changes.former.union(changes.moves.keys) { try VolumeNotes(of: self).removeAll(of: user) }
    // The log is no reason not to use a store.
    try? log.append(entries(about: forgotten, changes))
  }

  /// What was decided under numbers that other accounts have by now, or accounts of other names.
  func numberChanges(
    in registry: Registry, _ accounts: LocalAccounts = .users
  ) throws(StoreError) -> NumberChanges {
    guard description.mode == .system else { return NumberChanges() }
    return try numberChanges(in: registry, try strays(in: registry, nil), accounts)
  }

  private func numberChanges(
    in registry: Registry, _ strays: [Stray], _ accounts: LocalAccounts
  ) throws(StoreError) -> NumberChanges {
    var changes = NumberChanges()
    let holders = try registry.holders()
    for (user, name) in holders {
      if accounts.id(of: name) != nil {
        guard var move = try registry.changedHolder(of: user, accounts) else { continue }
        move.isProven = strays.contains { proves($0, user, move) }
        changes.moves[user] = move
      } else if try registry.isFormer(name, of: user, accounts) {
        changes.former.insert(user)
      }
    }
    // Who has decided something under a number that another account gets, without that being noted, is no
    // account of this machine's.
    for move in changes.moves.values where holders[move.number] == nil {
      changes.former.insert(move.number)
    }
    return changes
  }

  /// Whether something that was noted for a number lies in the home of its account, and is the account's by
  /// its new number.
  ///
  /// Somebody else's new home of that name has other containers. What describes one is written by us alone,
  /// and is the same in a copy of the store.
  private func proves(_ stray: Stray, _ user: UInt32, _ move: NumberChanges.Move) -> Bool {
    guard case .container(let container) = stray.thing, stray.former == user, stray.owner == move.number,
      stray.home.hasSameBytes(as: move.name)
    else { return false }
    return stray.uuid == container.uuid
  }

  /// To whoever has the decisions that are left.
  private func entries(
    about forgotten: [UInt32: Registry.Forgotten], _ changes: NumberChanges
  ) -> [LogEntry] {
    forgotten.sorted { $0.key < $1.key }.compactMap { user, parts in
      guard parts != Registry.Forgotten() else { return nil }
      let move = changes.moves[user]
      let why = move.map { "the account \($0.name) had uid \(user)" } ?? "another account had uid \(user)"
      return LogEntry(
        .consentReset, user: move?.number ?? user, by: 0, detail: "\(why) and has decided: \(parts.words)",
        time: wallMilliseconds())
    }
  }

  // MARK: What lies in homes

  private enum Thing: Sendable {
    case app(InstalledApp)
    case container(ContainerRecord)
  }

  /// Something in a home that is noted for another number than the owner's.
  private struct Stray {
    let thing: Thing
    let home: String
    let former: UInt32
    let owner: UInt32
    /// As a container says itself.
    var uuid: String?

    /// What can't be there twice for one user.
    var group: String {
      switch thing {
      case .app(let app): "app \(app.identifier.text.lowercased())"
      case .container(let container): "\(container.kind.rawValue) \(container.identifier.text)"
      }
    }
  }

  private func strays(in registry: Registry, _ only: String?) throws(StoreError) -> [Stray] {
    let elsewhere = try registry.ownersOfHomesElsewhere()
    var strays: [Stray] = []
    for home in try Homes(tree: tree, path: path + "/tree", mode: description.mode).owners() {
      if let only, !home.name.hasSameBytes(as: only) { continue }
      // On disks and servers, which may not answer, is looked by those alone who have one of them there.
      let owner = home.owner ?? (only == nil ? nil : elsewhere[Array(home.name.utf8)])
      // A directory of root's is where a disk is mounted that is not there now.
      guard let owner, owner != 0 else { continue }
      strays += try self.strays(inHome: home.name, of: owner, registry)
    }
    return strays
  }

  private func strays(
    inHome name: String, of owner: UInt32, _ registry: Registry
  ) throws(StoreError) -> [Stray] {
    let place = "Users/\(name)"
    let apps = try registry.apps(below: place, notOf: owner)
    let containers = try registry.containers(below: place, notOf: owner)
    // What is noted of a home of that name that was ejected is not here.
    if apps.isEmpty && containers.isEmpty { return [] }
    if try registry.isInEjectedHome(place + "/.") { return [] }
    let intents = try registry.intents()
    let known = apps.filter { app in !intents.contains { $0.intent.isAbout(app) } }
    // Whoever has the home may keep a look into it waiting, and a daemon looks before it serves others: then
    // all stays as it is until the next one looks.
    return LeftThread.value(milliseconds: Self.patienceMilliseconds) { [self] lives in
      strays(among: known, containers, inHome: name, of: owner, lives)
    } ?? []
  }

  private static let patienceMilliseconds = 3000

  private func strays(
    among apps: [InstalledApp], _ containers: [ContainerRecord], inHome name: String, of owner: UInt32,
    _ lives: () -> Void
  ) -> [Stray] {
    var strays: [Stray] = []
    for app in apps {
      lives()
      guard let user = app.user, (try? tree.status(at: app.path))?.isDirectory == true else { continue }
      strays.append(Stray(thing: .app(app), home: name, former: user, owner: owner))
    }
    for container in containers {
      lives()
      guard let status = try? tree.status(at: container.path), status.isDirectory, status.st_uid == owner
      else { continue }
      var stray = Stray(thing: .container(container), home: name, former: container.user, owner: owner)
      if let directory = try? tree.openDirectory(at: container.path),
        let bytes = try? directory.fd.contents(of: ContainerLayout.metadataName, limit: 1 << 16)
      {
        stray.uuid = ContainerMetadata(bytes)?.uuid
      }
      strays.append(stray)
    }
    return strays
  }

  /// Throws if what lies in a home can't be noted for its owner before that is done for another home: the two
  /// accounts have exchanged their numbers, and have the same app.
  package func requireFollowed(home: String, in registry: Registry) throws(StoreError) {
    let strays = try strays(in: registry, nil)
    for stray in strays where stray.home.hasSameBytes(as: home) {
      let other = strays.first { other in
        other.group == stray.group && other.former == stray.owner && !other.home.hasSameBytes(as: home)
      }
      if let other { throw .numberOfOther(user: stray.owner, name: other.home, number: other.owner) }
    }
  }

  /// Notes strays for the owners of their homes, and gives the numbers that have lost something by that.
  ///
  /// Those of one identifier together, since they may make room for each other. Where an owner has another
  /// one in another home, all of that identifier stay as they are.
  private func give(_ strays: [Stray], in registry: Registry) throws(StoreError) -> Set<UInt32> {
    var given: [Stray] = []
    for group in Dictionary(grouping: strays, by: \.group).values {
      var apps: [(app: InstalledApp, user: UInt32)] = []
      var containers: [(container: ContainerRecord, user: UInt32)] = []
      for stray in group {
        switch stray.thing {
        case .app(let app): apps.append((app, stray.owner))
        case .container(let container): containers.append((container, stray.owner))
        }
      }
      if try registry.give(apps), try registry.give(containers) { given += group }
    }
    return Set(given.map(\.former))
  }
}
