// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store

/// Prints entries of a log: a line for each, and below a refusal one that says what would allow it.
///
/// `Console` makes one line of each, whatever names are in it.
struct LogLines {
  private let console: Console
  private let names: AccountNames
  private let root: String
  private let json: Bool

  init(_ access: any StoreAccess, json: Bool) {
    console = access.context.console
    names = access.context.names
    root = access.root
    self.json = json
  }

  func show(_ entries: [LogEntry]) {
    for entry in entries {
      if json {
        console.print(jsonLine: LogRecord(entry, root: root))
      } else {
        console.print(lines: lines(entry))
      }
    }
  }

  private func lines(_ entry: LogEntry) -> [String] {
    let words = LogWords(entry, path: path(entry))
    var who: [String] = []
    if let user = entry.user { who.append(name(user)) }
    if let by = entry.by { who.append("by \(name(by))") }
    let time = LogTime.text(entry.time)
    let whose = who.isEmpty ? "" : " [\(who.joined(separator: ", "))]"
    var lines = ["\(time)\(whose) \(words.sentence)"]
    if let advice = words.advice { lines.append("    \(advice)") }
    return lines
  }

  private func name(_ user: UInt32) -> String { names.userName(user) ?? "uid \(user)" }

  private func path(_ entry: LogEntry) -> String? { entry.path.map { "\(root)/\($0)" } }
}

/// An entry as programs get it.
private struct LogRecord: Encodable {
  let time: String
  let event: String
  let user: UInt32?
  let app: String?
  let by: UInt32?
  let pid: Int32?
  let program: String?
  let operation: String?
  let path: String?
  /// In hexadecimal, where the path is no UTF-8, so that what is above it is not all of the truth.
  let pathBytes: String?
  let rule: String?
  /// What would allow it, in words.
  let advice: String?
  let more: UInt64?
  let until: String?
  /// How an app has ended.
  let ending: String?
  let status: Int32?
  let signal: String?
  let limit: String?
  let detail: String?

  init(_ entry: LogEntry, root: String) {
    time = LogTime.isoText(entry.time)
    event = entry.event.rawValue
    user = entry.user
    app = entry.app
    by = entry.by
    pid = entry.pid
    program = entry.program
    operation = entry.operation
    path = entry.path.map { "\(root)/\($0)" }
    pathBytes = entry.pathBytes.map { Array("\(root)/".utf8).asHexadecimal + $0 }
    rule = entry.rule
    advice = LogWords(entry, path: path).advice
    more = entry.more
    until = entry.until.map(LogTime.isoText)
    ending = entry.ending?.rawValue
    status = entry.status
    signal = entry.signal
    limit = entry.limit
    detail = entry.detail
  }
}
