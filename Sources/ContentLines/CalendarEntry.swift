// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What is told of an event or a reminder.
package struct CalendarEntry: Codable, Equatable, Sendable {
  package enum Kind: Sendable {
    case event, reminder

    var component: String { self == .event ? "VEVENT" : "VTODO" }
  }

  /// The entry's own; nil if it has none.
  package var id: String?
  package var title = ""
  /// Days as `2024-01-31`, times as `2024-01-31T10:15:00`, with a Z at their end in UTC, and else in the
  /// time zone.
  package var start: String?
  package var end: String?
  /// How long it takes, as RFC 5545 writes that, where no end is said.
  package var duration: String?
  package var isAllDay: Bool?
  package var timeZone: String?
  package var location: String?
  package var notes: String?
  /// By which rule it comes again, as RFC 5545 writes that.
  package var recurrence: String?
  /// Which time of those it comes again stands for, where it differs from the others.
  package var occurrence: String?
  /// When a reminder is due, and whether it is done.
  package var due: String?
  package var isCompleted: Bool?
  package var priority: Int?
  /// What the calendar or list is called; nil where nothing says so.
  package var calendar: String?
}

/// The events or reminders of a file, one after the other.
package struct CalendarReader {
  private var lines: ContentLineReader
  private let kind: CalendarEntry.Kind
  private var calendar: String?
  /// The components in which the reader is.
  private var open: [[UInt8]] = []

  /// Deeper ones are left out.
  private static let deepest = 16

  package init(_ bytes: [UInt8], _ kind: CalendarEntry.Kind) {
    lines = ContentLineReader(bytes)
    self.kind = kind
  }

  /// Nil at the end.
  package mutating func next() -> CalendarEntry? {
    while let line = lines.next() {
      switch line.name {
      case "BEGIN" where line.value[...].isSame(as: kind.component):
        if let entry = entry() { return entry }
      case "BEGIN": open.count < Self.deepest ? open.append(line.value) : skip()
      case "END": _ = open.popLast()
      case "X-WR-CALNAME", "NAME":
        guard open.count == 1 else { break }
        var text = TextAllowance()
        calendar = calendar ?? text.take(line.text, atMost: 200)
      default: break
      }
    }
    return nil
  }

  /// Goes past a component and all in it.
  private mutating func skip() {
    var depth = 1
    while depth > 0, let line = lines.next() {
      if line.name == "BEGIN" { depth += 1 } else if line.name == "END" { depth -= 1 }
    }
  }

  /// Nil if it has no end.
  private mutating func entry() -> CalendarEntry? {
    var entry = CalendarEntry()
    var text = TextAllowance()
    while let line = lines.next() {
      switch line.name {
      // Alarms, of which nothing is told.
      case "BEGIN": skip()
      case "END":
        entry.calendar = calendar.flatMap { text.take($0, atMost: 200) }
        if kind == .event { entry.isAllDay = entry.isAllDay ?? false }
        if kind == .reminder { entry.isCompleted = entry.isCompleted ?? false }
        return entry
      default: entry.add(line, kind, &text)
      }
    }
    return nil
  }
}

extension CalendarEntry {
  fileprivate mutating func add(_ line: ContentLine, _ kind: Kind, _ text: inout TextAllowance) {
    switch line.name {
    case "UID": id = id ?? text.take(line.text, atMost: 200)
    case "SUMMARY": if title.isEmpty { title = text.take(line.text) ?? "" }
    case "DTSTART":
      guard start == nil, let moment = Moment(line.word) else { break }
      start = moment.text
      if kind == .event { isAllDay = moment.isDate }
      note(zoneOf: line, &text)
    case "DTEND": end = end ?? Moment(line.word)?.text
    case "DURATION": duration = duration ?? text.take(line.word, atMost: 40)
    case "LOCATION": location = location ?? text.take(line.text)
    case "DESCRIPTION": notes = notes ?? text.take(line.text, atMost: 4000)
    case "RRULE": recurrence = recurrence ?? text.take(line.word, atMost: 500)
    case "RECURRENCE-ID": occurrence = occurrence ?? Moment(line.word)?.text
    case "DUE" where kind == .reminder:
      guard due == nil, let moment = Moment(line.word) else { break }
      due = moment.text
      note(zoneOf: line, &text)
    case "COMPLETED" where kind == .reminder: isCompleted = true
    case "STATUS" where kind == .reminder && line.value[...].isSame(as: "COMPLETED"): isCompleted = true
    case "PRIORITY" where kind == .reminder:
      priority = priority ?? Int(line.word).flatMap { (1...9).contains($0) ? $0 : nil }
    default: break
    }
  }

  private mutating func note(zoneOf line: ContentLine, _ text: inout TextAllowance) {
    timeZone = timeZone ?? line.values(of: "TZID").first.flatMap { text.take($0, atMost: 100) }
  }
}
