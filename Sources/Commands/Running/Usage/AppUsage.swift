// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy

/// What an app that runs uses of the machine, by what the kernel says of its processes.
struct AppUsage: Equatable {
  /// In bytes.
  var memory: UInt64 = 0
  /// CPU time since it was started.
  var milliseconds: UInt64 = 0
  /// Threads not counted.
  var processes = 0
  /// What the kernel enforces.
  var limits = ResourceLimits()

  /// `run` is the process that waits for the app.
  ///
  /// It has started bubblewrap, which is the first process of one more namespace, and that has started the
  /// one that is the first in the sandbox; the app is all that this one has started.
  init(of run: Int32, in table: ProcessTable, cgroups: FD?) {
    let first = table.children(of: run).flatMap { table.children(of: $0) }
    let processes = first.flatMap { table.descendants(of: $0) }
    self.processes = processes.count
    let ticks = (processes + first.compactMap { table[$0] }).reduce(UInt64(0)) { $0 &+ $1.ticks }
    milliseconds = ticks.multipliedReportingOverflow(by: 1000).partialValue / ProcessTable.ticksPerSecond
    memory = processes.reduce(UInt64(0)) { $0 &+ $1.pages &* ProcessTable.pageSize }
    guard let app = first.flatMap({ table.children(of: $0) }).first else { return }
    limits = ProcessLimits.set(of: app, by: run)
    if let cgroup = AppCgroup.Reading(of: app, below: cgroups) {
      // It counts what the processes share once, and what they keep in files in memory.
      memory = cgroup.memory ?? memory
      for kind in cgroup.limits.kinds { limits[kind] = cgroup.limits[kind] }
    }
  }
}

/// An app that runs, with what it uses: what `insula ps` shows.
struct AppInUse: Encodable {
  let identifier: String
  let user: UInt32
  let pid: Int32
  let since: Int64
  let bundle: String
  let memory: UInt64
  let cpuMilliseconds: UInt64
  let processes: Int
  /// Of the kernel to the daemon; nil where that does not count them.
  let requests: UInt64?
  let limits: ResourceLimits

  init(_ app: RunningApp, _ usage: AppUsage) {
    identifier = app.identifier
    user = app.user
    pid = app.pid
    since = app.since
    bundle = app.bundle
    memory = usage.memory
    cpuMilliseconds = usage.milliseconds
    processes = usage.processes
    requests = app.requests
    limits = usage.limits
  }

  /// All of them, by one look at the machine's processes.
  static func all(_ apps: [RunningApp], in table: ProcessTable? = nil) -> [AppInUse] {
    guard !apps.isEmpty else { return [] }
    let table = table ?? ProcessTable()
    let cgroups = Cgroup.root()
    // Its descriptor is used until all are read.
    guard let cgroups else { return apps.map { AppInUse($0, AppUsage(of: $0.pid, in: table, cgroups: nil)) } }
    return apps.map { AppInUse($0, AppUsage(of: $0.pid, in: table, cgroups: cgroups.fd)) }
  }
}
