// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// A report as lines.
struct TopLayout {
  static let columns = ["PID", "USER", "MEMORY", "%CPU", "TIME", "REQ/S", "APP", "PROCESSES", "LIMITS"]

  /// What is said of the store and its daemon.
  let head: [String]
  /// An app each, by columns.
  let rows: [[String]]

  init(_ report: TopReport, order: TopOrder) {
    let users = Set(report.apps.map(\.user)).count
    let daemon = report.daemon
    let up = report.uptimeSeconds.map { ", up \(Self.duration($0))" } ?? ""
    let trip = report.roundTripMicroseconds.map { ", round trip \($0) µs" } ?? ""
    let kinds = report.requestsPerSecondByKind.inOrder { ($1.value, $0.key) < ($0.value, $1.key) }.prefix(6)
    head = [
      "\(report.mountPoint) (\(report.mode) mode)\(up), "
        + "\(Self.count(report.apps.count, "app")) of \(Self.count(users, "user"))",
      "\(Self.rate(report.requestsPerSecond)) requests/s\(trip), \(report.requests) requests in all",
      kinds.isEmpty
        ? "no requests" : kinds.map { "\($0.key) \(Self.rate($0.value))/s" }.joined(separator: ", "),
      "daemon \(daemon.pid): \(Int(clamping: daemon.memory).asSize), \(daemon.cpuPercent)% CPU, "
        + "\(daemon.threads) threads, \(daemon.descriptors) descriptors, \(daemon.nodes) nodes, "
        + "\(daemon.openFiles) open files, \(daemon.locks) locks, "
        + Self.count(Int(daemon.restarts), "restart"),
    ]
    rows = order.sorted(report.apps).map { app in
      [
        "\(app.pid)", Account.numbered(app.user)?.name ?? "\(app.user)", Int(clamping: app.memory).asSize,
        "\(app.cpuPercent)", AppInUse.text(ofMilliseconds: app.cpuMilliseconds),
        app.requestsPerSecond.map(Self.rate) ?? "-", app.identifier, "\(app.processes)",
        app.limits.kinds.isEmpty ? "-" : app.limits.text,
      ]
    }
  }

  private static func count(_ number: Int, _ noun: String) -> String {
    number == 1 ? "1 \(noun)" : "\(number) \(noun)s"
  }

  /// What is more than a hundred needs no tenths.
  private static func rate(_ number: Double) -> String {
    number < 100 ? "\(number)" : "\(Int64(exactly: number.rounded()) ?? .max)"
  }

  private static func duration(_ seconds: UInt64) -> String {
    switch seconds {
    case ..<60: "\(seconds) s"
    case ..<3600: "\(seconds / 60) min"
    case ..<86_400: "\(seconds / 3600) h \(seconds / 60 % 60) min"
    default: "\(seconds / 86_400) d \(seconds / 3600 % 24) h"
    }
  }
}
