// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
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
    grants.moving.withLock { _ in
      var changed: [Int64] = []
      var lost: [(record: GrantRecord, number: ObjectNumber)] = []
      var walk = PathWalk(self)
      for record in records.inOrderOfPaths {
        let resolved = walk.resolve(record.path, for: record.user)
        let staysWithPath = record.isOnVolume || resolved.isOnVolume
        guard !staysWithPath, resolved.found?.identity != record.identity else {
          load(record, at: record.path, resolved, &changed)
          continue
        }
        switch whereabouts(of: record.identity) {
        case .path(let path): load(record, at: path, walk.resolve(path, for: record.user), &changed)
        case .unnamed(let number): lost.append((record, number))
        case .gone: load(record, at: record.path, resolved, &changed)
        }
      }
      let found = search(for: Set(lost.map(\.number)), of: Set(lost.map(\.record.user)))
      for (record, number) in lost {
        let path = found[number] ?? record.path
        load(record, at: path, walk.resolve(path, for: record.user), &changed)
      }
      grants.report(changed)
    }
  }

  /// Notes a grant where it is now.
  ///
  /// Where its app was granted what is there, that grant stands for both.
  @inline(never)
  private func load(
    _ known: GrantRecord, at path: [[UInt8]], _ resolved: ResolvedPath, _ changed: inout [Int64]
  ) {
    var record = known
    record.path = path
    if let found = resolved.found { record.identity = found.identity }
    let holder = GrantHolder(record.identifier, record.user)
    if let there = grants.record(of: holder, at: path), there.team == record.team {
      if record.isWritable, !there.isWritable, var entry = grants.entry(there.id) {
        entry.record.isWritable = true
        grants.put(entry)
      }
      changed += [there.id, record.id]
      return
    }
    if record != known { changed.append(record.id) }
    grants.put(Grants.Entry(record: record, steps: resolved.steps))
  }

  // MARK: What is not where it was

  private enum Whereabouts {
    case path([[UInt8]])
    /// It is there, and the kernel knows no name of it.
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
    if status.isDirectory { return path(of: object.fd).map { .path($0) } ?? .gone }
    // The kernel knows a file's name only if it was looked up recently.
    if let names = kernelPath(of: object.fd), GrantPath.isPath(names),
      resolvedPath(along: names, for: 0).found?.identity == identity
    {
      return .path(names)
    }
    return .unnamed(ObjectNumber(status))
  }

  /// How many names one search looks at, and passes on its way; it is needed only after a machine stopped
  /// at a bad moment, and everybody waits for it.
  static var mostNamesToSearch: Int { 200_000 }

  /// Goes through the files of users, and those that all share, for objects whose names nobody knows.
  ///
  /// One search for all, in which every home has its part: who has many files, or many such grants, leaves
  /// room for others.
  @inline(never)
  func search(
    for wanted: Set<ObjectNumber>, of users: Set<UInt32>, atMost limit: Int = mostNamesToSearch
  ) -> [ObjectNumber: [[UInt8]]] {
    guard !wanted.isEmpty, let directory = try? tree.openDirectory(at: [Self.users]),
      let entries = try? directory.fd.entries(atMost: limit)
    else { return [:] }
    let homes = entries.map(\.name).filter { name in
      guard let status = try? directory.fd.status(of: name), status.isDirectory else { return false }
      return users.contains(status.st_uid) || name == Array("Shared".utf8)
    }
    var found: [ObjectNumber: [[UInt8]]] = [:]
    var left = limit
    for (index, home) in homes.enumerated() where found.count < wanted.count {
      let part = left / (homes.count - index)
      left -= part - search([Self.users, home], for: wanted, atMost: part, &found)
    }
    return found
  }

  private static var users: [UInt8] { Array("Users".utf8) }

  /// Goes through one home, and gives how many of those names it did not look at.
  @inline(never)
  private func search(
    _ home: [[UInt8]], for wanted: Set<ObjectNumber>, atMost limit: Int,
    _ found: inout [ObjectNumber: [[UInt8]]]
  ) -> Int {
    var waiting = [home]
    var left = limit
    while let names = waiting.popLast() {
      left -= names.count
      guard left > 0 else { return 0 }
      guard let directory = try? tree.openDirectory(at: names),
        let entries = try? directory.fd.entries(atMost: left)
      else { continue }
      for entry in entries {
        left -= 1
        guard let status = try? directory.fd.status(of: entry.name) else { continue }
        let path = names + [entry.name]
        guard GrantPath.isPath(path) else { continue }
        if status.isDirectory { waiting.append(path) }
        if wanted.contains(ObjectNumber(status)) { found[ObjectNumber(status)] = path }
      }
      if found.count == wanted.count { break }
    }
    return max(left, 0)
  }
}

extension GrantRecord {
  /// Whether it is of a volume, whether that is there or not; there a grant stays with its path.
  fileprivate var isOnVolume: Bool { path.first == Array("Volumes".utf8) }
}

extension [GrantRecord] {
  /// What lies in the same directories comes one after the other.
  fileprivate var inOrderOfPaths: [GrantRecord] {
    let paths = map { GrantPath.path($0.path) }
    return indices.inOrder { one, other in
      let (user, next) = (self[one].user, self[other].user)
      return user == next ? paths[one].isBefore(paths[other]) : user < next
    }.map { self[$0] }
  }
}

extension [UInt8] {
  fileprivate func isBefore(_ other: [UInt8]) -> Bool {
    let order = withUnsafeBytes { bytes in
      other.withUnsafeBytes { others in
        let common = Swift.min(bytes.count, others.count)
        guard let one = bytes.baseAddress, let two = others.baseAddress else { return Int32(0) }
        return memcmp(one, two, common)
      }
    }
    return order == 0 ? count < other.count : order < 0
  }
}
