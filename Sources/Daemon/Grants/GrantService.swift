// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
internal import Glibc
package import LinuxIO
package import Policy
package import Store
internal import Synchronization
package import Volume

/// Manages what users have granted to apps, and keeps registry, volume and views consistent.
///
/// The volume always knows where everything is. The registry, from which the next daemon reads, learns of
/// moves a moment later.
package final class GrantService: Sendable {
  /// Gives the registry; nil where there is none, unless one is to be made.
  package typealias RegistrySource = @Sendable (_ making: Bool) throws(StoreError) -> Registry?

  let store: Store
  let volume: Volume
  let isReadOnly: Bool
  private let log: EventRecorder
  /// Is called after each change of what apps are granted, with these apps; it must not wait.
  private let changed: @Sendable (Set<AppOfUser>) -> Void
  let registry: RegistrySource
  let writer: GrantWriter
  /// One request of each user at a time; what is looked at for it may lie on a volume that does not answer.
  private let turns = UserTurns()
  /// What is taken back of several users at once, in no request of theirs.
  let withdrawals = UserWork()
  let unloaded = UnloadedGrants()

  /// Takes over what was granted before; nobody can look at the tree yet, so it does not take long.
  package init(
    _ store: Store, _ volume: Volume, isReadOnly: Bool = false, kept: KeptState? = nil,
    log: @escaping EventRecorder = { _ in }, changed: @escaping @Sendable (Set<AppOfUser>) -> Void = { _ in },
    registry: @escaping RegistrySource
  ) throws(StoreError) {
    self.store = store
    self.log = log
    self.changed = changed
    self.volume = volume
    self.isReadOnly = isReadOnly
    self.registry = registry
    let writer = GrantWriter(volume, kept, registry)
    self.writer = writer
    // The writer keeps the volume, which must not keep the writer.
    volume.tellGrants { [weak writer, isReadOnly] numbers, apps in
      if !isReadOnly { writer?.note(numbers) }
      changed(Set(apps.map { AppOfUser($0.identifier, $0.user) }))
    }
    // Another worker may have taken some back that are still in the registry.
    var owed = writer.owed
    if let registry = try Self.atStart(registry) {
      if !isReadOnly { _ = try? registry.takeUpGrants() }
      let granted = try registry.grants()
      let volumes = try registry.volumes()
      volume.noteDisks(volumes)
      // An earlier version may have been killed when a volume was gone, and what was granted of it was not.
      let lost = GrantsOfVolumes(volumes)
      owed.formUnion(granted.filter(lost.isOfNone).map(\.id))
      load(granted.filter { !owed.contains($0.id) })
    }
    if !owed.isEmpty, !isReadOnly { writer.note(owed) }
  }

  /// Returns when the registry knows all.
  package func finish() { writer.finish() }

  /// Records what could not be recorded before, if it can be now.
  func recordOwed() { if !isReadOnly { try? writer.writeOwed() } }

  /// Has apps told that what they were granted has changed; only when it is so in their views.
  func tell(_ apps: [GrantedApp]) {
    if !apps.isEmpty { changed(Set(apps.map { AppOfUser($0.identifier, $0.user) })) }
  }

  private func tell(_ records: [GrantRecord]) {
    tell(records.map { GrantedApp(identifier: $0.identifier, user: $0.user) })
  }

  // MARK: Requests

  /// Does what is asked, and gives what was granted or taken back: as much as one answer can hold, since who
  /// takes all back knows what it was.
  ///
  /// Nothing is granted if nobody waits for it any more when it has been looked at.
  package func perform(
    _ request: GrantRequest, by caller: CallerIdentity, for client: ControlReporter? = nil
  ) throws(ControlFailure) -> [GrantedPlace] {
    let done: (event: LogEntry.Event, records: [GrantRecord])
    do throws(GrantFailure) {
      let user = try self.user(request.user, caller)
      guard !isReadOnly else { throw .store(.mountedReadOnly) }
      unloaded.wait(for: user)
      switch request {
      case .grant(let identifier, let path, let inode, let access, _, let condition):
        do throws(StoreError) { try Registry.requireAccount(user, waiting: true) } catch {
          throw .store(error)
        }
        // What is looked at may lie on a volume that does not answer: whoever takes something back of the
        // same user's does not wait for that.
        let wanted = try wanted(identifier, path, inode, access, for: user, caller)
        done = try turns.with(user) { () throws(GrantFailure) in
          guard client?.isCancelled != true else { throw .app(.cancelled) }
          try? writer.writeOwed()
          return (.granted, [try put(wanted, on: condition)])
        }
      case .revoke(let identifier, let path, _):
        // Nor for what is looked at to find out what is meant.
        let meant = meant(identifier, path, of: user, by: caller)
        done = try turns.with(user) { () throws(GrantFailure) in
          (.revoked, try revoke(meant, identifier, path, of: user))
        }
      }
    } catch {
      throw ControlFailure(error)
    }
    note(done.event, done.records, by: caller)
    let told = Array(done.records.prefix(Self.mostInAnswer))
    return zip(told, known(told, by: caller)).map { GrantedPlace($0, at: $1, isMissing: false) }
  }

  static let mostInAnswer = 100

  /// As much of the paths of grants as somebody may be told.
  func known(_ records: [GrantRecord], by caller: CallerIdentity) -> [KnownPath] {
    volume.known(records.map(\.path), by: caller.credentials, isMember: caller.membership)
  }

  /// Has the log say it, of as many as there is an answer for; they are one user's.
  ///
  /// A worker that starts says no paths: it must not wait for the disks where they lead.
  func note(
    _ event: LogEntry.Event, _ records: [GrantRecord], by caller: CallerIdentity?, _ why: String? = nil,
    sayingPaths: Bool = true
  ) {
    guard let user = records.first?.user else { return }
    let told = Array(records.prefix(Self.mostInAnswer))
    // The user reads it, whoever has done it.
    let reader =
      caller.flatMap { $0.uid == user ? $0 : nil } ?? CallerIdentity(uid: user, gid: .max, groups: [])
    let paths = sayingPaths ? known(told, by: reader) : []
    var entries = told.indices.map { index in
      let record = told[index]
      let access: GrantAccess = record.isWritable ? .readWrite : .readOnly
      var entry = LogEntry(
        now: event, user: record.user, app: record.identifier.text, by: caller?.uid,
        detail: why ?? access.rawValue)
      if index < paths.count { entry.setPath(GrantPath.path(paths[index].names)) }
      return entry
    }
    if records.count > entries.count, var last = entries.last {
      last.setPath(nil)
      last.more = UInt64(records.count - entries.count)
      entries.append(last)
    }
    log(entries)
  }

  /// For whom something is granted.
  private func user(_ asked: UInt32?, _ caller: CallerIdentity) throws(GrantFailure) -> UInt32 {
    let isSystem = store.description.mode == .system
    let user = asked ?? (isSystem ? caller.uid : ProcessID.user)
    guard user == caller.uid || caller.uid == 0 || caller.uid == ProcessID.user else { throw .othersGrants }
    return user
  }

  func chosenFiles(of app: InstalledApp) throws(GrantFailure) -> ChosenFiles {
    do throws(AppFailure) { return try ChosenFiles(of: app, in: store.tree) } catch { throw .app(error) }
  }

  func installed(_ identifier: AppIdentifier, _ user: UInt32) throws(GrantFailure) -> InstalledApp {
    do throws(StoreError) {
      guard let app = try registry(false)?.app(identifier, for: user) else {
        throw StoreError.noApp(identifier: identifier.text)
      }
      return app
    } catch {
      throw .store(error)
    }
  }

  /// Notes a grant and lets it be so; where there is one of the same place already, it is changed.
  func put(_ record: GrantRecord) throws(GrantFailure) -> GrantRecord {
    let there = volume.granted(to: record.identifier, of: record.user, at: record.path)
    let known = there.first { $0.isDirectory == record.isDirectory && $0.team == record.team }
    let others = there.filter { $0.id != known?.id }
    if !others.isEmpty { try takeBack(others) }
    if let known { return try change(known, isWritable: record.isWritable) }
    let noted = try registered { (registry) throws(StoreError) in
      do throws(StoreError) {
        return try registry.add(volume.bound(record))
      } catch {
        // Of those that are kept there are so many for everybody, with a daemon or without.
        if error.isTooManyGrants { volume.budget.refuse(.grantedNames, record.user) }
        throw error
      }
    }
    do throws(Errno) {
      try volume.grant(noted)
    } catch {
      try registered { (registry) throws(StoreError) in try registry.removeGrants([noted.id]) }
      if error == .EDQUOT { throw .store(.tooManyGrantsOfUser(user: record.user)) }
      throw .errno(error, path: record.text, writing: record.isWritable)
    }
    tell([noted])
    do throws(GrantFailure) {
      // If it was removed meanwhile, whoever did that knew nothing of this; nor is it for a namesake.
      guard try installed(record.identifier, record.user).signer == record.team else {
        throw .store(.noApp(identifier: record.identifier.text))
      }
    } catch {
      try takeBack([noted])
      throw error
    }
    return noted
  }

  private func change(_ known: GrantRecord, isWritable: Bool) throws(GrantFailure) -> GrantRecord {
    guard let changed = volume.changeGrant(known.id, isWritable: isWritable) else {
      throw .noGrant(path: known.text, app: known.identifier.text)
    }
    defer { tell([known]) }
    do throws(StoreError) {
      try writer.write([known.id])
    } catch {
      _ = volume.changeGrant(known.id, isWritable: known.isWritable)
      throw .store(error)
    }
    return changed
  }

  /// Which of a user's grants are meant, by an app, a path or both.
  private func meant(
    _ identifier: AppIdentifier?, _ path: String?, of user: UInt32, by caller: CallerIdentity
  ) -> [Int64] {
    // Nobody else's are read for it.
    let numbers = numbers(of: identifier, user, after: 0, limit: .max)
    guard let path else { return numbers }
    let records = volume.granted(numbers)
    let treeNames = volume.treeNames
    // One that is out of reach is named as it is listed.
    let names = GrantPath.names(Array(path.utf8))
    let below = records.filter { $0.path.count > names.count && $0.path.starts(with: names) }
    let listed = zip(below, known(below, by: caller)).filter { $0.1.names == names }.map { $0.0.id }
    return records.filter { $0.isAt(path, treeNames) }.map(\.id) + listed
  }

  private func revoke(
    _ meant: [Int64], _ identifier: AppIdentifier?, _ path: String?, of user: UInt32
  ) throws(GrantFailure) -> [GrantRecord] {
    let treeNames = volume.treeNames
    let isMeant = { (record: GrantRecord) in
      record.user == user && (identifier.map { $0.isSame(as: record.identifier) } ?? true)
        && (path.map { record.isAt($0, treeNames) } ?? true)
    }
    var found = volume.granted(meant)
    // A worker that has begun may not have found all.
    let late = unloaded.numbers(of: user).subtracting(meant)
    if !late.isEmpty { found += try recorded(late).filter(isMeant) }
    unloaded.remove(found.map(\.id), of: user)
    // It may be that it was taken back already, and this could not be recorded.
    let known = found.isEmpty ? try unrecordedRevocations().filter(isMeant) : found
    // Nobody else's home that was ejected gives anything, until it is back.
    let ejected = try inEjectedHomes(of: user).filter(isMeant)
    guard !known.isEmpty || !ejected.isEmpty else { throw .noGrant(path: path, app: identifier?.text) }
    try takeBack(found + ejected)
    return found + ejected
  }

  private func inEjectedHomes(of user: UInt32) throws(GrantFailure) -> [GrantRecord] {
    do throws(StoreError) {
      return try registry(false)?.grantsInEjectedHomes(of: user) ?? []
    } catch {
      throw .store(error)
    }
  }

  /// What was taken back and is still in the registry.
  private func unrecordedRevocations() throws(GrantFailure) -> [GrantRecord] {
    let gone = writer.owed.subtracting(volume.grantedNumbers)
    return gone.isEmpty ? [] : try recorded(gone)
  }

  private func recorded(_ numbers: Set<Int64>) throws(GrantFailure) -> [GrantRecord] {
    do throws(StoreError) {
      return try registry(false)?.grants(among: numbers) ?? []
    } catch {
      throw .store(error)
    }
  }

  /// When this ends, nothing of it can be used any more; when it returns, no later daemon gives it either.
  ///
  /// They are one user's. What can't be recorded is recorded with the next change, or when the daemon ends.
  func takeBack(_ records: [GrantRecord]) throws(GrantFailure) {
    let numbers = records.map(\.id)
    if !volume.revokeGrants(numbers), let user = records.first?.user { DaemonLog.noteUse(by: [user]) }
    tell(records)
    do throws(StoreError) { try writer.writeOwed(and: numbers) } catch {
      throw .revocationNotRecorded(error)
    }
  }

  private func registered<Result>(
    _ body: (Registry) throws(StoreError) -> Result
  ) throws(GrantFailure) -> Result {
    do throws(StoreError) {
      guard let registry = try registry(true) else {
        throw StoreError.failed(doing: "open the list of apps of", path: store.path, errno: .ENOENT)
      }
      return try body(registry)
    } catch {
      throw .store(error)
    }
  }
}

extension GrantService {
  // MARK: Apps

  /// Makes the view of an app that is about to run: these places, what it was granted, and what its user has
  /// consented to.
  ///
  /// Nothing is made or taken back if it may not begin any more when it is its user's turn.
  ///
  /// What was granted to another team's app of that identifier is not for this one, and a signature that says
  /// by now that the app only reads what is chosen for it holds for what was granted before.
  package func view(
    of app: InstalledApp, for user: UInt32, _ places: [ScopePlace], takingOver taken: UInt32? = nil,
    consented: () -> [ScopePlace] = { [] }, mayBegin: () -> Bool = { true }
  ) throws(AppFailure) -> View {
    var others: [GrantRecord] = []
    let isStart = taken == nil
    // One that runs gets the rest later.
    if isStart { unloaded.wait(for: user) }
    defer {
      note(.revoked, others, by: nil, "it was granted to an app of another team", sayingPaths: isStart)
    }
    return try turns.with(user) { () throws(AppFailure) in
      // Another team's app may have its place by now, and this one must not take that one's grants.
      guard mayBegin() else { throw .busy(identifier: app.identifier.text) }
      try noteTeams(ofGrantsTo: app, for: user)
      let granted = volume.granted(to: app.identifier, of: user)
      do throws(GrantFailure) {
        others = granted.filter { $0.team != app.signer }
        if !others.isEmpty { try takeBack(others) }
        let writable = granted.filter { $0.isWritable && $0.team == app.signer }
        if !writable.isEmpty, try chosenFiles(of: app) == .readOnly {
          for record in writable { _ = try change(record, isWritable: false) }
        }
      } catch {
        throw error.asAppFailure
      }
      do throws(Errno) {
        return try volume.view(
          of: app.identifier, app.signer, user: user, places, takingOver: taken, consented: consented)
      } catch {
        throw .failed(doing: "create a view for", path: app.identifier.text, errno: error)
      }
    }
  }
}

extension GrantRecord {
  /// Whether that is its path; what is no UTF-8 in it may be written as it is shown.
  fileprivate func isAt(_ path: String, _ treeNames: TreeNames) -> Bool {
    treeNames.areOne(GrantPath.names(Array(path.utf8)), self.path) || path.utf8.elementsEqual(text.utf8)
  }
}

extension GrantFailure {
  fileprivate var asAppFailure: AppFailure {
    switch self {
    case .store(let error): .store(error)
    case .app(let failure): failure
    default: .failed(doing: "use what was granted to", path: "the app", errno: errno ?? .EIO)
    }
  }
}
