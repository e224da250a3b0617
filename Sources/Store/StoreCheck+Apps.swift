// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import LinuxIO
internal import Policy

// Whether what the registry says of apps and containers is so.

extension StoreCheck {
  mutating func checkApps() {
    let registry: Registry?
    let apps: [InstalledApp]
    let containers: [ContainerRecord]
    let intents: [NotedIntent]
    do throws(StoreError) {
      registry = try Registry.existing(of: store)
      let problems = try registry?.problems() ?? []
      guard problems.isEmpty else {
        for problem in problems { foundDamage(problem) }
        return
      }
      apps = try registry?.apps() ?? []
      containers = try registry?.containers() ?? []
      intents = try registry?.intents() ?? []
      // Nothing is said of these, but a row that can't be read is damage.
      _ = try registry?.removedContainers()
      _ = try registry?.waitingUpdates()
    } catch {
      guard let (path, problem, advice) = error.findingOfOthers else { return foundDamage(error.reason) }
      return found(.failure, path, problem, advice)
    }
    for app in apps {
      // What is being done to it is ended by the next who writes, if it was stopped.
      guard !intents.contains(where: { $0.intent.isAbout(app) }), !isThere(app, registry) else { continue }
      // A daemon may have removed or moved it since the list was read.
      guard let now = try? registry?.apps(), now.contains(app), !isThere(app, registry) else { continue }
      found(
        .failure, "\(store.path)/tree/\(app.path)", "is missing: the bundle of \(app.identifier)",
        "restore it from a backup, or install the app again")
    }
    checkOwners(of: apps, intents, registry)
    checkHolders(registry)
    for noted in intents { checkInterrupted(noted.intent) }
    for container in containers {
      if container.isMarkedForRemoval {
        checkRemoved(container)
      } else {
        check(container, registry, apps)
      }
    }
    checkUnrecorded(among: Set(containers.map { ExactText($0.path) }))
    checkHeld(registry)
  }

  /// Whether the system domain is signed, as far as that can be told: then nothing is to be added to it.
  var hasSealedSystem: Bool {
    do throws(StoreError) {
      let registry = try Registry.existing(of: store)
      return try registry?.systemVersions().current.root.isEmpty == false
    } catch {
      return true
    }
  }

  private mutating func foundDamage(_ what: String) {
    found(
      .failure, "\(store.path)/state/\(Registry.fileName)", "is damaged: \(what)",
      "restore this file from a backup; the apps and their containers are not affected")
  }

  /// It may also be under way.
  private mutating func checkInterrupted(_ intent: TreeIntent) {
    let doing =
      switch intent.work {
      case .install: "being installed"
      case .update: "being updated"
      case .uninstall: "being removed"
      }
    found(
      .warning, "\(store.path)/tree/\(intent.app.path)",
      "is \(doing): \(intent.app.identifier); or that was interrupted",
      "if it was interrupted, the next mount, install, update or uninstall completes it")
  }

  /// Its app is gone; `insula uninstall` has said why it stays.
  private mutating func checkRemoved(_ container: ContainerRecord) {
    guard status(container.path) != nil else { return }
    found(
      .warning, "\(store.path)/tree/\(container.path)", "is the container of an app that was removed",
      "the next uninstall or update removes it, unless flags protect it")
  }

  /// Of what is in a home that lies elsewhere, or was ejected, nothing is known here.
  private func isThere(_ app: InstalledApp, _ registry: Registry?) -> Bool {
    status(app.path)?.isDirectory == true || Homes.name(in: app.path).map(store.liesElsewhere) == true
      || (try? registry?.isInEjectedHome(app.path)) == true
  }

  /// A container may be missing: it is made when it is needed.
  ///
  /// One that is there is whole.
  private mutating func check(_ container: ContainerRecord, _ registry: Registry?, _ apps: [InstalledApp]) {
    guard status(container.path) != nil else { return }
    let place = "\(store.path)/tree/\(container.path)"
    let complete = { [store] () throws(Errno) in
      guard let registry else { throw .ENOENT }
      do throws(StoreError) {
        try Containers(store, registry).complete(container, apps)
      } catch {
        // Something of somebody's is in the way, and stays there.
        throw .EEXIST
      }
    }
    for directory in ContainerLayout.directories(of: container.kind) {
      let status = status("\(container.path)/\(directory)")
      guard let status else {
        found(
          .warning, "\(place)/\(directory)", "is missing from the container",
          "'insula check --repair' creates it, as does the next use of the app", repair: complete)
        continue
      }
      guard !status.isDirectory else { continue }
      found(
        .failure, "\(place)/\(directory)", "is \(status.kindWords), where the container has a directory",
        "move it away while the store is not mounted; then 'insula check --repair' creates the directory")
    }
    guard container.kind.contentClass != nil else { return }
    let metadata = try? store.tree.withParent(of: "\(container.path)/\(ContainerLayout.metadataName)") {
      (parent, name) throws(Errno) in try parent.contents(of: name, limit: 1 << 16)
    }
    let known = metadata.flatMap { ContainerMetadata($0) }
    guard known?.uuid != container.uuid || known?.identifier != container.identifier.text else { return }
    found(
      .warning, "\(place)/\(ContainerLayout.metadataName)", "does not describe this container",
      "'insula check --repair' writes it again, as does the next use of the app", repair: complete)
  }

  /// Apps in a home are noted for its owner, whose number may have changed since.
  private mutating func checkOwners(of apps: [InstalledApp], _ intents: [NotedIntent], _ registry: Registry?)
  {
    let homes = try? Homes(tree: store.tree, path: store.path, mode: store.description.mode).list()
    let known = (homes ?? []).filter { !$0.isAway }.map { (ExactText($0.name), $0.uid) }
    let owners = Dictionary(known) { first, _ in first }
    for app in apps {
      guard let user = app.user, let home = Homes.name(in: app.path), let owner = owners[ExactText(home)],
        owner != user, !intents.contains(where: { $0.intent.isAbout(app) }), isThere(app, registry)
      else { continue }
      found(
        .failure, "\(store.path)/tree/\(app.path)",
        "is noted as an app of uid \(user), but the home is of uid \(owner), who can't start it",
        "'insula check --repair' gives it to the owner of the home, unless the owner has another copy"
      ) { [store] () throws(Errno) in
        do throws(StoreError) {
          guard let registry else { throw StoreError.noApp(identifier: "") }
          // Accounts may have exchanged their numbers.
          try store.followNumbers(in: registry)
          if try registry.apps().contains(where: { $0.path.hasSameBytes(as: app.path) && $0.user == owner }) {
            return
          }
          guard try registry.give(app, to: owner) else { throw StoreError.noApp(identifier: "") }
        } catch {
          throw .EEXIST
        }
      }
    }
  }

  /// What users have decided is theirs, whatever numbers and logins they have by now, as far as that is
  /// known.
  private mutating func checkHolders(_ registry: Registry?) {
    guard let registry, let changes = try? store.numberChanges(in: registry), !changes.isEmpty else { return }
    let holders = (try? registry.holders()) ?? [:]
    let numbers = changes.former.union(changes.moves.filter { !$0.value.isProven }.keys)
    for user in numbers.sorted() {
      let name = holders[user] ?? "an account that nobody knows"
      found(
        .warning, "\(store.path)/state/\(Registry.fileName)",
        "has what was decided for uid \(user) by \(name), and nothing says who that is now",
        "the next mount forgets consents, grants and chosen apps; refusals stay. If it is the same person, "
          + "give the account its former name and number before that")
    }
  }

  /// What lies where containers do, and is none.
  private mutating func checkUnrecorded(among known: Set<ExactText>) {
    guard let homes = try? Homes(tree: store.tree, path: store.path, mode: store.description.mode).list()
    else { return }
    for home in homes {
      for kind in ContainerKind.allCases {
        let place = "Users/\(home.name)/\(ContainerLayout.directory(of: kind))"
        for name in names(in: place) where name.hasPrefix(".") && name.includes(".left-") {
          found(
            .warning, "\(store.path)/tree/\(place)/\(name)", "is a remainder of a container that was removed",
            "check its contents; remove it with 'rm -r' if its flags and owners allow it")
        }
        for name in names(in: place) where Workshop.ownPrefixes.contains(where: { name.hasPrefix($0) }) {
          found(
            .warning, "\(store.path)/tree/\(place)/\(name)",
            "is a copy that 'insula import' or 'insula deliver' is making, or could not complete",
            "the next one into this home removes what is left over; so does 'rm -r'")
        }
        for name in names(in: place)
        where !name.hasPrefix(".") && !known.contains(ExactText("\(place)/\(name)")) {
          found(
            .warning, "\(store.path)/tree/\(place)/\(name)", "is not a container that insula created",
            "it can't be moved while the store is mounted; "
              + "unmount the store, and move it to its owner's other files"
          )
        }
      }
    }
  }

  private func status(_ path: String) -> FileStatus? { try? store.tree.status(at: path) }

  private func names(in path: String) -> [String] {
    guard let directory = try? store.tree.openDirectory(at: path), let entries = try? directory.fd.entries()
    else { return [] }
    return entries.map { String(decoding: $0.name, as: UTF8.self) }
  }
}

extension StoreError {
  /// What is wrong, without what is said of it elsewhere.
  fileprivate var reason: String {
    switch self {
    case .registryDamaged(_, let what): what
    case .registryNewer(_, let found, let known): "it has version \(found), and \(known) is the newest known"
    default: description
    }
  }
}
