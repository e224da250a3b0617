// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// When keys begin to answer a question, with a clock of the test's.
@Suite struct QuietPeriodTests {
  private static let length = QuietPeriod.length

  private enum Event {
    case key(UInt64)
    case look(UInt64)
  }

  /// The time at which it was over; nil if it never was.
  private func end(_ events: [Event]) -> UInt64? {
    var quiet = QuietPeriod(from: 1000)
    for event in events {
      switch event {
      case .key(let time): quiet.disturb(at: time)
      case .look(let time): if quiet.pass(at: time) { return time }
      }
    }
    return nil
  }

  @Test func itLastsSevenHundredMilliseconds() {
    #expect(Self.length == 700_000_000)
    #expect(end([.look(1000 + Self.length - 1)]) == nil)
    #expect(end([.look(1000 + Self.length)]) == 1000 + Self.length)
    #expect(end([.look(1000), .look(500), .look(1000 + 2 * Self.length)]) == 1000 + 2 * Self.length)
  }

  @Test func eachKeyBeginsItAnew() {
    let key = 1000 + Self.length / 2
    #expect(end([.key(key), .look(1000 + Self.length)]) == nil)
    #expect(end([.key(key), .look(key + Self.length - 1)]) == nil)
    #expect(end([.key(key), .look(key + Self.length)]) == key + Self.length)
    #expect(end([.key(key), .key(key + 5), .look(key + Self.length)]) == nil)
  }

  /// A process that was kept from looking finds keys that came long before.
  @Test func timeAloneDoesNotEndIt() {
    let late = 1000 + 10 * Self.length
    #expect(end([.key(late), .look(late), .look(late + Self.length - 1)]) == nil)
    #expect(end([.key(late), .look(late + Self.length)]) == late + Self.length)
  }

  @Test func itEndsOnce() {
    var quiet = QuietPeriod(from: 0)
    #expect(quiet.left(at: 0) == Self.length && quiet.left(at: 1) == Self.length - 1)
    #expect(quiet.left(at: 2 * Self.length) == 0 && !quiet.isOver)
    #expect(quiet.pass(at: Self.length) && quiet.isOver && quiet.left(at: 0) == nil)
    quiet.disturb(at: 2 * Self.length)
    #expect(quiet.isOver && !quiet.pass(at: 9 * Self.length))
    var last = QuietPeriod(from: .max)
    last.disturb(at: .max)
    #expect(last.left(at: .max) == 0)
  }
}
