// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
package import Policy

/// What became of a home that was there and is an account's now.
package struct Adoption: Sendable {
  /// Why something in it was left as it is.
  package enum Reason: Sendable, CaseIterable {
    /// It would give its owner a device.
    case device
    /// It has names outside of the home, so it may be somebody else's as well.
    case linkedElsewhere
    /// It is neither the account's nor the home's former owner's.
    case othersProperty
    /// Nothing about it can be changed, as if `chattr +i` was used on it.
    case protected
  }

  /// Who had it before.
  package let previous: UInt32
  /// What of its standard directories was made or put right.
  package internal(set) var mended: [HomeFault] = []
  /// How many objects have changed hands.
  package internal(set) var given = 0
  /// Programs that ran with the rights of their owner or group, and do so no more.
  package internal(set) var tamed = Sample()
  package internal(set) var left: [Reason: Sample] = [:]
  /// What the former owner had besides the home, and where root finds it now, by paths below the store.
  package internal(set) var aside: [LeftBehind] = []
}

extension Homes {
  /// Makes a home that is there, put there from outside or left by somebody, an account's own.
  ///
  /// For a store that nobody serves. Nothing is lost, and nothing is overwritten: what stands in the way is
  /// refused by name before anything has changed. What belonged to the home's former owner becomes the
  /// account's, and nothing else does. Stopped at any moment, this can be done again. What is noted of its
  /// apps and containers goes with the home, and all else that is noted for its former owner is forgotten.
  ///
  /// `beforehand` is done as soon as nothing stands in the way.
  package func adopt(
    _ name: String, in store: Store, beforehand: (_ owner: UInt32) throws(StoreError) -> Void = { _ in }
  ) throws(StoreError) -> Adoption {
    let registry = try Registry(of: store)
    try Self.endAdoptions(in: store, registry)
    let account = try self.account(for: name)
    try require(name)
    let place = "\(path)/\(name)"
    let home = try explaining("open the home", place) { () throws(Errno) in try users.fd.openDirectory(name) }
    let status = try explaining("examine", place) { () throws(Errno) in try home.fd.status() }
    let owners = try store.ownersOfHomes(registry)
    let care = try explaining("open the home", place) { () throws(Errno) in
      HomeCare(
        try home.fd.duplicated(), uid: account.uid, gid: account.gid, former: status.st_uid, owners: owners,
        access: access)
    }
    let handover = Handover(
      from: status, to: account, sealed: try Self.sealedPaths(in: name, registry, status.st_uid, account))
    let survey = try explaining("walk through", place) { () throws(Errno) in
      try HomeSurvey(of: home.fd, handover)
    }
    let reasons =
      Self.obstacles(status.st_uid, account) + care.faults().compactMap(\.obstacle) + survey.mounts
      + (try Self.unfinishedApps(in: name, registry))
    guard reasons.isEmpty else { throw .notAdoptable(path: place, reasons: reasons) }
    try beforehand(account.uid)
    var adoption = Adoption(previous: status.st_uid)
    let intent = AdoptionIntent(home: name, former: status.st_uid, owner: account.uid)
    try Containers(store, registry).noteTeams(inHome: name)
    try registry.begin(intent)
    try explaining("adopt", place) { () throws(Errno) in
      try handover.carryOut(in: home.fd, survey, &adoption)
      // The home itself is the last, so that one that was interrupted is known by its owner.
      for fault in care.faults() {
        try care.mend(fault)
        adoption.mended.append(fault)
      }
      try users.fd.synchronizeFilesystem()
    }
    adoption.aside = try Self.finish(intent, in: store, registry)
    return adoption
  }

  /// A home of somebody who is there still is theirs, whatever its name says.
  private static func obstacles(_ owner: UInt32, _ account: Account) -> [String] {
    guard owner != account.uid, owner != 0, let other = Account.numbered(owner) else { return [] }
    return [
      "it belongs to \(other.name), who has an account here; give it to \(account.name) with chown first, "
        + "if that is meant"
    ]
  }

  /// A change of an app that could not be completed would be completed for the former owner.
  private static func unfinishedApps(in name: String, _ registry: Registry) throws(StoreError) -> [String] {
    try registry.intents().map(\.intent.app).filter { $0.path.utf8.starts(with: "Users/\(name)/".utf8) }.map {
      "a change of the app \($0.identifier) in it was interrupted and can't be completed; "
        + "'insula check' says what stands in its way"
    }
  }

  /// What is installed in the home is sealed, and nobody's to change.
  private static func sealedPaths(
    in name: String, _ registry: Registry, _ owner: UInt32, _ account: Account
  ) throws(StoreError) -> Set<[[UInt8]]> {
    guard owner != account.uid else { return [] }
    let prefix = "Users/\(name)/"
    let inHome = try registry.apps().map(\.path).filter { $0.utf8.starts(with: prefix.utf8) }
    return Set(
      inHome.map { $0.utf8.dropFirst(prefix.utf8.count).split(separator: UInt8(ascii: "/")).map(Array.init) })
  }
}

extension HomeFault {
  /// Why a home with this can't be adopted; nil if it is mended.
  fileprivate var obstacle: String? {
    switch kind {
    case .notADirectory(let what): "\(path) is \(what) and must be a directory"
    case .othersDirectory(let uid):
      "\(path) belongs to \(Account.numbered(uid)?.name ?? "uid \(uid)"), and something is in it; move it "
        + "away, or give it away with chown"
    default: nil
    }
  }
}
