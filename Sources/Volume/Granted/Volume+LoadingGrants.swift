// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
package import Store
internal import Synchronization

extension Volume {
  /// Takes over what was granted when an earlier daemon ran; `isMeant` says of a number whether that still
  /// holds.
  ///
  /// What is not where it was is looked for: an object that still exists is what was meant, wherever it is
  /// now. On volumes nothing is looked for. Disks are waited for, and files that somebody holds; so each
  /// user's are taken over by a thread of their own, and what lies in the user's home first.
  package func loadGrants(_ records: [GrantRecord], isMeant: (_ number: Int64) -> Bool = { _ in true }) {
    var lost: [LostGrant] = []
    each(of: records, at: records.map(\.path)) { index, resolved, began in
      let record = records[index]
      guard resolved.found?.identity == record.identity || resolved.isOnVolume || isOfVolume(record.path)
      else {
        lost.append(LostGrant(record: record))
        return .done
      }
      return load(record, at: resolved.spelled(record.path), resolved, since: began, isMeant)
    }
    find(&lost)
    each(of: lost.map(\.record), at: lost.map { $0.path ?? $0.record.path }) { index, resolved, began in
      let (record, path) = (lost[index].record, lost[index].path)
      if let path, resolved.found?.identity == record.identity {
        return load(record, at: path, resolved, since: began, isMeant)
      }
      let there = path == nil ? resolved : resolvedPath(along: record.path, for: record.user)
      return load(record, at: there.spelled(record.path), there, since: began, isMeant)
    }
  }

  /// Looks along the paths of grants, and has noted what is there; again where names on the way are changed
  /// meanwhile.
  private func each(
    of records: [GrantRecord], at paths: [[[UInt8]]],
    _ load: (_ index: Int, _ resolved: ResolvedPath, _ began: UInt64) -> Grants.Outcome
  ) {
    var left: [Int] = []
    let began = grants.time
    var walk = PathWalk(self)
    for index in ownFirst(order(of: paths, records.map(\.user)), of: records) {
      if load(index, walk.resolve(paths[index], for: records[index].user), began) != .done {
        left.append(index)
      }
    }
    let end = monotonicNanoseconds() &+ Self.patienceNanoseconds
    for index in left {
      // Somebody may hold a file that another one is renamed to; what is not known then gives nothing.
      while true {
        let (began, isLast) = (grants.time, millisecondsLeft(until: end) == 0)
        let outcome = load(index, resolvedPath(along: paths[index], for: records[index].user), began)
        if outcome == .done || isLast { break }
        if case .changing(let step) = outcome { grants.wait(for: step, until: end) }
      }
    }
  }

  private static let patienceNanoseconds: UInt64 = 60_000_000_000

  /// Moves what lies in each user's own home to the front: what others hold is looked at afterwards.
  private func ownFirst(_ order: [Int], of records: [GrantRecord]) -> [Int] {
    guard let users = try? tree.openDirectory(at: [Array("Users".utf8)]) else { return order }
    var owners: [[UInt8]: UInt32] = [:]
    let areOwn = records.map { record in
      guard let name = record.path.dropFirst().first else { return false }
      let owner = owners[name] ?? (try? users.fd.status(of: name).st_uid) ?? .max
      owners[name] = owner
      return owner == record.user
    }
    return order.filter { areOwn[$0] } + order.filter { !areOwn[$0] }
  }

  /// Whether a path is of a volume that may be away: a grant there is for what is at its path, and the
  /// handle that it has is another filesystem's.
  private func isOfVolume(_ path: [[UInt8]]) -> Bool {
    switch path.first {
    case Array("Volumes".utf8), Array("Network".utf8): return true
    case Array("Users".utf8):
      // A home that is elsewhere has a link in its place.
      guard let name = path.dropFirst().first, let users = try? tree.openDirectory(at: Array(path.prefix(1)))
      else { return false }
      return (try? users.fd.status(of: name))?.isSymlink == true
    default: return false
    }
  }

  /// Notes a grant where it is now.
  ///
  /// Where its app was granted what is there, that grant stands for both. If what was at that path was of
  /// another kind, the one that is there now is meant.
  @inline(never)
  private func load(
    _ known: GrantRecord, at path: [[UInt8]], _ resolved: ResolvedPath, since began: UInt64,
    _ isMeant: (_ number: Int64) -> Bool
  ) -> Grants.Outcome {
    var changed: [Int64] = []
    let outcome = grants.moving.withLock(of: known.user) { () -> Grants.Outcome in
      guard isMeant(known.id), grants.record(known.id) == nil else { return .done }
      var record = known
      record.path = path
      if let found = resolved.found { record.identity = found.identity }
      var gone: GrantRecord?
      if let there = grants.record(of: GrantHolder(record), at: path) {
        changed += [there.id, record.id]
        let isDirectory = resolved.found?.status.isDirectory ?? there.isDirectory
        if there.isDirectory == record.isDirectory {
          if record.isWritable, !there.isWritable, var entry = grants.entry(there.id) {
            entry.record.isWritable = true
            grants.put(entry)
            for view in grants.views(of: entry.holder) { view.granted.admit(entry.record.place) }
          }
          return .done
        }
        if there.isDirectory == isDirectory { return .done }
        gone = there
      }
      let entry = Grants.Entry(record: record, steps: resolved.steps)
      let outcome = grants.put(entry, insteadOf: nil, seen: resolved.steps, since: began)
      guard outcome == .done else {
        changed = []
        return outcome
      }
      if let gone { grants.remove(gone.id) }
      for view in grants.views(of: entry.holder) {
        if let gone { view.granted.drop(gone.place) }
        view.granted.admit(record.place)
      }
      if record != known { changed.append(record.id) }
      return .done
    }
    grants.report(changed)
    return outcome
  }

  /// An order in which what lies in the same directories comes one after the other.
  @inline(never)
  func order(of paths: [[[UInt8]]], _ users: [UInt32]) -> [Int] {
    paths.indices.inOrder { one, other in
      guard users[one] == users[other] else { return users[one] < users[other] }
      // Equal names are one array most of the time, which is seen at once.
      for (name, next) in zip(paths[one], paths[other]) where name != next {
        return name.lexicographicallyPrecedes(next)
      }
      return paths[one].count < paths[other].count
    }
  }
}
