// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
@testable internal import Fuse
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Requests that wait, and those that stop waiting.
struct ParkedReplyTests {
  private static func wait(_ unique: UInt64) -> Message {
    Message(.setlkw, unique: unique, Sample.lock(1, 0, 9))
  }
  private static func interrupt(_ unique: UInt64, of waiting: UInt64) -> Message {
    Message(.interrupt, unique: unique, node: 0, long(waiting))
  }

  private func started() throws -> (FakeFiles, KernelEnd) {
    let files = FakeFiles(parks: true)
    let kernel = try KernelEnd(files)
    _ = try kernel.ask(.initialize())
    return (files, kernel)
  }

  @Test func parkedRequestIsAnsweredOnceWhenGranted() throws {
    let (files, kernel) = try started()
    kernel.process(Self.wait(10))
    #expect(try kernel.replies().isEmpty)
    #expect(kernel.session.parked.count == 1)
    let parked = try #require(files.parked.first)
    #expect(!parked.isClaimed && parked.claim() && !parked.claim() && parked.isClaimed)
    parked.send(nil)
    let replies = try kernel.replies()
    #expect(replies.map(\.unique) == [10] && replies.map(\.code) == [0])
    #expect(kernel.session.parked.count == 0)
    // Too late: nobody waits any more, so this belongs to a request that is still to come, and the kernel is
    // told so.
    kernel.process(Self.interrupt(11, of: 10))
    let late = try kernel.replies()
    #expect(late.allSatisfy { $0.unique == 11 })
    #expect(!files.names.contains("abandoned"))
  }

  @Test func interruptAnswersAndAbandons() throws {
    let (files, kernel) = try started()
    kernel.process(Self.wait(20))
    kernel.process(Self.wait(22))
    kernel.process(Self.interrupt(21, of: 20))
    let replies = try kernel.replies().filter { $0.unique != 21 }
    #expect(replies.map(\.unique) == [20] && replies.map(\.code) == [-EINTR])
    #expect(files.names.filter { $0 == "abandoned" }.count == 1)
    let first = try #require(files.parked.first)
    let second = try #require(files.parked.last)
    #expect(!first.claim() && second.claim())
    second.send(.EDEADLK)
    let rest = try kernel.replies()
    #expect(rest.map(\.unique) == [22] && rest.map(\.code) == [-EDEADLK])
    #expect(kernel.session.parked.count == 0)
  }

  @Test func interruptThatComesFirstIsNotLost() throws {
    let (files, kernel) = try started()
    kernel.process(Self.interrupt(31, of: 30))
    #expect(try kernel.replies().isEmpty)
    kernel.process(Self.wait(30))
    let replies = try kernel.replies()
    #expect(replies.filter { $0.unique == 30 }.map(\.code) == [-EINTR])
    #expect(files.names.filter { $0 == "abandoned" }.count == 1 && kernel.session.parked.count == 0)
    #expect(files.parked.first?.isClaimed == true)
  }

  @Test func endOfTheSessionAnswersThoseWhoWait() throws {
    let (files, kernel) = try started()
    for unique in UInt64(40)..<45 { kernel.process(Self.wait(unique)) }
    let granted = try #require(files.parked.first)
    #expect(granted.claim())
    kernel.session.finish()
    granted.send(nil)
    let replies = try kernel.replies().sorted { $0.unique < $1.unique }
    #expect(replies.map(\.unique) == [40, 41, 42, 43, 44])
    #expect(replies.map(\.code) == [0] + Array(repeating: -ECONNABORTED, count: 4))
  }

  /// Grants and interrupts race on two threads; each request has exactly one answer.
  @Test func grantAndInterruptAtOnceGiveOneAnswer() throws {
    let (files, kernel) = try started()
    var granted = 0
    for round in 0..<2000 {
      let unique = UInt64(100 + 2 * round)
      kernel.process(Self.wait(unique))
      let parked = try #require(files.parked.last)
      let thread = try JoinableThread(name: "granting") { if parked.claim() { parked.send(nil) } }
      kernel.process(Self.interrupt(unique + 1, of: unique))
      thread.join()
      let replies = try kernel.replies().filter { $0.unique == unique }
      #expect(replies.count == 1)
      if replies.first?.code == 0 { granted += 1 } else { #expect(replies.first?.code == -EINTR) }
    }
    #expect(kernel.session.parked.count == 0)
    #expect(granted + files.names.filter { $0 == "abandoned" }.count == 2000)
  }
}
