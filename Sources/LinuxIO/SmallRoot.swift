// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

extension OwnNamespace {
  /// Leaves the machine's file tree for one in memory, with `/tmp` and those places of the machine's; those
  /// that are not there are left out.
  ///
  /// Where a filesystem of the type `hidden` is mounted in one of the directories, there is an empty
  /// directory. Each place may lie anywhere, also below `/tmp`, which the new root covers until it takes the
  /// place of the old one: so all are opened before.
  ///
  /// A namespace begins with all mounts of the one before. As long as it has them nobody's filesystem ends,
  /// whoever takes it away elsewhere; so it must not keep what it has nothing to do with. Corresponds to
  /// `pivot_root(2)`.
  package static func leaveTree(
    keeping directories: [String], files: [String], hiding hidden: String
  ) throws(Errno) {
    let root = "/tmp"
    // No place that is kept begins with this name.
    let old = "/.machine"
    var kept: [(path: String, object: SharedFD)] = []
    for path in directories + files {
      guard let object = try? FD.cwd.open(path, pathOnly) else { continue }
      kept.append((path, SharedFD(object)))
    }
    try mountMemory(at: root)
    for (path, object) in kept {
      try object.use { (object) throws(Errno) in try keep(object, at: root + path, below: root) }
    }
    try hide(hidden, below: root, besides: files.map { root + $0 })
    // The sandbox is put together there, and it may be on the way to something that was kept.
    do throws(Errno) { try FD.cwd.makeDirectory(root + root, mode: 0o755) } catch .EEXIST {}
    try FD.cwd.makeDirectory(root + old, mode: 0o755)
    try check(clx_pivot_root(root, root + old))
    try check(chdir("/"))
    try unmount(old, lazily: true)
    try FD.cwd.remove(old, directory: true)
  }

  private static func keep(_ object: FD, at place: String, below root: String) throws(Errno) {
    guard !FD.cwd.has(place) else { return }
    let status = try object.status()
    try makeDirectories(above: place, below: root)
    if status.isSymlink { return try FD.cwd.makeSymlink(place, to: object.linkTarget()) }
    if status.isDirectory {
      try FD.cwd.makeDirectory(place, mode: 0o755)
    } else {
      _ = try FD.cwd.open(place, O_WRONLY | O_CREAT | O_EXCL, mode: 0o644)
    }
    try check(mount("/proc/self/fd/\(object.raw)", place, nil, UInt(MS_BIND) | UInt(MS_REC), nil))
  }

  /// Nobody may take away what a namespace has got together with other mounts, so it is covered.
  ///
  /// A file that was kept may be in such a filesystem: it is a mount of its own, and stays.
  private static func hide(_ type: String, below root: String, besides files: [String]) throws(Errno) {
    let table = try MountTable.current()
    // What the machine has in a directory of that name is under ours.
    var reachable = Set([table.top(at: root)?.id].compactMap { $0 })
    var covered: [String] = []
    for entry in table.below(root) where reachable.contains(entry.parent) {
      reachable.insert(entry.id)
      guard entry.type == type, !files.contains(entry.mountPoint),
        !covered.contains(where: { entry.mountPoint.begins(with: $0 + "/") })
      else { continue }
      try mountMemory(at: entry.mountPoint)
      let flags = UInt(MS_RDONLY) | UInt(MS_NOSUID) | UInt(MS_NODEV) | UInt(MS_NOEXEC)
      try remount(entry.mountPoint, flags: flags)
      covered.append(entry.mountPoint)
    }
  }

  private static func makeDirectories(above place: String, below root: String) throws(Errno) {
    var path = root
    for name in place.dropFirst(root.count).parts(between: "/").dropLast() {
      path += "/\(name)"
      do throws(Errno) { try FD.cwd.makeDirectory(path, mode: 0o755) } catch .EEXIST {}
    }
  }
}
