// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import JSON
internal import LinuxIO
internal import Policy

/// What has happened between two moments.
struct TopReport: Encodable {
  /// The process that serves.
  struct Daemon: Encodable {
    let pid: Int32
    let memory: UInt64
    let cpuPercent: Double
    let threads: Int64
    let descriptors: Int64
    let nodes: Int64
    let openFiles: Int64
    let locks: Int64
    let restarts: Int64
  }

  /// An app that runs.
  struct App: Encodable {
    let identifier: String
    let user: UInt32
    let pid: Int32
    let memory: UInt64
    let cpuPercent: Double
    let cpuMilliseconds: UInt64
    let processes: Int
    /// Through its view; nil where the daemon does not count them.
    let requests: UInt64?
    let requestsPerSecond: Double?
    let limits: ResourceLimits
  }

  let store: String
  let mountPoint: String
  let mode: String
  let uptimeSeconds: UInt64?
  let seconds: Double
  let requests: Int64
  let requestsPerSecond: Double
  /// By the kernel's names; those that there were none of are left out.
  let requestsPerSecondByKind: [String: Double]
  let roundTripMicroseconds: Double?
  let daemon: Daemon
  let apps: [App]

  init(from old: TopSample, to new: TopSample) {
    let seconds = max(Double(new.nanoseconds &- old.nanoseconds) / 1e9, 0.001)
    // A daemon that has replaced another one begins to count at 0.
    func rate(_ before: Int64, _ now: Int64) -> Double {
      Self.tenths(Double(max(0, now &- before)) / seconds)
    }
    func percent(_ milliseconds: UInt64) -> Double { Self.tenths(Double(milliseconds) / 10 / seconds) }
    func count(_ name: String) -> Int64 { new.status.count(name) }

    self.seconds = Self.tenths(seconds)
    store = new.status.store
    mountPoint = new.status.mountPoint
    mode = new.status.mode
    uptimeSeconds = new.uptimeSeconds
    requests = count("requests")
    requestsPerSecond = rate(old.status.count("requests"), requests)
    let before = old.status.requestsByKind
    requestsPerSecondByKind = Dictionary(
      uniqueKeysWithValues: new.status.requestsByKind.map { ($0.key, rate(before[$0.key] ?? 0, $0.value)) }
    ).filter { $0.value > 0 }
    roundTripMicroseconds = new.roundTripNanoseconds.map { Self.tenths(Double($0) / 1000) }
    let used = new.daemon.map { now in
      now.ticks - min(now.ticks, old.daemon?.pid == now.pid ? old.daemon?.ticks ?? 0 : now.ticks)
    }
    daemon = Daemon(
      pid: new.status.pid, memory: (new.daemon?.pages ?? 0) &* ProcessTable.pageSize,
      cpuPercent: percent((used ?? 0) &* 1000 / ProcessTable.ticksPerSecond),
      threads: count("threads"), descriptors: count("descriptors"), nodes: count("nodes"),
      openFiles: count("openFiles"), locks: count("locks"), restarts: count("restarts"))
    let earlier = Dictionary(old.apps.map { (Run($0), $0) }) { first, _ in first }
    apps = new.apps.map { app in
      let old = earlier[Run(app)]
      let before = old?.cpuMilliseconds ?? app.cpuMilliseconds
      // One that was started in between has requested all of it since.
      let requests = app.requests.map { rate(Int64(clamping: old?.requests ?? 0), Int64(clamping: $0)) }
      return App(
        identifier: app.identifier, user: app.user, pid: app.pid, memory: app.memory,
        cpuPercent: percent(app.cpuMilliseconds - min(before, app.cpuMilliseconds)),
        cpuMilliseconds: app.cpuMilliseconds, processes: app.processes, requests: app.requests,
        requestsPerSecond: requests, limits: app.limits)
    }
  }

  private static func tenths(_ number: Double) -> Double { (number * 10).rounded() / 10 }

  /// Which run of an app it is; the number alone may be another's by then.
  private struct Run: Hashable {
    let pid: Int32
    let since: Int64
    init(_ app: AppInUse) { (pid, since) = (app.pid, app.since) }
  }
}

extension DaemonStatus {
  /// A number that the daemon counts; 0 where it does not.
  fileprivate func count(_ name: String) -> Int64 {
    if case .integer(let number)? = counts[name] { number } else { 0 }
  }
}
