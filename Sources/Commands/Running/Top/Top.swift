// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy

/// `insula top`.
struct TopCommand: Command {
  static let description = CommandDescription(
    name: "top", summary: "Shows what running apps use, and what a store's daemon does, as it goes on.",
    options: [
      .init(name: "once", help: "print one look and end, as happens anyway without a terminal"),
      .init(
        name: "interval", short: "i", value: "SECONDS",
        help: "how long to count before each look (default: 2, and 1 with --once)"),
      AppsAccess.userOption, AppsAccess.storeOption,
      .init(name: "json", help: "print one look as JSON, for programs"),
    ],
    details: [
      """
      Keys: q ends; m, c, t, s and n sort by memory, CPU share, CPU time, requests and name, r turns the order
      round; arrows, Page Up, Page Down, Home and End move in the list.
      """,
      """
      Requests are those that the kernel has sent to the daemon: for all views together in the first lines,
      and for an app those through its view (REQ/S). What the kernel answers from its caches never reaches
      the daemon, and the kernel does not count it, so nothing here says how much that was. The round trip is
      that of one request of our own for each look. %CPU is percent of one CPU. You see your own apps, and
      root sees those of all users.
      """,
    ],
    examples: ["insula top", "insula top --once --json --interval 5"],
    storeUse: .looks)

  private let user: String?
  private let store: String?
  private let json: Bool
  private let once: Bool
  private let seconds: Double?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    user = arguments.value("user")
    store = arguments.value("store")
    json = arguments.has("json")
    once = arguments.has("once")
    guard let text = arguments.value("interval") else {
      seconds = nil
      return
    }
    guard let number = Double(text), (0.1...3600).contains(number) else {
      throw Self.description.error("--interval takes seconds, at least 0.1 and at most 3600")
    }
    seconds = number
  }

  func run(in context: Context) throws -> ExitCode {
    let watch = TopWatch(store: store, user: try AppsAccess.user(user, context), context)
    guard !json, !once, FullScreen.isPossible(context) else { return try printOnce(watch, context.console) }
    return try TopScreen(watch, nanoseconds: Self.nanoseconds(seconds ?? 2)).run(context.console)
  }

  private func printOnce(_ watch: TopWatch, _ console: Console) throws -> ExitCode {
    let first = try watch.look()
    // Nothing tells that the time is over but time.
    _ = try waitForAny(of: [], milliseconds: Int32((seconds ?? 1) * 1000))
    let report = TopReport(from: first, to: try watch.look())
    if json {
      console.print(json: report)
    } else {
      let layout = TopLayout(report, order: TopOrder())
      console.print(lines: layout.head + [""])
      console.print(table: [TopLayout.columns] + layout.rows)
    }
    return .ok
  }

  private static func nanoseconds(_ seconds: Double) -> UInt64 { UInt64(seconds * 1_000_000_000) }
}
