// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// Resolves many paths: each begins where it parts from the one before.
///
/// One user's 20,000 grants may all lie 128 directories deep. So paths should come in their order, and some
/// of the directories on the way stay open.
struct PathWalk {
  private struct Kept {
    /// How many names lead there.
    let depth: Int
    let directory: SharedFD
    let status: FileStatus
    var isOnVolume = false
  }

  /// Every so many names a directory is kept.
  private static let distance = 16

  private let volume: Volume
  private var user: UInt32?
  private var names: [[UInt8]] = []
  private var last = ResolvedPath()
  private var kept: [Kept] = []

  init(_ volume: Volume) { self.volume = volume }

  /// Looks along a path, as `Volume.resolvedPath` does.
  mutating func resolve(_ path: [[UInt8]], for user: UInt32) -> ResolvedPath {
    leave(to: user == self.user ? zip(path, names).prefix { $0 == $1 }.count : 0)
    (self.user, names) = (user, path)
    guard let start = kept.last ?? root() else { return ResolvedPath() }
    var resolved = ResolvedPath()
    resolved.steps = Array(last.steps.prefix(start.depth))
    resolved.isOnVolume = start.isOnVolume
    go(from: start, along: path[start.depth...], &resolved)
    last = resolved
    return resolved
  }

  /// Forgets what is further than that.
  private mutating func leave(to depth: Int) {
    while let deepest = kept.last, deepest.depth > depth { kept.removeLast() }
  }

  private func root() -> Kept? {
    guard let root = try? volume.tree.open(Name.here, O_DIRECTORY | pathOnly),
      let status = try? root.fd.status()
    else { return nil }
    return Kept(depth: 0, directory: SharedFD(root), status: status)
  }

  private mutating func go(
    from start: Kept, along names: ArraySlice<[UInt8]>, _ resolved: inout ResolvedPath
  ) {
    var here = start
    for name in names {
      guard let user,
        let next = try? here.directory.use({ (fd) throws(Errno) in
          volume.step(to: name, from: fd, here.status, for: user, &resolved)
        }), let status = try? next.fd.status()
      else { return }
      here = Kept(
        depth: here.depth + 1, directory: SharedFD(next), status: status, isOnVolume: resolved.isOnVolume)
      if here.depth.isMultiple(of: Self.distance) { kept.append(here) }
    }
    try? here.directory.use { (fd) throws(Errno) in resolved.end(at: fd, here.status) }
  }
}
