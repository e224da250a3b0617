// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// How many tasks, which are processes and their threads, there may be in the control groups of a process:
/// systemd's TasksMax, for example.
///
/// Corresponds to `pids.max`; a limit of an ancestor counts as the group's own does.
package enum TasksLimit {
  /// The limit of a process's groups, by its number or "self"; nil where there is none.
  package static func of(_ process: String) -> Int? { MemoryLimit.least(in: trees, of: process) }

  private static let file = "pids.max"
  private static let trees = [
    MemoryLimit.Tree(place: "/sys/fs/cgroup", kind: .cgroups, controller: nil, files: [file]),
    MemoryLimit.Tree(place: "/sys/fs/cgroup/unified", kind: .cgroups, controller: nil, files: [file]),
    MemoryLimit.Tree(place: "/sys/fs/cgroup/pids", kind: .controlGroups1, controller: "pids", files: [file]),
  ]
}
