// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// `insula events`.
struct EventsCommand: Command {
  static let worksInApps = true
  private static let told = ToldItems(
    kind: .events,
    columns: [
      ("START", ["start"]), ("END", ["end", "duration"]), ("CALENDAR", ["calendar"]), ("TITLE", ["title"]),
    ])
  static let description = told.description(
    "Tells an app which events are in its user's calendars",
    """
    JSON has of each event (of iCalendar files): id, title, start, end or duration, isAllDay, timeZone,
    location, notes, recurrence (a rule of RFC 5545), occurrence and calendar. Times without a Z at their end
    are in the time zone.
    """)

  private let json: Bool

  init(_ arguments: ParsedArguments) { json = arguments.has("json") }

  func run(in context: Context) throws -> ExitCode {
    try Self.told.tell(json: json, Self.description, context)
  }
}
