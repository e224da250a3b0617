// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Store

/// What there is to see at one moment.
struct TopSample {
  let nanoseconds: UInt64
  let status: DaemonStatus
  let apps: [AppInUse]
  /// The process that serves.
  let daemon: ProcessTable.Entry?
  /// How long the process runs that came first, of those that have served.
  let uptimeSeconds: UInt64?
  let roundTripNanoseconds: UInt64?
}

/// Looks again and again at a store's daemon and its apps.
struct TopWatch {
  private let store: String?
  private let user: UInt32?
  private let context: Context
  private let roundTrip = RoundTrip()

  init(store: String?, user: UInt32?, _ context: Context) {
    self.store = store
    self.user = user
    self.context = context
  }

  /// Throws where no daemon answers any more.
  ///
  /// It is searched for each time: it may be another process by then.
  func look() throws -> TopSample {
    let found = try daemon()
    let access = DaemonAccess(found, context)
    let apps = try access.running(for: user)
    let table = ProcessTable()
    let first = table[found.status.keeper ?? found.status.pid]
    return TopSample(
      nanoseconds: monotonicNanoseconds(), status: found.status, apps: AppInUse.all(apps, in: table),
      daemon: table[found.status.pid], uptimeSeconds: first.flatMap { Self.age(of: $0) },
      roundTripNanoseconds: roundTrip.measure(at: found.status.mountPoint))
  }

  private func daemon() throws -> DaemonSearch.Found {
    if let found = DaemonSearch(context).daemon(at: DaemonSearch.paths(of: store, context)) { return found }
    // Who has no store of their own means the machine's.
    if store == nil, let machines = DaemonSearch(context).daemon(at: [context.machineStore]) {
      return machines
    }
    return try DaemonSearch.require(store, context)
  }

  private static func age(of process: ProcessTable.Entry) -> UInt64? {
    guard let word = FD.text(of: "/proc/uptime", limit: 64)?.parts(between: " ").first,
      let uptime = Double(word), (0..<1e12).contains(uptime)
    else { return nil }
    let now = UInt64(uptime)
    return now - min(now, process.started / ProcessTable.ticksPerSecond)
  }
}
