// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import ContentLines
internal import Testing

/// Events and reminders, from files of calendars.
@Suite struct CalendarReaderTests {
  private static func entries(_ text: String, _ kind: CalendarEntry.Kind = .event) -> [CalendarEntry] {
    var reader = CalendarReader(Array(text.utf8), kind)
    var entries: [CalendarEntry] = []
    while let entry = reader.next() { entries.append(entry) }
    return entries
  }

  private static func calendar(_ lines: String...) -> String {
    (["BEGIN:VCALENDAR", "VERSION:2.0"] + lines + ["END:VCALENDAR", ""]).joined(separator: "\r\n")
  }

  @Test func eventIsTold() {
    let text = Self.calendar(
      "X-WR-CALNAME:Work", "BEGIN:VTIMEZONE", "TZID:Europe/Berlin", "BEGIN:STANDARD",
      "DTSTART:19701025T030000", "END:STANDARD", "END:VTIMEZONE", "BEGIN:VEVENT", "UID:e1",
      "SUMMARY:Stand\r\n -up\\, daily", "DTSTART;TZID=Europe/Berlin:20240131T101500",
      "DTEND;TZID=Europe/Berlin:20240131T103000", "RRULE:FREQ=DAILY;COUNT=3", "LOCATION:Room 1",
      "DESCRIPTION:Bring\\ncoffee", "BEGIN:VALARM", "DESCRIPTION:Alarm", "END:VALARM", "END:VEVENT")
    #expect(
      Self.entries(text) == [
        CalendarEntry(
          id: "e1", title: "Stand-up, daily", start: "2024-01-31T10:15:00", end: "2024-01-31T10:30:00",
          isAllDay: false, timeZone: "Europe/Berlin", location: "Room 1", notes: "Bring\ncoffee",
          recurrence: "FREQ=DAILY;COUNT=3", calendar: "Work")
      ])
    #expect(Self.entries(text, .reminder).isEmpty)
  }

  @Test func daysAreNoTimes() {
    let text = Self.calendar(
      "BEGIN:VEVENT", "SUMMARY:Holiday", "DTSTART;VALUE=DATE:20241224", "DURATION:P3D", "END:VEVENT",
      "BEGIN:VEVENT", "RECURRENCE-ID:20240201T090000Z", "DTSTART:20240201T100000Z", "END:VEVENT",
      "BEGIN:VEVENT", "DTSTART:whenever", "END:VEVENT")
    #expect(
      Self.entries(text) == [
        CalendarEntry(title: "Holiday", start: "2024-12-24", duration: "P3D", isAllDay: true),
        CalendarEntry(
          start: "2024-02-01T10:00:00Z", isAllDay: false, occurrence: "2024-02-01T09:00:00Z"),
        CalendarEntry(isAllDay: false),
      ])
  }

  @Test func reminderIsTold() {
    let text = Self.calendar(
      "NAME:Shopping", "BEGIN:VTODO", "UID:r1", "SUMMARY:Milk", "DUE;TZID=Europe/Paris:20240131T180000",
      "PRIORITY:1", "STATUS:NEEDS-ACTION", "END:VTODO", "BEGIN:VTODO", "SUMMARY:Bread", "STATUS:completed",
      "PRIORITY:77", "END:VTODO", "BEGIN:VEVENT", "SUMMARY:No reminder", "END:VEVENT")
    #expect(
      Self.entries(text, .reminder) == [
        CalendarEntry(
          id: "r1", title: "Milk", timeZone: "Europe/Paris", due: "2024-01-31T18:00:00", isCompleted: false,
          priority: 1, calendar: "Shopping"),
        CalendarEntry(title: "Bread", isCompleted: true, calendar: "Shopping"),
      ])
  }

  @Test func whatHasNoEndIsNoEntry() {
    #expect(Self.entries("BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Half").isEmpty)
    #expect(Self.entries("BEGIN:VEVENT\nSUMMARY:Alone\nEND:VEVENT").map(\.title) == ["Alone"])
    #expect(Self.entries("END:VEVENT\nEND:VEVENT\nSUMMARY:x").isEmpty)
    for depth in [10, 100_000] {
      let deep = String(repeating: "BEGIN:VCALENDAR\n", count: depth)
      let text = deep + "BEGIN:VEVENT\nSUMMARY:Deep\nEND:VEVENT\n"
      #expect(Self.entries(text).map(\.title) == (depth == 10 ? ["Deep"] : []))
    }
  }
}
