// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization

/// What users have decided: the registry has it, and what of it counts is in memory.
final class ConsentAnswers: Sendable {
  private struct Key: Hashable {
    /// Identifiers that differ in case only are one app's.
    let identifier: String
    let user: UInt32
    let service: PrivacyService

    init(_ identifier: AppIdentifier, _ user: UInt32, _ service: PrivacyService) {
      self.identifier = identifier.text.lowercased()
      self.user = user
      self.service = service
    }
  }

  /// A decision that allows nothing and could not be recorded; the next worker finds it.
  private struct Owed: Codable, Hashable {
    let identifier: String
    let user: UInt32
    let service: PrivacyService
    let team: Team
    /// When it was refused, in seconds since 1970; nil if nothing is decided any more.
    let refused: Int64?

    var key: Key? { app.map { Key($0, user, service) } }
    var app: AppIdentifier? { AppIdentifier(identifier) }
    var record: ConsentRecord? { record(for: team) }

    /// The same about an app of a team.
    func record(for team: Team) -> ConsentRecord? {
      guard let app, let refused else { return nil }
      return ConsentRecord(app, user: user, team: team, service, isAllowed: false, changed: refused)
    }
  }

  private struct State {
    private(set) var records: [Key: ConsentRecord] = [:]
    var owed: [Key: Owed] = [:]
    /// The records in their order, once somebody has asked for them: a list is asked for page by page.
    private var ordered: [ConsentRecord]?

    /// Takes other records; the apps of users about which something else is decided by them.
    mutating func replace(by records: [Key: ConsentRecord]) -> Set<AppOfUser> {
      let before = self.records
      self.records = records
      ordered = nil
      let changed = records.filter { before[$0.key] != $0.value }.values
      let gone = before.filter { records[$0.key] == nil }.values
      return Set((Array(changed) + gone).map { AppOfUser($0.identifier, $0.user) })
    }

    mutating func put(_ record: ConsentRecord?, _ key: Key) {
      let before = records[key]
      records[key] = record
      if let before, let place = place(after: ConsentPosition(before), including: true) {
        ordered?.remove(at: place)
      }
      if let record, let place = place(after: ConsentPosition(record)) { ordered?.insert(record, at: place) }
    }

    /// Where the first record after a position is; nil if nobody has asked for them in order.
    private func place(after position: ConsentPosition, including: Bool = false) -> Int? {
      guard let ordered else { return nil }
      var (low, high) = (0, ordered.count)
      while low < high {
        let middle = (low + high) / 2
        let found = ConsentPosition(ordered[middle])
        if found < position || found == position && !including { low = middle + 1 } else { high = middle }
      }
      return low
    }

    mutating func all(after position: ConsentPosition?) -> ArraySlice<ConsentRecord> {
      let all = ordered ?? records.values.inOrder { ConsentPosition($0) < ConsentPosition($1) }
      ordered = all
      return all[(position.flatMap { place(after: $0) } ?? 0)...]
    }
  }

  private let state = Mutex(State())
  let managed: ManagedConsent
  private let registry: GrantService.RegistrySource
  private let unrecorded: UnrecordedChanges<Owed>

  /// `kept` has what another worker could not record.
  init(
    _ managed: ManagedConsent, kept: KeptState? = nil, _ registry: @escaping GrantService.RegistrySource
  ) {
    self.managed = managed
    self.registry = registry
    unrecorded = UnrecordedChanges(kept, .owedConsents)
    for owed in unrecorded.entries {
      if let key = owed.key { state.withLock { $0.owed[key] = owed } }
    }
  }

  /// Has the next worker know what could not be recorded: before anybody is told that it holds.
  private func keepOwed() { unrecorded.note { state.withLock { Set($0.owed.values) } } }

  /// Takes over what the registry has; what can't be read was not decided.
  ///
  /// Gives the apps of users about which something else is decided than before.
  @discardableResult
  func load() -> Set<AppOfUser> {
    let known: [ConsentRecord]
    do throws(StoreError) {
      known = try registry(false)?.consents() ?? []
    } catch {
      DaemonLog.write("can't read what users have consented to, so nobody has: \(error)")
      known = []
    }
    let records = Dictionary(known.map { (Key($0.identifier, $0.user, $0.service), $0) }) { $1 }
    return state.withLock { state in
      var records = records
      for (key, owed) in state.owed { records[key] = owed.record }
      return state.replace(by: records)
    }
  }

  /// What counts for an app: an administrator's word, and what its user has decided about this team's.
  func state(_ app: InstalledApp, _ user: UInt32, _ service: PrivacyService) -> ConsentState {
    if restriction(app, service) != nil { return .restricted }
    if isPartOfMore(app, user, service) { return .authorized }
    guard let record = record(app, user, service) else { return .notDetermined }
    return record.isAllowed ? .authorized : .denied
  }

  private func restriction(_ app: InstalledApp, _ service: PrivacyService) -> String? {
    managed.reason(app.identifier, service)
      ?? service.whole.flatMap { managed.reason(app.identifier, $0) }
  }

  /// Whoever may use all of it may do that too, whatever was decided about that alone.
  private func isPartOfMore(_ app: InstalledApp, _ user: UInt32, _ service: PrivacyService) -> Bool {
    service.whole.flatMap { record(app, user, $0) }?.isAllowed ?? false
  }

  func status(_ app: InstalledApp, _ user: UInt32, _ service: PrivacyService) -> ConsentStatus {
    let more =
      isPartOfMore(app, user, service) ? service.whole.map { "'\($0.rawValue)' is allowed" } : nil
    return ConsentStatus(
      identifier: app.identifier.text, user: user, service: service, state: state(app, user, service),
      changed: record(app, user, service)?.changed, reason: restriction(app, service) ?? more)
  }

  private func record(_ app: InstalledApp, _ user: UInt32, _ service: PrivacyService) -> ConsentRecord? {
    let record = state.withLock { $0.records[Key(app.identifier, user, service)] }
    guard let record, counts(record, for: app) else { return nil }
    return record
  }

  /// Whether a decision is about this team's app.
  ///
  /// A refusal holds for an app under either root if an administrator has named another one for the team:
  /// until the app is updated, it is under the former one.
  func counts(_ record: ConsentRecord, for app: InstalledApp) -> Bool {
    if record.team == app.signer { return true }
    guard !record.isAllowed else { return false }
    return isOneTeam(record.team, app.signer)
  }

  /// While the registry can't be read, a refusal holds.
  private func isOneTeam(_ one: Team, _ other: Team) -> Bool {
    guard one.text == other.text else { return false }
    do throws(StoreError) {
      return try registry(false)?.areOneTeam(one, other) ?? false
    } catch {
      return true
    }
  }

  /// All that was decided by a user, or by all, from a position on.
  func all(of user: UInt32?, after: ConsentPosition? = nil) -> [ConsentRecord] {
    let all = state.withLock { $0.all(after: after) }
    return user == nil ? Array(all) : all.filter { $0.user == user }
  }

  /// Notes a decision, or with nil that there is none any more.
  ///
  /// One that allows nothing counts from here on even if it can't be noted, and gives why it can't: an app
  /// that fills the disk does not keep with that what it had.
  func put(
    _ decision: ConsentDecision?, _ app: InstalledApp, _ user: UInt32, _ service: PrivacyService
  ) throws(StoreError) -> StoreError? {
    let key = Key(app.identifier, user, service)
    let record = decision.map {
      ConsentRecord(
        app.identifier, user: user, team: app.signer, service, isAllowed: $0 == .allow,
        changed: Int64(time(nil)))
    }
    var failure: StoreError?
    do throws(StoreError) {
      try note(record, key, app)
    } catch {
      // A refusal of an app that is gone refuses nothing.
      if case .noApp = error { throw error }
      guard decision != .allow else { throw error }
      failure = error
    }
    let owed = failure.map { _ in
      Owed(
        identifier: app.identifier.text, user: user, service: service, team: app.signer,
        refused: record?.changed)
    }
    state.withLock { state in
      state.put(record, key)
      state.owed[key] = nil
      // Of more than that the next worker does not know, as whoever decides is told.
      if let owed, state.owed.keys.count(where: { $0.user == user }) < Self.mostOwedOfUser {
        state.owed[key] = owed
      }
    }
    keepOwed()
    return failure
  }

  /// A user whose disk is full can owe so many: they are kept in memory, and are tried again and again.
  static let mostOwedOfUser = 4096

  private func note(_ record: ConsentRecord?, _ key: Key, _ app: InstalledApp) throws(StoreError) {
    guard let registry = try registry(true) else { throw .noApp(identifier: app.identifier.text) }
    if let record {
      try registry.put(record, about: app)
    } else {
      try registry.removeConsent(app.identifier, of: key.user, key.service)
    }
  }

  /// Gives up noting what a user had decided.
  func dropOwed(of user: UInt32) {
    state.withLock { $0.owed = $0.owed.filter { $0.key.user != user } }
    keepOwed()
  }

  /// Notes what could not be noted before, of a user or of all; what can't be now is tried again the next
  /// time.
  func noteOwed(of user: UInt32? = nil) {
    /// Those of whom one could not be noted: of theirs no other one is tried now.
    var failed: Set<UInt32> = []
    for (key, owed) in state.withLock({ $0.owed }) where user == nil || key.user == user {
      guard let identifier = owed.app, !failed.contains(key.user) else { continue }
      do throws(StoreError) {
        // What was decided about an app that has gone has gone with it.
        let app = try registry(false)?.app(identifier, for: key.user)
        if let app, app.signer == owed.team || isOneTeam(app.signer, owed.team) {
          try note(owed.record(for: app.signer), key, app)
        }
        state.withLock { $0.owed[key] = nil }
      } catch .noApp {
        // It has gone just now.
        state.withLock { $0.owed[key] = nil }
      } catch {
        failed.insert(key.user)
        DaemonLog.write("can't record yet what \(identifier) may not use any more: \(error)")
      }
    }
    keepOwed()
  }
}
