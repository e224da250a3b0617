// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing
@testable internal import Volume

/// A kernel's end that counts what it is told, and may do something meanwhile.
private final class CountingConnection: Connection {
  let passthrough = false
  let sharesDirectMaps = false
  let attributes = Atomic<Int>(0)
  let entries = Atomic<Int>(0)
  /// How often it has been asked for a node, and when it has it.
  let asked = Atomic<Int>(0)
  let arrival = Atomic<Int>(0)
  private let during = Mutex<(@Sendable () -> Void)?>(nil)

  /// Does something the next time that it is told to forget attributes, before that has arrived.
  func once(_ body: @escaping @Sendable () -> Void) { during.withLock { $0 = body } }

  func attributesChanged(_ node: NodeID) {
    let body = during.withLock { during in
      defer { during = nil }
      return during
    }
    body?()
    attributes.wrappingAdd(1, ordering: .sequentiallyConsistent)
  }
  func entriesChanged() -> Bool {
    entries.wrappingAdd(1, ordering: .sequentiallyConsistent)
    return true
  }
  func contentsChanged(_ node: NodeID) {}
  func dropUnused(_ nodes: [NodeID]) -> Bool { false }
  func knows(_ node: NodeID) -> Bool {
    asked.wrappingAdd(1, ordering: .relaxed).newValue >= arrival.load(ordering: .relaxed)
  }
  func has(_ node: NodeID) -> Bool { true }
  var device: UInt32? { nil }
  func registerBacking(_ file: FD) throws(Errno) -> Int32 { throw .ENOTTY }
  func unregisterBacking(_ id: Int32) {}
}

/// Answers that are on their way while another view changes what they tell of.
@Suite(.enabled(if: Program.isRoot, "acting as several users needs root"))
struct AnswersUnderWayTests {
  private static let file = "Users/Shared/file"

  /// What the kernel would believe: the last answer, as long as nothing has been withdrawn since it was asked
  /// for.
  private final class Belief<Value: Sendable & Equatable>: Sendable {
    private struct State {
      var last: (value: Value, after: Int)?
      var asked = 0
    }
    private let state = Mutex(State())
    private let isOver = Atomic<Bool>(false)

    /// Asks again and again until it is over.
    ///
    /// The answer is nil where the kernel may not keep it.
    func ask(_ withdrawals: @escaping @Sendable () -> Int, _ body: @escaping @Sendable () throws -> Value?)
      throws
      -> JoinableThread
    {
      try JoinableThread(name: "reader") {
        while !self.isOver.load(ordering: .acquiring) {
          let after = withdrawals()
          guard let answer = try? body() else { continue }
          self.state.withLock { state in
            state.last = (answer, after)
            state.asked += 1
          }
        }
      }
    }

    /// Whether something else than `value` is believed.
    func isWrong(_ value: Value, _ withdrawals: () -> Int) -> Bool {
      state.withLock { state in
        guard let last = state.last else { return false }
        return last.after == withdrawals() && last.value != value
      }
    }

    func end() -> Int {
      isOver.store(true, ordering: .releasing)
      return state.withLock { $0.asked }
    }
  }

  private func views() throws -> (tree: Tree, other: View, connection: CountingConnection) {
    // Names are given out again at once after they were withdrawn.
    let tree = try Tree { $0.backoffSeconds = 0 }
    let other = try View(tree.volume)
    let connection = CountingConnection()
    other.started(connection)
    try tree.view.make(Self.file, mode: 0o600)
    return (tree, other, connection)
  }

  @Test func noAnswerIsOlderThanWhatIsWithdrawn() throws {
    let (tree, other, connection) = try views()
    let node = try other.node(Self.file)
    let believed = Belief<mode_t>()
    let withdrawals = { @Sendable in connection.attributes.load(ordering: .sequentiallyConsistent) }
    let reader = try believed.ask(withdrawals) {
      let answer = try other.attributes(of: node, handle: nil, by: .root)
      return answer.validity > 0 ? answer.status.st_mode & 0o777 : nil
    }
    var wrong = 0
    for step in 0..<5000 {
      let mode: mode_t = step & 1 == 0 ? 0o640 : 0o600
      try tree.view.change(Self.file) { $0.mode = UInt32(mode) }
      if believed.isWrong(mode, withdrawals) { wrong += 1 }
      sched_yield()
      if believed.isWrong(mode, withdrawals) { wrong += 1 }
    }
    #expect(believed.end() > 100)
    reader.join()
    #expect(wrong == 0)
  }

  @Test func noNameIsOlderThanWhatIsWithdrawn() throws {
    let (tree, other, connection) = try views()
    let shared = try other.node("Users/Shared")
    let believed = Belief<Bool>()
    let withdrawals = { @Sendable in connection.entries.load(ordering: .sequentiallyConsistent) }
    let reader = try believed.ask(withdrawals) {
      let entry = try "name".withName { (name) throws(Errno) in
        try other.lookup(name, in: shared, by: .root)
      }
      if let node = entry.node { other.forget(node, count: 1) }
      return entry.validity > 0 ? entry.node != nil : nil
    }
    var wrong = 0
    for step in 0..<2500 {
      let isThere = step & 1 == 0
      if isThere {
        try tree.view.make("Users/Shared/name")
      } else {
        try tree.view.remove("Users/Shared/name")
      }
      if believed.isWrong(isThere, withdrawals) { wrong += 1 }
      sched_yield()
      if believed.isWrong(isThere, withdrawals) { wrong += 1 }
    }
    #expect(believed.end() > 100)
    reader.join()
    #expect(wrong == 0)
  }

  /// What could not be opened is removed again: another kernel that has read the listing meanwhile reads it
  /// anew.
  @Test func undoneChangeIsWithdrawnToo() throws {
    var limits = Budget.Limits(descriptors: 1 << 14)
    limits[.descriptors] = 1600
    let tree = try Tree(budget: Budget(limits))
    let other = try View(tree.volume)
    let connection = CountingConnection()
    other.started(connection)
    try tree.view.make(Self.file, mode: 0o666)
    let node = try tree.view.node(Self.file)
    for _ in 0..<1600 {
      guard (try? tree.view.open(node, flags: O_RDONLY, clearsSetID: false, by: .alice)) != nil else { break }
    }
    let shared = try other.node("Users/Shared")
    _ = try other.attributes(of: shared, handle: nil, by: .root)
    let listings = Mutex(0)
    connection.once {
      guard (try? other.openDirectory(shared, by: .root)) != nil else { return }
      listings.withLock { $0 += 1 }
    }
    #expect(throws: Errno.EMFILE) {
      try tree.view.at("Users/Shared/new") { (name, parent) throws(Errno) in
        _ = try tree.view.create(name, in: parent, flags: O_RDWR | O_CREAT, mode: 0o644, by: .alice)
      }
    }
    #expect(listings.withLock { $0 } == 1)
    #expect(try other.openDirectory(shared, by: .root).mode == .cacheListing)
  }

  /// A change waits until the kernel has a node of which it was told; it would have the old attributes.
  ///
  /// If that takes too long, the kernel has to look the name up again.
  @Test(arguments: [(5, 0), (.max, 1)])
  func answersThatArriveLateAreAwaited(arrival: Int, withdrawals: Int) throws {
    let (tree, other, connection) = try views()
    _ = try other.node(Self.file)
    connection.arrival.store(arrival, ordering: .relaxed)
    let before = connection.entries.load(ordering: .relaxed)
    try tree.view.change(Self.file) { $0.mode = 0o640 }
    #expect(connection.asked.load(ordering: .relaxed) >= 5)
    #expect(connection.entries.load(ordering: .relaxed) == before + withdrawals)
  }

  /// Who comes while another is about to tell the kernel does not return before it knows.
  @Test func nobodyReturnsBeforeTheKernelKnows() throws {
    let (tree, other, connection) = try views()
    let node = try other.node(Self.file)
    _ = try other.attributes(of: node, handle: nil, by: .root)
    let before = connection.attributes.load(ordering: .sequentiallyConsistent)
    let seen = Mutex(0)
    connection.once {
      // The note has been taken away, and the kernel has not been told yet.
      try? tree.view.change(Self.file) { $0.mode = 0o644 }
      seen.withLock { $0 = connection.attributes.load(ordering: .sequentiallyConsistent) }
    }
    try tree.view.change(Self.file) { $0.mode = 0o640 }
    #expect(seen.withLock { $0 } == before + 1)
  }
}
