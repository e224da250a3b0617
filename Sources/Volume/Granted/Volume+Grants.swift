// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
package import Policy
package import Store
internal import Synchronization

// What the daemon does with grants; none of this is for a request's own thread.

extension Volume {
  /// Has the numbers of those told that become others, or go, by what someone does with names, and the apps
  /// that they are for.
  ///
  /// On the thread of a request: whoever keeps it must not make that wait.
  package func tellGrants(
    _ listener: @escaping @Sendable (_ numbers: [Int64], _ apps: [GrantedApp]) -> Void
  ) {
    grants.tell(listener)
  }

  /// All that is granted.
  package var granted: [GrantRecord] { grants.all }

  /// The numbers of all that is granted.
  package var grantedNumbers: [Int64] { grants.numbers }

  /// Those of these numbers.
  package func granted(_ numbers: some Sequence<Int64>) -> [GrantRecord] { grants.records(Array(numbers)) }

  /// Those of the apps of a user that have that identifier, of whatever team.
  package func granted(to identifier: AppIdentifier, of user: UInt32) -> [GrantRecord] {
    grants.records(of: GrantHolder.Name(identifier, user))
  }

  /// The numbers of those of one team's app of a user after one of them, at most `limit`, in order.
  package func grantNumbers(
    to identifier: AppIdentifier, of team: Team, _ user: UInt32, after number: Int64, limit: Int
  ) -> [Int64] {
    grants.numbers(of: GrantHolder(identifier, user, team), after: number, limit: limit)
  }

  /// The same of all apps that are meant.
  package func grantNumbers(
    after number: Int64 = 0, limit: Int = .max, _ isMeant: (_ identifier: String, _ user: UInt32) -> Bool
  ) -> [Int64] {
    grants.numbers(after: number, limit: limit) { isMeant($0.name.identifier, $0.name.user) }
  }

  /// What all that an app of a user was granted is known by.
  ///
  /// It is another one after each change that the app can see. Asking costs the same however much that is.
  package func grantsVersion(of identifier: AppIdentifier, _ team: Team, user: UInt32) -> UInt64 {
    grants.version(of: GrantHolder(identifier, user, team))
  }

  /// The numbers of some, by whose they are; not of those that there are no more.
  package func users(ofGrants numbers: some Sequence<Int64>) -> [UInt32: [Int64]] {
    grants.users(ofEach: numbers)
  }

  /// The apps that some are for.
  package func apps(ofGrants numbers: some Sequence<Int64>) -> [GrantedApp] { grants.apps(of: numbers) }

  /// Those of exactly this path, of whatever team.
  package func granted(
    to identifier: AppIdentifier, of user: UInt32, at path: [[UInt8]]
  ) -> [GrantRecord] {
    grants.records(of: GrantHolder.Name(identifier, user), at: path)
  }

  /// Lets an app have what was found to be at a path.
  ///
  /// It is in all its views when this returns. ESTALE if something else is there by now, or somebody is
  /// changing a name on the way; EDQUOT if there are too many names on the way to what the user has granted.
  package func grant(_ record: GrantRecord) throws(Errno) {
    try begin(record)
    // Whoever removes it from here on sees that it is to be looked at: was it there still?
    let resolved = resolvedPath(along: record.path, for: record.user)
    let isThere = resolved.isOnServer || resolved.found?.identity == record.identity
    let isStale = grants.moving.withLock(of: record.user) { () -> Bool in
      // What was moved meanwhile was followed.
      guard let known = grants.record(record.id), isThere || known.path != record.path else { return true }
      for view in grants.views(of: GrantHolder(known)) { view.granted.admit(known.place) }
      return false
    }
    guard isStale else { return }
    // It may be in a view that has begun meanwhile.
    revokeGrants([record.id])
    throw .ESTALE
  }

  /// Notes a grant, so that who changes names on the way from here on sees that it is to be followed.
  private func begin(_ record: GrantRecord) throws(Errno) {
    let end = monotonicNanoseconds() &+ 1_000_000_000
    while true {
      let (began, isLast) = (grants.time, millisecondsLeft(until: end) == 0)
      let known = resolvedPath(along: record.path, for: record.user)
      guard known.isOnServer || known.found?.identity == record.identity else { throw .ESTALE }
      let entry = Grants.Entry(record: record, steps: known.steps)
      let outcome = try grants.moving.withLock(of: record.user) { () throws(Errno) -> Grants.Outcome in
        try grants.checkRoom(for: entry)
        return grants.put(entry, insteadOf: nil, seen: known.steps, since: began)
      }
      if outcome == .done { return }
      if isLast { throw .ESTALE }
      if case .changing(let step) = outcome { grants.wait(for: step, until: end) }
    }
  }

  /// Lets an app do other things with what it was granted.
  package func changeGrant(_ id: Int64, isWritable: Bool) -> GrantRecord? {
    let users = grants.users(of: [id])
    // Both at once: by its old path nothing is found any more after a rename.
    let changed = grants.moving.withLock(of: users) { () -> (new: GrantRecord, views: [GrantedFiles])? in
      guard var entry = grants.entry(id) else { return nil }
      let old = entry.record.place
      entry.record.isWritable = isWritable
      grants.put(entry)
      let new = entry.record
      guard new.place != old else { return (new, []) }
      let views = grants.views(of: entry.holder).map(\.granted)
      for view in views { view.beginChange(admitting: [new.place], withdrawing: [old]) }
      return (new, views)
    }
    guard let changed else { return nil }
    _ = GrantedFiles.finish(changed.views)
    return changed.new
  }

  /// Notes whose apps some grants are for by now: views of the apps that had them lose them, and views of
  /// those apps get them; false where what is under way in those that lose them was not waited for.
  @discardableResult
  package func changeTeams(of grants: [Int64: Team]) -> Bool {
    let users = self.grants.users(of: grants.keys)
    let changed = self.grants.moving.withLock(of: users) { () -> [GrantedFiles] in
      var places: [GrantHolder: Set<ScopePlace>] = [:]
      for (id, team) in grants {
        guard var entry = self.grants.entry(id), entry.record.team != team else { continue }
        places[entry.holder, default: []].insert(entry.record.place)
        entry.record.team = team
        self.grants.put(entry)
        for view in self.grants.views(of: entry.holder) { view.granted.admit(entry.record.place) }
      }
      return places.flatMap { self.grants.beginWithdrawal(of: $1, from: $0) }
    }
    return GrantedFiles.finish(changed)
  }

  /// Takes grants of a user back: when this returns nothing of them is found, read or written any more
  /// through what they gave; false where what is under way there was not waited for.
  @discardableResult
  package func revokeGrants(_ numbers: [Int64]) -> Bool {
    let changed = grants.moving.withLock(of: grants.users(of: numbers)) { () -> [GrantedFiles] in
      let entries = Dictionary(grouping: numbers.compactMap { grants.remove($0) }, by: \.holder)
      return entries.flatMap { grants.beginWithdrawal(of: Set($1.map(\.record.place)), from: $0) }
    }
    return GrantedFiles.finish(changed)
  }

  /// Makes the view of an app that is about to run for a user; it has these places, what was granted, and
  /// what `consented` gives: whatever changes that from then on changes it in this view too.
  ///
  /// `taken` is the number of one that another worker has left.
  package func view(
    of identifier: AppIdentifier, _ team: Team, user: UInt32, _ places: [ScopePlace],
    takingOver taken: UInt32? = nil, consented: () -> [ScopePlace] = { [] }
  ) throws(Errno) -> View {
    try grants.moving.withLock(of: user) { () throws(Errno) in
      let holder = GrantHolder(identifier, user, team)
      let granted = grants.records(grants.numbers(of: holder)).map(\.place) + consented()
      let view = try View(
        self, scope: Scope(places + granted), of: identifier, user: user, takingOver: taken)
      grants.add(view.peer, of: holder)
      // One may have become known before the view was.
      if settings.ignoresCase { view.granted.compareBytes(below: attached.knownDisks) }
      return view
    }
  }

  /// Of which grants there is anything at their paths.
  package func areThere(_ records: [GrantRecord]) -> [Bool] {
    var areThere = records.map { _ in false }
    var walk = PathWalk(self)
    for index in order(of: records.map(\.path), records.map(\.user)) {
      areThere[index] = walk.resolve(records[index].path, for: records[index].user).isThere
    }
    return areThere
  }
}

extension Grants {
  /// Takes places out of all views of an app; what is under way in those is yet to be waited for.
  fileprivate func beginWithdrawal(of places: Set<ScopePlace>, from holder: GrantHolder) -> [GrantedFiles] {
    views(of: holder).map { view in
      view.granted.beginChange(withdrawing: places)
      return view.granted
    }
  }
}
