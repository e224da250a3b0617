// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// Brings back a home from a backup: the apps first, then what is in their containers, then the rest.
struct HomeRestore {
  let backup: RestoredBackup
  /// Whose home it was in the backup.
  let name: String
  let access: any StoreAccess
  let choice: Choice

  /// What a person wants of it.
  struct Choice {
    /// Of these apps alone.
    var apps: [AppReference] = []
    var bundles: String?
    var replaces = false
    var withRights = false
  }

  private var context: Context { access.context }
  private var uid: UInt32 { context.uid }

  /// An app's container in the backup, and here.
  private struct Container {
    let kind: ContainerKind
    let identifier: AppIdentifier
    let package: DataPackage
    let target: AppContainer
  }

  func run() throws -> ExitCode {
    let home = try access.home(of: uid)
    let wanted = try wantedApps()
    let missing = try AppRestore(backup: backup, access: access, bundles: choice.bundles)
      .install(wanted, for: uid, home: home.splitAtName.name)
    let present = wanted.filter { app in !missing.contains { app.has($0.identifier) } }
    var failed = missing.map { "\($0.identifier.sanitized): \($0.reason)" }
    let containers = containers(of: present, &failed)
    var places: [String: SharedFD] = [:]
    for app in present { addClouds(of: app, home, &places, &failed) }
    if !choice.replaces {
      let replaced = try restoreRest(of: home, places, isRehearsal: true).replaced
      try ask(files: replaced, containers: containers.filter { try $0.target.hasData }.count)
    }
    let grants = try access.grants(nil, of: uid)

    var count = restore(containers, &failed)
    let rest = try CopyProgress.show("restoring \(home)", context.console) { note in
      try restoreRest(of: home, places, isRehearsal: false, note)
    }
    for omission in rest.omissions { context.console.note("\(omission.path): \(omission.reason)") }
    failed += rest.failures.map { "\($0.path): \($0.reason)" }
    count = count.adding(rest.count)
    failed += keep(grants)
    if choice.withRights { failed += restoreRights(of: present) }
    let apps = containers.filter { $0.kind == .data }.count
    context.console.say(
      "Restored \(DataReport(count: count).words) to \(access.root)/\(home), with the data of "
        + "\(apps) \(apps == 1 ? "app" : "apps").")
    if failed.isEmpty { return .ok }
    context.console.note(
      "This was not restored; run the command again when it can be:", failed.map { "  \($0)" })
    return .failed
  }

  /// Replaces what is in containers, each in one step.
  private func restore(_ containers: [Container], _ failed: inout [String]) -> TreeCopy.Count {
    var count = TreeCopy.Count()
    for container in containers {
      do {
        let report = try CopyProgress.show("restoring \(container.identifier)", context.console) { note in
          try container.target.importData(
            from: container.package, replacing: true, emptiness: .leftOut, progress: note
          ) { try access.replaceData(with: $0) }
        }
        report.tell(context.console)
        count = count.adding(report.count)
      } catch {
        failed.append("\(container.identifier): \(CommandFailure(error).message)")
      }
    }
    return count
  }

  /// Brings back what is in no app's own container.
  private func restoreRest(
    of home: String, _ clouds: [String: SharedFD], isRehearsal: Bool,
    _ note: @escaping (TreeCopy.Count) -> Void = { _ in }
  ) throws -> PlaceRestorer {
    let places = Set(clouds.keys)
    let only = choice.apps.isEmpty ? nil : places
    func isMeant(_ names: [[UInt8]], _ directory: FD) -> Bool {
      let path = names.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
      guard let cloud = clouds[path] else { return true }
      let meant = try? cloud.use { (fd) throws(Errno) in try fd.status() }
      return meant.map { (try? directory.status())?.isSameObject(as: $0) == true } ?? false
    }
    let restorer = PlaceRestorer(.mount, keepingOwners: false, progress: note, isMeant: isMeant) { names in
      Self.step(names, only: only, places)
    }
    let source = try open("Users/\(name)", in: backup.tree.fd, backup.path)
    let root = try context.openDirectory(access.root)
    let target = try open(home, in: root.fd, access.root)
    restorer.restore(source.fd, to: target.fd, isRehearsal: isRehearsal)
    return restorer
  }

  // MARK: What is wanted

  private func wantedApps() throws -> [BackupManifest.App] {
    let all = backup.manifest.apps(seenFromHome: name)
    if choice.apps.isEmpty { return all }
    return try choice.apps.map { wanted in
      let identifier = try wanted.identifier(among: all.map { ($0.identifier, $0.name) })
      guard let found = all.first(where: { AppIdentifier($0.identifier)?.isSame(as: identifier) == true })
      else {
        throw CommandFailure(
          .failed, "the backup has no app '\(wanted.text)'; its apps are:",
          lines: all.map { "  \($0.identifier.sanitized)" })
      }
      return found
    }
  }

  /// The containers that there are in the backup and here: of apps, and of groups that these are in.
  private func containers(of apps: [BackupManifest.App], _ failed: inout [String]) -> [Container] {
    var found: [Container] = []
    for app in apps {
      guard let identifier = AppIdentifier(app.identifier) else { continue }
      let known: AppDescription
      do { known = try access.app(identifier, for: uid) } catch {
        failed.append("\(identifier): \(CommandFailure(error).message)")
        continue
      }
      let groups = known.groups.compactMap { AppIdentifier($0) }
      for (kind, name) in [(ContainerKind.data, identifier)] + groups.map({ (.group, $0) })
      where !found.contains(where: { $0.kind == kind && $0.identifier == name }) {
        do {
          if has(kind, name) {
            try backup.manifest.require(
              kind, name, ofHome: self.name, isFor: known, isNamed: !choice.apps.isEmpty)
          }
          if let container = try container(kind, name, of: known) { found.append(container) }
        } catch {
          failed.append("\(name): \(CommandFailure(error).message)")
        }
      }
    }
    return found
  }

  /// Whether the backup has data of it.
  private func has(_ kind: ContainerKind, _ identifier: AppIdentifier) -> Bool {
    let path = "Users/\(name)/\(ContainerLayout.path(of: identifier, kind))"
    return (try? backup.tree.fd.openDirectory(at: path)) != nil
  }

  /// Nil where the backup has no data of it.
  private func container(
    _ kind: ContainerKind, _ identifier: AppIdentifier, of app: AppDescription
  ) throws -> Container? {
    let path = "Users/\(name)/\(ContainerLayout.path(of: identifier, kind))"
    let directory: OwnedFD
    do throws(Errno) {
      directory = try backup.tree.fd.openDirectory(at: path)
    } catch {
      if error == .ENOENT { return nil }
      throw CommandFailure(error, "can't open \(backup.path.sanitized)/\(path.sanitized): \(error.message)")
    }
    try backup.manifest.require(kind, identifier, ofHome: name, isWhatWasReadFrom: directory.fd)
    if let running = AppIdentifier(app.identifier) { try access.requireEnded(running, for: uid) }
    let package = try DataPackage(
      container: directory.fd, kind, of: identifier, path: "\(backup.path)/\(path)")
    let target =
      try kind == .data
      ? access.container(of: app, for: uid) : access.container(ofGroup: identifier, in: app, for: uid)
    return Container(kind: kind, identifier: identifier, package: package, target: target)
  }

  /// Where an app that is here keeps what goes to iCloud, as far as that was its team's in the backup; open,
  /// so that nothing else is filled if another team's app gets the place meanwhile.
  private func addClouds(
    of app: BackupManifest.App, _ home: String, _ places: inout [String: SharedFD], _ failed: inout [String]
  ) {
    guard let identifier = AppIdentifier(app.identifier), let known = try? access.app(identifier, for: uid)
    else { return }
    for cloud in known.clouds.compactMap({ AppIdentifier($0) }) where has(.cloud, cloud) {
      do {
        try backup.manifest.require(.cloud, cloud, ofHome: name, isFor: known)
        // Nobody else can make it.
        _ = try access.path(of: .cloud(cloud), identifier, for: uid)
        let path = ContainerLayout.path(of: cloud, .cloud)
        let root = try context.openDirectory(access.root)
        let directory = SharedFD(try open("\(home)/\(path)", in: root.fd, access.root))
        guard try BackupTeam(of: access.app(identifier, for: uid)) == BackupTeam(of: known) else {
          throw CommandFailure(.failed, "its app was replaced by another team's meanwhile")
        }
        places[path] = directory
      } catch {
        failed.append("\(cloud): \(CommandFailure(error).message)")
      }
    }
  }

  /// What is done about something in a home; `places` are the containers that may be filled beside those of
  /// apps.
  static func step(_ names: [[UInt8]], only: Set<String>?, _ places: Set<String>) -> PlaceRestorer.Step {
    let path = names.map { String(decoding: $0, as: UTF8.self) }
    let text = path.joined(separator: "/")
    if [ContainerKind.data, .group].contains(where: { ContainerLayout.directory(of: $0) == text }) {
      return .skip
    }
    let clouds = ContainerLayout.directory(of: .cloud)
    if text.utf8.starts(with: "\(clouds)/".utf8) {
      let depth = path.count - 2
      guard places.contains(path.prefix(3).joined(separator: "/")) else { return .skip }
      return depth == 1 || (depth == 2 && path.last == "Documents") ? .fill : .replace
    }
    if text == clouds || text == "Library" { return .fill }
    if only != nil { return .skip }
    // An app comes by an installation alone.
    if path[0] == "Applications", text.hasSuffix(".app") { return .skip }
    if path.last == DisplayName.marker,
      HomeDirectory.all.contains(where: { $0.isLocalized && text == "\($0.path)/\(DisplayName.marker)" })
    {
      return .keep
    }
    if path.count == 2, path[0] == "Library" { return .merge }
    if HomeDirectory.all.contains(where: { $0.path == text }) { return .fill }
    return path.count == 1 ? .merge : .replace
  }

  // MARK: Steps

  private func open(_ path: String, in tree: FD, _ root: String) throws -> OwnedFD {
    do throws(Errno) { return try tree.openDirectory(at: path) } catch {
      throw CommandFailure(error, "can't open \(root.sanitized)/\(path.sanitized): \(error.message)")
    }
  }

  private func ask(files: Int, containers: Int) throws {
    if files + containers == 0 { return }
    let what = [
      containers > 0 ? "the data of \(containers) \(containers == 1 ? "app" : "apps")" : nil,
      files > 0 ? "\(files) \(files == 1 ? "file or folder" : "files and folders")" : nil,
    ].compactMap { $0 }.joined(separator: " and ")
    try Self.ask(context, what)
  }

  /// Asks once, for all that is to come.
  static func askForAll(_ context: Context) throws { try ask(context, "what is there of the same names") }

  /// Throws unless what is there may be replaced.
  static func ask(_ context: Context, _ what: String) throws {
    guard context.hasTerminal else {
      throw CommandFailure(
        .failed, "\(what) would be replaced; nothing was changed; '--replace' replaces that")
    }
    try context.requireAgreement("This replaces \(what). Go on?")
  }

  /// Gives the apps again what they were allowed; what can't be is told.
  private func restoreRights(of apps: [BackupManifest.App]) -> [String] {
    var failed: [String] = []
    // Whose they are is looked at now, and by the daemon once more: another team's may be installed since.
    func team(of identifier: String) throws -> BackupTeam? {
      guard let app = apps.first(where: { $0.has(identifier) }), let known = AppIdentifier(identifier) else {
        return nil
      }
      let there = try access.app(known, for: uid)
      guard BackupTeam(app.team, root: app.root).includes(there) else {
        throw CommandFailure(.failed, "the one that is installed is signed by another team")
      }
      return BackupTeam(of: there)
    }
    guard let rights = backup.manifest.rights(ofHome: name, isOnlyHome: backup.homes.count == 1) else {
      return ["grants and consents: the backup does not say which of them are those of \(name.sanitized)"]
    }
    // What was not there is granted by nobody: by now its name may be something else's.
    for grant in rights.grants where !grant.isMissing {
      do {
        if let team = try team(of: grant.identifier) { try give(grant, on: GrantCondition(team: team)) }
      } catch {
        failed.append(Self.words(grant, error))
      }
    }
    for consent in rights.consents {
      let decision: ConsentDecision? =
        switch consent.state {
        case .authorized: .allow
        case .denied: .deny
        case .restricted, .notDetermined: nil
        }
      guard let decision else { continue }
      do {
        guard let team = try team(of: consent.identifier) else { continue }
        _ = try access.consents(
          .decide(app: consent.identifier, service: consent.service, as: decision, user: uid, team: team))
      } catch {
        failed.append("consent of \(consent.identifier): \(CommandFailure(error).message)")
      }
    }
    return failed
  }

  /// Has apps keep what they were granted: what a grant was for has been replaced by what has its name now.
  ///
  /// A grant that is there no more was taken back meanwhile, or its app was removed, and one that leads
  /// elsewhere was moved by its user.
  private func keep(_ grants: [GrantedPlace]) -> [String] {
    var aside: [Int64: GrantedPlace] = [:]
    for grant in (try? access.grants(nil, of: uid)) ?? []
    where grant.isMissing && grant.path.includes("/\(PlaceRestorer.prefix)") {
      if let number = grant.number { aside[number] = grant }
    }
    var failed: [String] = []
    for grant in grants where !grant.isMissing {
      guard let number = grant.number, let team = grant.team, aside[number] != nil else { continue }
      do {
        try give(grant, on: GrantCondition(team: BackupTeam(team, root: grant.root), insteadOf: number))
        aside[number] = nil
      } catch {
        failed.append(Self.words(grant, error))
      }
    }
    for grant in aside.values {
      guard let identifier = AppIdentifier(grant.identifier) else { continue }
      _ = try? access.perform(.revoke(identifier, path: grant.path, user: uid))
    }
    return failed
  }

  /// Grants an app what is at a path, and no link there.
  private func give(_ grant: GrantedPlace, on condition: GrantCondition) throws {
    guard let identifier = AppIdentifier(grant.identifier) else { return }
    let root = try context.openDirectory(access.root)
    let status = try root.fd.status(at: grant.path)
    guard status.isDirectory == grant.isDirectory, status.isDirectory || status.isRegular else {
      throw CommandFailure(.failed, "it is something else by now")
    }
    try access.perform(
      .grant(
        identifier, path: grant.path, inode: UInt64(status.st_ino), grant.access, user: uid, on: condition))
  }

  private static func words(_ grant: GrantedPlace, _ error: any Error) -> String {
    "the grant of \(grant.path) to \(grant.identifier): \(CommandFailure(error).message)"
  }
}
