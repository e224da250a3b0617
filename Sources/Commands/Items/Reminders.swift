// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// `insula reminders`.
struct RemindersCommand: Command {
  static let worksInApps = true
  private static let told = ToldItems(
    kind: .reminders,
    columns: [
      ("DUE", ["due"]), ("DONE", ["isCompleted"]), ("LIST", ["calendar"]), ("TITLE", ["title"]),
    ])
  static let description = told.description(
    "Tells an app which reminders its user has",
    """
    JSON has of each reminder (of iCalendar files): id, title, start, due, isCompleted, priority, timeZone,
    location, notes, recurrence and calendar, which is its list.
    """)

  private let json: Bool

  init(_ arguments: ParsedArguments) { json = arguments.has("json") }

  func run(in context: Context) throws -> ExitCode {
    try Self.told.tell(json: json, Self.description, context)
  }
}
