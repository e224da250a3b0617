// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Daemon
internal import Policy
internal import Synchronization
internal import Testing

/// Which reading goes to whom, and when it is over.
struct ReadingsTests {
  private final class Clock: Sendable {
    let time = Atomic<UInt64>(1)
    func pass(seconds: UInt64) { time.wrappingAdd(seconds * 1_000_000_000, ordering: .relaxed) }
  }

  private let clock = Clock()
  private let readings: Readings

  init() {
    readings = Readings { [clock] in clock.time.load(ordering: .relaxed) }
  }

  private static let app = AgentApp(identifier: "org.example.player", name: "Player", team: "TEAM")

  @discardableResult
  private func add(_ call: PromptCall, view: UInt64 = 1, _ kind: PrivateItems = .songs) -> Bool {
    readings.add(.read(ReadingTask(ItemsQuery(kind), home: "anna")), for: Self.app, view: view, call)
  }

  /// A process reads for the app that it has started, and for no other.
  @Test func readerGetsWhatItsOwnAppWants() throws {
    let (call, other) = (PromptCall(), PromptCall())
    let reader = try #require(readings.join(view: 1))
    let stranger = try #require(readings.join(view: 2))
    add(call)
    #expect(readings.next(for: stranger, view: 2) == nil)
    // Nor by the number of another one.
    #expect(readings.next(for: stranger, view: 1) == nil)
    let task = try #require(readings.next(for: reader, view: 1))
    #expect(task.question == .read(ReadingTask(ItemsQuery(.songs), home: "anna")))
    add(other, view: 2)
    #expect(readings.answered(task.number, by: stranger) == nil)
    #expect(readings.answered(task.number, by: reader) === call)
    #expect(readings.answered(task.number, by: reader) == nil)
    // Whoever was given nothing has nothing to answer.
    #expect(readings.answered(task.number + 1, by: stranger) == nil)
    withExtendedLifetime((call, other)) {}
  }

  @Test func oneIsReadAtATime() throws {
    let (first, second) = (PromptCall(), PromptCall())
    add(first)
    add(second, .contacts)
    let reader = try #require(readings.join(view: 1))
    let task = try #require(readings.next(for: reader, view: 1))
    #expect(readings.next(for: reader, view: 1) == nil)
    #expect(readings.answered(task.number, by: reader) === first)
    #expect(
      readings.next(for: reader, view: 1)?.question == .read(ReadingTask(ItemsQuery(.contacts), home: "anna"))
    )
    withExtendedLifetime((first, second)) {}
  }

  /// An app that ends in the middle.
  @Test func nobodyReadsForThoseWhoHaveGone() throws {
    let reader = try #require(readings.join(view: 1))
    var call: PromptCall? = PromptCall()
    if let call { add(call) }
    let task = try #require(readings.next(for: reader, view: 1))
    call = nil
    #expect(readings.answered(task.number, by: reader) == nil)
    add(PromptCall())
    #expect(readings.next(for: reader, view: 1) == nil)
    #expect(readings.counts.readings == 0)
  }

  /// The process that reads connects again, and nobody takes its place while it is there.
  @Test func readerMayComeBack() throws {
    let call = PromptCall()
    add(call)
    let reader = try #require(readings.join(view: 1))
    #expect(readings.join(view: 1) == nil)
    let task = try #require(readings.next(for: reader, view: 1))
    readings.leave(reader, view: 1)
    readings.leave(reader + 7, view: 1)
    #expect(readings.answered(task.number, by: reader) == nil)
    let next = try #require(readings.join(view: 1))
    #expect(readings.next(for: next, view: 1) == task)
    #expect(readings.answered(task.number, by: next) === call)
    withExtendedLifetime(call) {}
  }

  /// One that hangs, and none at all.
  @Test func waitingHasAnEnd() throws {
    let (alone, given) = (PromptCall(), PromptCall())
    #expect(add(alone))
    // Somebody looks at the time by now.
    #expect(!add(given, view: 2))
    let reader = try #require(readings.join(view: 2))
    let task = try #require(readings.next(for: reader, view: 2))
    #expect(readings.expire().late.isEmpty)
    clock.pass(seconds: 11)
    var late = readings.expire()
    #expect(late.late.count == 1 && late.late.first?.call === alone && late.late.first?.hadReader == false)
    #expect((late.milliseconds ?? 0) > 15_000)
    clock.pass(seconds: 50)
    late = readings.expire()
    #expect(late.late.first?.call === given && late.late.first?.hadReader == true)
    #expect(late.milliseconds == nil)
    #expect(readings.answered(task.number, by: reader) == nil)
    #expect(add(alone))
  }

  /// Two long videos of one app: the second is not late because the first takes long.
  @Test func waitingForAnotherOfTheSameAppTakesNoTime() throws {
    let (first, second, other) = (PromptCall(), PromptCall(), PromptCall())
    for call in [first, second] { add(call) }
    let reader = try #require(readings.join(view: 1))
    let task = try #require(readings.next(for: reader, view: 1))
    clock.pass(seconds: 25)
    add(other, view: 2)
    #expect(readings.expire().late.isEmpty)
    #expect(readings.answered(task.number, by: reader) === first)
    clock.pass(seconds: 9)
    #expect(readings.expire().late.isEmpty)
    // From then on it waits for a reader who has nothing to do.
    clock.pass(seconds: 2)
    #expect(readings.expire().late.map(\.call).contains { $0 === second })
    // Where the first is late, the second has its time from then on.
    for call in [first, second] { add(call) }
    _ = try #require(readings.next(for: reader, view: 1))
    clock.pass(seconds: 31)
    #expect(readings.expire().late.map(\.call).contains { $0 === first })
    #expect(readings.next(for: reader, view: 1) != nil)
    withExtendedLifetime((second, other)) {}
  }
}
