// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
package import Policy
internal import Store

/// As much of a path as somebody may be told.
package struct KnownPath: Equatable, Sendable {
  package let names: [[UInt8]]
  /// Whether the rest is not told since nothing has the last of these names.
  package var isMissing = false
}

extension Volume {
  /// How much of paths somebody can find out: of each the names up to the first directory that they may not
  /// search, or that can't be looked into just now, or up to the first name that nothing has.
  ///
  /// Others move what they have shared, and what was granted of it follows: what they call things that are
  /// theirs alone is not told, wherever that is. It is looked at on the disks that this leads to, so nobody
  /// does it who must not wait for one; directories that several of the paths have in common are looked at
  /// once. Servers are not asked: nothing that is granted there follows what is moved.
  package func known(
    _ paths: [[[UInt8]]], by caller: Credentials, isMember: (_ gid: UInt32) -> Membership
  ) -> [KnownPath] {
    var known = paths.map { KnownPath(names: $0) }
    var walk = KnownPaths(self, caller)
    for index in order(of: paths, paths.map { _ in caller.uid }) {
      known[index] = walk.known(paths[index], isMember)
    }
    return known
  }
}

/// Looks at many paths: each begins where it parts from the one before, as in ``PathWalk``.
private struct KnownPaths {
  private struct Kept {
    /// How many names lead there.
    let depth: Int
    let directory: SharedFD
    let zone: Zone
  }

  /// What is there comes and goes, as somebody looks for it.
  private static let servers = ["Network", "Servers"].map { Array($0.utf8) }
  /// Every so many names a directory is kept.
  private static let distance = 16

  private let volume: Volume
  private let caller: Credentials
  private var names: [[UInt8]] = []
  private var kept: [Kept] = []

  init(_ volume: Volume, _ caller: Credentials) { (self.volume, self.caller) = (volume, caller) }

  mutating func known(_ path: [[UInt8]], _ isMember: (_ gid: UInt32) -> Membership) -> KnownPath {
    let common = zip(path, names).prefix { $0 == $1 }.count
    while let deepest = kept.last, deepest.depth > common { kept.removeLast() }
    names = path
    var depth = kept.last?.depth ?? 0
    do throws(Errno) {
      var here = if let last = kept.last { last } else { try root() }
      while depth < path.count {
        here = try next(path[depth], in: here, isMember)
        depth = here.depth
        if depth.isMultiple(of: Self.distance) { kept.append(here) }
      }
    } catch {
      switch error {
      case .EREMOTE: break
      case _ where path.starts(with: Self.servers): break
      // That a name is missing can be found out, and what was below it can't.
      case .ENOENT: return KnownPath(names: Array(path.prefix(depth + 1)), isMissing: depth + 1 < path.count)
      // Of a disk that is away nobody knows whose directories the names are in.
      default: return KnownPath(names: Array(path.prefix(depth)))
      }
    }
    return KnownPath(names: path)
  }

  private func root() throws(Errno) -> Kept {
    let root = try volume.tree.open(Name.here, O_DIRECTORY | pathOnly)
    return Kept(depth: 0, directory: SharedFD(root), zone: .top)
  }

  private func next(
    _ name: [UInt8], in here: Kept, _ isMember: (_ gid: UInt32) -> Membership
  ) throws(Errno) -> Kept {
    try here.directory.use { (directory) throws(Errno) in
      let status = try directory.status()
      // What is theirs they can search if they want to.
      if status.st_uid != caller.uid {
        try volume.authorize(.search, on: directory, status, here.zone, by: caller, isMember)
      }
      let number = ObjectNumber(status)
      let ignoresCase = volume.settings.ignoresCase
      let attached = volume.attached.find(name, in: number, for: caller.uid, ignoringCase: ignoresCase)
      if let attached, attached.engine.queue != nil { throw .EREMOTE }
      let found = try volume.child(name, of: directory, number, for: caller.uid)
      let zone = try volume.zone(of: name, in: directory, here.zone, for: caller.uid)
      return Kept(depth: here.depth + 1, directory: SharedFD(found), zone: zone)
    }
  }
}
