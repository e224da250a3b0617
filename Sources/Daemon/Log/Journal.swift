// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy
package import Store

/// The machine's journal, where there is one.
///
/// Each entry is a datagram with a field for each thing that is known. Those that names come from are sent
/// with their lengths, so nothing in them begins another field. Corresponds to systemd's native journal
/// protocol.
package struct Journal: Sendable {
  package static let usualPath = "/run/systemd/journal/socket"
  private let path: String

  /// The socket that a daemon's environment names (`INSULA_JOURNAL`, empty for none), or the usual one.
  package init?(_ environment: [String: String]) {
    let path = environment["INSULA_JOURNAL"] ?? Self.usualPath
    guard !path.isEmpty else { return nil }
    self.path = path
  }

  /// Sends entries, without waiting: what a journal that is busy has no room for is in the store's log.
  package func send(_ entries: [LogEntry]) {
    // It may have been started again.
    guard let socket = try? LocalSocket.connectDatagram(to: path) else { return }
    for entry in entries { _ = try? LocalSocket.send(Self.message(entry)[...], to: socket.fd) }
  }

  static func message(_ entry: LogEntry) -> [UInt8] {
    var message: [UInt8] = []
    func add(_ name: String, _ value: String?) {
      guard let value else { return }
      message += Array(name.utf8) + [UInt8(ascii: "\n")]
      withUnsafeBytes(of: UInt64(value.utf8.count).littleEndian) { message += $0 }
      message += Array(value.utf8) + [UInt8(ascii: "\n")]
    }
    add("MESSAGE", entry.line.sanitized)
    add("PRIORITY", entry.event == .gaveUp ? "3" : entry.event == .denied ? "5" : "6")
    add("SYSLOG_IDENTIFIER", "insula")
    add("INSULA_EVENT", entry.event.rawValue)
    add("INSULA_USER", entry.user.map { "\($0)" })
    add("INSULA_APP", entry.app)
    add("INSULA_BY", entry.by.map { "\($0)" })
    add("INSULA_PID", entry.pid.map { "\($0)" })
    add("INSULA_PROGRAM", entry.program?.sanitized)
    add("INSULA_OPERATION", entry.operation)
    add("INSULA_RULE", entry.rule)
    add("INSULA_PATH", entry.path?.sanitized)
    add("INSULA_MORE", entry.more.map { "\($0)" })
    add("INSULA_ENDING", entry.ending?.rawValue)
    add("INSULA_STATUS", entry.status.map { "\($0)" })
    add("INSULA_SIGNAL", entry.signal)
    add("INSULA_LIMIT", entry.limit)
    return message
  }
}

extension LogEntry {
  /// One line for it.
  fileprivate var line: String {
    var words = [event.rawValue]
    if let app { words.append(app) }
    if let user { words.append("uid \(user)") }
    if let by { words.append("by uid \(by)") }
    if let pid { words.append("pid \(pid)") }
    if let operation { words.append(operation) }
    if let path { words.append("/" + path) }
    if let rule { words.append("(\(rule))") }
    if let more { words.append("\(more) more") }
    if let detail { words.append(detail) }
    return words.joined(separator: " ")
  }
}
