// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store
internal import Volume

// What is taken back of users who have not asked for it. It is done for all of them at the same time, by a
// thread for each: where the grants of one lead may be locked for as long as that user holds a file, or a
// disk of theirs does not answer. Whoever takes it back waits for a few seconds, and not again for the same.

extension GrantService {
  /// Apps have come or gone, and with them what they were granted.
  ///
  /// It asks for numbers alone: it follows each change of an app, whoever makes it, and the grants are those
  /// of all users. A grant of one user that can't be read keeps no other one.
  package func reconcile() {
    try? writer.writeOwed()
    // What is granted meanwhile is in the registry first, and here later.
    let granted = volume.grantedNumbers
    guard let registry = try? registry(false), let known = try? registry.grantNumbers() else { return }
    let gone = granted.filter { !known.contains($0) }
    let begun = [
      begin(with: gone, as: "gone") { [volume] in volume.revokeGrants($0) }, followTeams(registry),
      takeUp(registry),
    ]
    for begun in begun { _ = wait(for: begun) }
  }

  /// A home may have come back in which others than its owner have granted something.
  private func takeUp(_ registry: Registry) -> UserWork.Begun {
    let numbers = isReadOnly ? [] : (try? registry.takeUpGrants()) ?? []
    let records = numbers.isEmpty ? [] : (try? registry.grants(among: numbers)) ?? []
    let users = Dictionary(grouping: records, by: \.user)
    let name = "back \(numbers.min() ?? 0)"
    return withdrawals.begin(for: users.keys, as: name) { [self] user in
      let records = users[user] ?? []
      volume.loadGrants(records)
      settle(records.map(\.id))
    }
  }

  /// An app of a team's next root may have been installed: what was granted under a former root is for that
  /// one, and views of what the former root has signed have it no more.
  private func followTeams(_ registry: Registry) -> UserWork.Begun {
    let teams = (try? registry.teamsOfGrantsWithFormerRoots()) ?? [:]
    let moved = teams.isEmpty ? [] : volume.granted(teams.keys).filter { $0.team != teams[$0.id] }
    return begin(with: moved.map(\.id), to: teams, as: "teams")
  }

  /// An administrator has assigned a team to another root: its grants are that one's now, and views of apps
  /// under other roots have them no more.
  ///
  /// `body` is done while users are waited for; the result is those for whom that is not done yet.
  @discardableResult
  func teamIsAssigned(_ team: String, _ body: () -> Void = {}) throws(StoreError) -> [UInt32] {
    guard let registry = try registry(false) else {
      body()
      return []
    }
    let teams = try registry.teamsOfGrants(to: team)
    let begun = begin(with: teams.keys, to: teams, as: "team \(Array(team.utf8))")
    body()
    return wait(for: begun)
  }

  /// Takes back what was granted of a volume that is there no more: another one may get its name.
  ///
  /// The registry has forgotten it with the volume. What it still has is of another user's volume of that
  /// name. A home may come back, and the registry says what has to wait for it.
  func volumeIsEjected(_ place: [[UInt8]]) {
    if place.dropLast() == [Array("Users".utf8)] { return reconcile() }
    // Nobody's turn is waited for: nothing new can be granted there, and what can't be recorded now is
    // recorded later.
    let treeNames = volume.treeNames
    var found = volume.granted.filter { treeNames.isPlace(place, atOrAbove: $0.path) }
    if found.isEmpty { return }
    if let registry = try? registry(false), let known = try? registry.grantNumbers() {
      found.removeAll { known.contains($0.id) }
    }
    let begun = begin(with: found.map(\.id), as: "volume \(place)") { [volume, writer] numbers in
      let isOver = volume.revokeGrants(numbers)
      try? writer.writeOwed(and: numbers)
      return isOver
    }
    _ = wait(for: begun)
  }

  /// The share of a server is about to be there: what was granted when another one had its name is not of
  /// this one.
  ///
  /// False where that is not taken back yet. What was granted by an earlier version, which did not note of
  /// what share it is, is of this one from now on.
  func shareAppears(_ share: VolumeRecord) -> Bool {
    let found = volume.grants(inPlaceOf: share)
    if found.isEmpty { return true }
    let others = Set(found.filter(\.identity.isOfShare).map(\.id))
    let name = "share \(share.treePath)"
    let begun = begin(with: found.map(\.id), as: name) { [self] numbers in
      let gone = numbers.filter(others.contains)
      let isOver = volume.revokeGrants(gone)
      let unnamed = numbers.filter { !others.contains($0) }
      volume.bind(unnamed, to: share)
      if !isReadOnly {
        try? writer.writeOwed(and: gone)
        if !unnamed.isEmpty { writer.note(unnamed) }
      }
      note(
        .revoked, found.filter { gone.contains($0.id) }, by: nil, "another share has its place",
        sayingPaths: false)
      return isOver
    }
    return wait(for: begun).isEmpty
  }

  /// Gives grants to the apps of teams.
  private func begin(
    with numbers: some Sequence<Int64>, to teams: [Int64: Team], as name: String
  ) -> UserWork.Begun {
    begin(with: numbers, as: name) { [volume] numbers in
      let own = numbers.map { number in (number, teams[number]) }
      return volume.changeTeams(of: Dictionary(own) { $1 }.compactMapValues { $0 })
    }
  }

  /// Changes grants, those of each user on a thread that no other user waits for, and tells their apps;
  /// `body` says whether it has waited for all that was under way.
  private func begin(
    with numbers: some Sequence<Int64>, as name: String, _ body: @escaping @Sendable ([Int64]) -> Bool
  ) -> UserWork.Begun {
    let users = volume.users(ofGrants: numbers)
    return withdrawals.begin(for: users.keys, as: name) { [self] user in
      let numbers = users[user] ?? []
      let apps = volume.apps(ofGrants: numbers)
      if !body(numbers) { DaemonLog.noteUse(by: [user]) }
      tell(apps)
    }
  }

  /// Those for whom it is not done yet.
  private func wait(for begun: UserWork.Begun) -> [UInt32] {
    let late = begun.wait(milliseconds: Self.patienceMilliseconds)
    for user in late {
      DaemonLog.write(
        "what apps of uid \(user) are to lose of what they were granted is not all taken back yet: a rename "
          + "or a write of theirs waits for a file that somebody holds, or for a disk that does not answer")
    }
    return late
  }

  private static let patienceMilliseconds = 5000
}

extension DaemonLog {
  /// Says of whom something does not end that was under way when it was taken back.
  static func noteUse(by users: some Sequence<UInt32>) {
    for user in users {
      write(
        "an app of uid \(user) has lost a file while it was being read or written, which does not end: the "
          + "app gets nothing more of it, but what it was writing may be written")
    }
  }
}
