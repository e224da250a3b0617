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
    grants.moving.withLock { _ in
      var changed: [Int64] = []
      var lost: [LostGrant] = []
      var walk = PathWalk(self)
      for record in records.inOrderOfPaths {
        let resolved = walk.resolve(record.path, for: record.user)
        guard resolved.found?.identity != record.identity, !resolved.isOnVolume, !isOfVolume(record.path)
        else {
          load(record, at: record.path, resolved, &changed)
          continue
        }
        switch whereabouts(of: record.identity) {
        case .path(let path): load(record, at: path, walk.resolve(path, for: record.user), &changed)
        case .unnamed(let number): lost.append(LostGrant(record: record, number: number))
        case .gone: load(record, at: record.path, resolved, &changed)
        }
      }
      search(for: &lost)
      for grant in lost {
        let path = grant.path ?? grant.record.path
        load(grant.record, at: path, walk.resolve(path, for: grant.record.user), &changed)
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
    let holder = GrantHolder(record.identifier, record.user)
    if let there = grants.record(of: holder, at: path), there.team == record.team {
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

  // MARK: What is not where it was

  private enum Whereabouts {
    case path([[UInt8]])
    /// It is a file, and the kernel knows no name of it.
    case unnamed(ObjectNumber)
    case gone
  }

  /// Asks for an object by its handle, which leads to it whatever its name is.
  @inline(never)
  private func whereabouts(of identity: ObjectIdentity) -> Whereabouts {
    guard settings.fileHandles, let handle = FileHandle(encoded: identity.handle),
      let object = try? tree.open(handle), let status = try? object.fd.status(), status.st_nlink > 0,
      ObjectIdentity(status, of: object.fd) == identity
    else { return .gone }
    // What is too deep is not even looked for: that takes long, and there may be many of it.
    if let names = kernelPath(of: object.fd), GrantPath.isPath(names),
      resolvedPath(along: names, for: 0).found?.identity == identity
    {
      return .path(names)
    }
    // The kernel knows a file's name only if it was looked up recently.
    return status.isDirectory ? .gone : .unnamed(ObjectNumber(status))
  }
}

extension [GrantRecord] {
  /// What lies in the same directories comes one after the other.
  fileprivate var inOrderOfPaths: [GrantRecord] {
    let paths = map { GrantPath.path($0.path) }
    return indices.inOrder { one, other in
      let (user, next) = (self[one].user, self[other].user)
      return user == next ? paths[one].lexicographicallyPrecedes(paths[other]) : user < next
    }.map { self[$0] }
  }
}
