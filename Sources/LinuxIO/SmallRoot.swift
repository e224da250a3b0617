// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

extension OwnNamespace {
  /// Leaves the machine's file tree for one in memory, with `/tmp` and those places of the machine's; those
  /// that are not there are left out.
  ///
  /// Where a filesystem of the type `hidden` is mounted in one of them, there is an empty directory.
  ///
  /// A namespace begins with all mounts of the one before. As long as it has them nobody's filesystem ends,
  /// whoever takes it away elsewhere; so it must not keep what it has nothing to do with. Corresponds to
  /// `pivot_root(2)`.
  package static func leaveTree(
    keeping directories: [String], files: [String], hiding hidden: String
  ) throws(Errno) {
    let root = "/tmp"
    let old = "/old"
    try mountMemory(at: root)
    for path in directories + files { try keep(path, below: root) }
    try hide(hidden, below: root)
    for name in [root, old] { try FD.cwd.makeDirectory(root + name, mode: 0o755) }
    try check(clx_pivot_root(root, root + old))
    try check(chdir("/"))
    try unmount(old, lazily: true)
    try FD.cwd.remove(old, directory: true)
  }

  private static func keep(_ path: String, below root: String) throws(Errno) {
    let place = root + path
    guard !FD.cwd.has(place), let status = try? FD.cwd.status(of: path) else { return }
    try makeDirectories(above: place, below: root)
    if status.isSymlink { return try FD.cwd.makeSymlink(place, to: FD.cwd.linkTarget(of: path)) }
    if status.isDirectory {
      try FD.cwd.makeDirectory(place, mode: 0o755)
    } else {
      _ = try FD.cwd.open(place, O_WRONLY | O_CREAT | O_EXCL, mode: 0o644)
    }
    try check(mount(path, place, nil, UInt(MS_BIND) | UInt(MS_REC), nil))
  }

  /// Nobody may take away what a namespace has got together with other mounts, so it is covered.
  private static func hide(_ type: String, below root: String) throws(Errno) {
    let table = try MountTable.current()
    // What the machine has in a directory of that name is under ours.
    var reachable = Set([table.top(at: root)?.id].compactMap { $0 })
    var covered: [String] = []
    for entry in table.below(root) where reachable.contains(entry.parent) {
      reachable.insert(entry.id)
      guard entry.type == type, !covered.contains(where: { entry.mountPoint.hasPrefix($0 + "/") }) else {
        continue
      }
      try mountMemory(at: entry.mountPoint)
      let flags = UInt(MS_RDONLY) | UInt(MS_NOSUID) | UInt(MS_NODEV) | UInt(MS_NOEXEC)
      try remount(entry.mountPoint, flags: flags)
      covered.append(entry.mountPoint)
    }
  }

  private static func makeDirectories(above place: String, below root: String) throws(Errno) {
    var path = root
    for name in place.dropFirst(root.count).split(separator: "/").dropLast() {
      path += "/\(name)"
      do throws(Errno) { try FD.cwd.makeDirectory(path, mode: 0o755) } catch .EEXIST {}
    }
  }
}
