// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

// How much memory a process may use: the machine's, or less where a control group or one of its ancestors
// says so (a container, systemd's MemoryMax). A process that goes by the machine's memory alone is killed
// there long before it has used a small part of that.
//
//  1. `memory.max` is the kernel's limit in version 2, and beyond `memory.high` it slows a process down
//     until it hardly moves. Version 1 has `memory.limit_in_bytes`. Where both are mounted, both count.
//  2. A limit of an ancestor counts as the group's own does.
//  3. In a namespace of control groups, the group's path begins at the namespace's root. In a container
//     without one it may name what is not there: then the mount's root is the container's own group.

/// See the rules above.
package enum MemoryLimit {
  /// In bytes; as it was when this was first asked.
  package static let ofThisProcess = of("self")

  /// What a process may use, by its number or "self"; in bytes.
  package static func of(_ process: String) -> Int {
    min(ofThisMachine, least(in: trees, of: process) ?? .max)
  }

  /// The least limit of a process's groups in some trees; nil where none of them has one.
  static func least(in trees: [Tree], of process: String) -> Int? {
    let lines = FD.text(of: "/proc/\(process)/cgroup", limit: 1 << 16) ?? ""
    let found = trees.compactMap { tree -> Int? in
      guard let root = try? FD.cwd.openFollowing(tree.place, pathOnly | O_DIRECTORY),
        (try? root.fd.filesystemKind()) == tree.kind
      else { return nil }
      return least(tree.files, in: root.fd, along: path(lines, controller: tree.controller))
    }
    return found.min()
  }

  package static var ofThisMachine: Int {
    let (pages, size) = (max(sysconf(Int32(_SC_PHYS_PAGES)), 0), max(sysconf(Int32(_SC_PAGESIZE)), 4096))
    let (bytes, isTooMuch) = pages.multipliedReportingOverflow(by: size)
    return isTooMuch || bytes == 0 ? .max : bytes
  }

  struct Tree {
    let place: String
    let kind: FilesystemKind
    /// Nil for version 2, which has one tree for all.
    let controller: String?
    let files: [String]
  }

  private static let trees = [
    Tree(place: "/sys/fs/cgroup", kind: .cgroups, controller: nil, files: ["memory.max", "memory.high"]),
    Tree(
      place: "/sys/fs/cgroup/unified", kind: .cgroups, controller: nil, files: ["memory.max", "memory.high"]),
    Tree(
      place: "/sys/fs/cgroup/memory", kind: .controlGroups1, controller: "memory",
      files: ["memory.limit_in_bytes"]),
  ]

  /// The names on the way to a group, from the lines of /proc/PID/cgroup.
  ///
  /// Empty where it is the root, unknown, or outside of what we see.
  package static func path(_ lines: String, controller: String?) -> [Substring] {
    (Cgroup.path(in: lines, controller: controller) ?? "").parts(between: "/")
  }

  /// The least limit in these files, in a group and in all groups on the way to it; nil where there is none.
  package static func least(_ files: [String], in root: FD, along path: [Substring]) -> Int? {
    var limits = files.compactMap { limit($0, in: root) }
    var group: OwnedFD?
    for name in path {
      let parent = group?.fd ?? root
      guard let next = try? parent.open(String(name), pathOnly | O_DIRECTORY | O_NOFOLLOW) else { break }
      let directory = next.fd
      limits += files.compactMap { limit($0, in: directory) }
      group = consume next
    }
    return limits.min()
  }

  /// What a file says; nil for `max`, and for what is no number.
  private static func limit(_ name: String, in group: FD) -> Int? {
    (try? group.cgroupWords(name))?.first.flatMap { Int($0) }.flatMap { $0 > 0 ? $0 : nil }
  }
}

extension FilesystemKind {
  /// Corresponds to CGROUP_SUPER_MAGIC.
  package static let controlGroups1 = FilesystemKind(magic: 0x27_e0eb)
}
