// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store

/// `insula log`.
struct LogCommand: Command {
  static let description = CommandDescription(
    name: "log", summary: "Shows what was refused, by which rule and what would allow it, and what was done.",
    arguments: [.init(name: "ID", help: "only what concerns this app: its identifier or name", kind: .app)],
    options: [
      .init(name: "follow", short: "f", help: "go on with what happens, from the last ten entries"),
      .init(name: "denied", help: "only what was refused"),
      .init(name: "since", value: "TIME", help: "only what has happened since then (see below)"),
      AppsAccess.userOption, AppsAccess.storeOption,
      .init(name: "json", help: "print JSON, an object to a line, for programs"),
    ],
    details: [
      """
      Lists what apps and users were refused, apps that were launched and have ended, grants and their
      revocations, apps that were installed, updated and uninstalled, changes of the system domain, and the
      store's mounts. You see what concerns you and the whole machine; root, and the owner of a store, see
      all.
      """,
      """
      TIME is a time ago (10m, 2h, 3d), 'today', 'yesterday', a date (2026-11-24), or a date and a time
      (2026-11-24 10:00, or as in ISO 8601).
      """,
      """
      For an app that has ended, the log says how: its exit status, or the signal that this stands for; that
      it reached a limit of memory or processes; that 'insula kill' or an unmount ended it, and by whom. The
      status is what 'insula run' says that has waited for the app; if that was killed itself, nobody knows.
      In JSON, 'ending' is one of exited, signal, memory, killed, unmounted, not-started and unknown, beside
      'status', 'signal' and 'limit'. JSON has names as they are; of a path that is no UTF-8, 'pathBytes' has
      the bytes in hexadecimal.
      """,
      """
      An app is refused something by a rule; a file that is not in its view does not exist for it, and looking
      for that is not listed. Nor is what a user's mode bits refuse outside of apps, as on every Linux. What
      is refused again and again is counted, and gets a line each minute. An app that is refused very many
      different things has the rest of them counted only.
      """,
      """
      The log is in the store, and also goes to the journal where there is one. Of each user the newest two
      megabytes of refusals and the newest megabyte of all else are kept.
      """,
    ],
    examples: [
      "insula log --since today", "insula log Notes --denied", "insula log --follow --json",
    ],
    storeUse: .looks)

  private let app: AppReference?
  private let follows: Bool
  private let deniedOnly: Bool
  private let since: String?
  private let user: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    app = try arguments.argument(0).map { (text) throws(UsageError) in try Self.description.app(text) }
    follows = arguments.has("follow")
    deniedOnly = arguments.has("denied")
    since = arguments.value("since")
    user = arguments.value("user")
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    var query = LogQuery(deniedOnly: deniedOnly)
    query.since = try since.map { (text) throws(UsageError) in try Self.time(text, context) }
    query.user = try AppsAccess.user(user, context)
    let access = try AppsAccess.find(store, context)
    query.app = try app.map { try identifier($0, access, query.user) }
    let isEmpty = try show(from: &query, access)
    if follows { try follow(&query, access, context) }
    if isEmpty, !json { context.console.print("There are no entries.") }
    return .ok
  }

  private static func time(_ text: String, _ context: Context) throws(UsageError) -> Int64 {
    guard let seconds = LogTime.seconds(of: text, now: context.now()) else {
      throw description.error(
        "'\(text)' is no time; write for example 10m, 2h, 3d, today, 2026-11-24 or '2026-11-24 10:00'")
    }
    return seconds.multipliedReportingOverflow(by: 1000).partialValue
  }

  /// The app that is meant; one that is not installed any more is known by its identifier alone.
  private func identifier(_ app: AppReference, _ access: any StoreAccess, _ user: UInt32?) throws -> String {
    try access.identifier(of: app, for: user).text
  }

  /// Shows all that there is; whether that was nothing.
  private func show(from query: inout LogQuery, _ access: any StoreAccess) throws -> Bool {
    let lines = LogLines(access, json: json)
    var isEmpty = true
    // Who only wants to follow sees where that begins.
    let isTail = follows && since == nil
    var last: [LogEntry] = []
    while true {
      let page = try access.log(query)
      query.after = page.next
      if !page.entries.isEmpty { isEmpty = false }
      if isTail {
        last = (last + page.entries).suffix(10)
      } else {
        lines.show(page.entries)
      }
      if !page.isMore { break }
    }
    lines.show(last)
    return isEmpty
  }

  private static let pauseMilliseconds: Int32 = 500

  /// Shows what comes, until whoever reads it has gone, or the store is unmounted.
  private func follow(_ query: inout LogQuery, _ access: any StoreAccess, _ context: Context) throws {
    let lines = LogLines(access, json: json)
    while true {
      let page: LogPage
      do {
        page = try access.log(query)
      } catch {
        // Then the store itself can be asked for the last entries, which tell of that.
        guard let store = try? AppsAccess.find(store, context), let last = try? store.log(query) else {
          throw error
        }
        lines.show(last.entries)
        return
      }
      query.after = page.next
      lines.show(page.entries)
      // Nothing tells of new entries, but somebody may stop reading.
      if !page.isMore, try FD(1).waitUntilHungUp(milliseconds: Self.pauseMilliseconds) { return }
      if context.console.hasFailed { return }
    }
  }
}
