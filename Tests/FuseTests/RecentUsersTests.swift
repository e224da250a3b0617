// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Fuse
internal import LinuxIO
internal import TestSupport
internal import Testing

@Suite struct RecentUsersTests {
  /// Whether a user presses after requests of these.
  private func presses(_ user: UInt32, after requests: [UInt32], isOver: Bool = false) -> Bool {
    let users = RecentUsers()
    for user in requests { users.note(user) }
    if isOver { users.forget() }
    return users.isPressing(user)
  }

  @Test func nobodyPressesAlone() {
    #expect(!presses(1000, after: Array(repeating: 1000, count: 1000)))
  }

  @Test func whoeverAsksTwiceInARowPresses() {
    let requests: [UInt32] = [1000, 1000, 1001, 1000, 1000]
    #expect(presses(1000, after: requests))
    #expect(!presses(1001, after: requests), "one request among another's is no flood")
    #expect(!presses(1000, after: requests, isOver: true))
  }

  @Test func itIsOverWhenTheOthersHaveGone() {
    #expect(presses(1000, after: [1001] + Array(repeating: 1000, count: 200)))
    #expect(!presses(1000, after: [1001] + Array(repeating: 1000, count: 300)))
  }

  /// A listing of whoever presses comes in pages that do not take long; others get what they asked for.
  @Test(arguments: [Opcode.readdir, .readdirplus])
  func listingsOfOneWhoPressesComeInShortPages(opcode: Opcode) throws {
    let kernel = try KernelEnd(FakeFiles(listed: (0..<1000).map { "a name of some length, \($0)" }))
    _ = try kernel.ask(.initialize())
    func page(of user: UInt32) throws -> Int {
      let body = long(3, 0) + words(32 << 10, 0) + long(0) + words(0, 0)
      return try kernel.ask(Message(opcode, unique: 10, uid: user, body)).bytes.count
    }
    let whole = try page(of: 1000)
    #expect(whole > 30 << 10)
    for user: UInt32 in [1001, 1000, 1000] { kernel.session.recentUsers.note(user) }
    let short = try page(of: 1000)
    #expect(short <= 4096 + 16 && short > 3600, "\(short)")
    #expect(try page(of: 1001) == whole)
  }
}
