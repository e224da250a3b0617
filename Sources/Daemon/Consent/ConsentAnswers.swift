// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
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

  private let records = Mutex<[Key: ConsentRecord]>([:])
  let managed: ManagedConsent
  private let registry: GrantService.RegistrySource

  init(_ managed: ManagedConsent, _ registry: @escaping GrantService.RegistrySource) {
    self.managed = managed
    self.registry = registry
  }

  /// Takes over what the registry has; what can't be read was not decided.
  func load() {
    let known: [ConsentRecord]
    do throws(StoreError) {
      known = try registry(false)?.consents() ?? []
    } catch {
      DaemonLog.write("can't read what users have consented to, so nobody has: \(error)")
      known = []
    }
    let records = Dictionary(known.map { (Key($0.identifier, $0.user, $0.service), $0) }) { $1 }
    self.records.withLock { $0 = records }
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
    let record = records.withLock { $0[Key(app.identifier, user, service)] }
    return record?.team == app.signer ? record : nil
  }

  /// All that was decided by a user, or by all.
  func all(of user: UInt32?) -> [ConsentRecord] {
    records.withLock { Array($0.values) }.filter { user == nil || $0.user == user }.sorted {
      ($0.identifier.text, $0.user, $0.service.rawValue) < ($1.identifier.text, $1.user, $1.service.rawValue)
    }
  }

  /// Notes a decision, or with nil that there is none any more.
  func put(
    _ decision: ConsentDecision?, _ app: InstalledApp, _ user: UInt32, _ service: PrivacyService
  ) throws(StoreError) {
    guard let registry = try registry(true) else { throw .noApp(identifier: app.identifier.text) }
    let key = Key(app.identifier, user, service)
    guard let decision else {
      try registry.removeConsent(app.identifier, of: user, service)
      return records.withLock { $0[key] = nil }
    }
    let record = ConsentRecord(
      app.identifier, user: user, team: app.signer, service, isAllowed: decision == .allow,
      changed: Int64(time(nil)))
    try registry.put(record)
    records.withLock { $0[key] = record }
  }
}
