// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

// How an app has ended, as the log says it.
//
// What the process says that has waited for the app is its user's word. Who has ended the app with 'insula
// kill', or by unmounting the store, is the daemon's own knowledge, and nobody else's word counts there.

extension LogEntry {
  /// The view of an app has ended, and with it all that ran in it.
  init(ended running: RunningView) {
    let end = running.knownEnd
    self.init(
      ended: end, user: running.user, app: running.launch.app.identifier.text, pid: running.pid,
      since: running.since)
  }

  /// `since`: when it began, in seconds since 1970.
  init(ended end: KnownEnd, user: UInt32, app: String, pid: Int32, since: Int64) {
    self.init(now: .ended, user: user, app: app, by: end.wished?.by, pid: pid)
    status = end.told?.status
    let number = end.signal
    signal = number.flatMap(SignalName.of)
    limit = end.told?.limit?.rawValue
    ending = end.ending
    // What another worker has left of it may be damaged.
    var words = ["after \(max(0, (time / 1000).subtractingReportingOverflow(since).partialValue)) s"]
    if let cause = end.cause { words.append(cause) }
    if let status {
      words.append(signal.map { "signal \($0)" } ?? "exit status \(status)")
    } else if let signal {
      words.append("signal \(signal)")
    }
    if ending != .memory, let limit { words.append("had reached its limit of \(limit)") }
    detail = words.joined(separator: ", ")
  }
}

extension KnownEnd {
  /// Who has wished the end that came, and whether that was by unmounting.
  ///
  /// A signal that it has survived, or that it has ended without, was not the reason.
  fileprivate var wished: (by: UInt32?, isUnmount: Bool)? {
    switch wish {
    case .none: nil
    case .unmount(let user): (user, true)
    case .kill(let user, nil): (user, false)
    // That one ends the process, too, that waits for the app.
    case .kill(let user, SIGKILL?) where told == nil: (user, false)
    case .kill(let user, let signal?): told?.status == 128 + signal ? (user, false) : nil
    }
  }

  /// The signal that has ended it.
  ///
  /// A program that exits with such a status by itself means the same, by a custom of shells.
  fileprivate var signal: Int32? {
    if let status = told?.status { return status > 128 && status <= 128 + 64 ? status - 128 : nil }
    guard told == nil, case .kill(_, SIGKILL?) = wish else { return nil }
    return SIGKILL
  }

  fileprivate var ending: LogEntry.Ending {
    if let wished { return wished.isUnmount ? .unmounted : .killed }
    guard let told else { return .unknown }
    guard told.status != nil else { return .notStarted }
    guard let signal else { return .exited }
    return signal == SIGKILL && told.limit == .memory ? .memory : .signal
  }

  /// Why that was, in words; nil where the status says all.
  fileprivate var cause: String? {
    switch ending {
    case .killed: "by 'insula kill'"
    case .unmounted: "because the store was unmounted"
    case .memory: "by the kernel, because it used more memory than its limit"
    case .notStarted: "without being started"
    case .unknown: "nobody knows how: 'insula run' was ended before it could tell"
    default: nil
    }
  }
}
