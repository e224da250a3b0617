// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
package import Store
internal import Synchronization

extension Volume {
  /// Takes over what was granted when an earlier daemon ran, before anyone can look at the tree.
  ///
  /// What is not where it was is looked for: an object that still exists is what was meant, wherever it is
  /// now. On volumes nothing is looked for.
  package func loadGrants(_ records: [GrantRecord]) {
    // Volumes may come meanwhile.
    grants.areLoading = true
    grants.moving.withLockOfAll {
      var changed: [Int64] = []
      var lost: [LostGrant] = []
      var walk = PathWalk(self)
      for index in order(of: records.map(\.path), records.map(\.user)) {
        let record = records[index]
        let resolved = walk.resolve(record.path, for: record.user)
        if resolved.found?.identity == record.identity || resolved.isOnVolume || isOfVolume(record.path) {
          load(record, at: record.path, resolved, &changed)
        } else {
          lost.append(LostGrant(record: record))
        }
      }
      find(&lost)
      for index in order(of: lost.map { $0.path ?? $0.record.path }, lost.map(\.record.user)) {
        let record = lost[index].record
        let path = lost[index].path ?? record.path
        let resolved = walk.resolve(path, for: record.user)
        if lost[index].path == nil || resolved.found?.identity == record.identity {
          load(record, at: path, resolved, &changed)
        } else {
          load(record, at: record.path, walk.resolve(record.path, for: record.user), &changed)
        }
      }
      grants.report(changed)
      grants.areLoading = false
    }
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
    _ known: GrantRecord, at path: [[UInt8]], _ resolved: ResolvedPath, _ changed: inout [Int64]
  ) {
    var record = known
    record.path = path
    if let found = resolved.found { record.identity = found.identity }
    if let there = grants.record(of: GrantHolder(record), at: path) {
      changed += [there.id, record.id]
      let isDirectory = resolved.found?.status.isDirectory ?? there.isDirectory
      if there.isDirectory == record.isDirectory {
        if record.isWritable, !there.isWritable, var entry = grants.entry(there.id) {
          entry.record.isWritable = true
          grants.put(entry)
        }
        return
      }
      if there.isDirectory == isDirectory { return }
      grants.remove(there.id)
    }
    if record != known { changed.append(record.id) }
    grants.put(Grants.Entry(record: record, steps: resolved.steps))
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
