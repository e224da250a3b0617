// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Store
internal import TestSupport
internal import Testing

/// Work in a home is that home's, whatever else comes to have its name.
@Suite struct HomeWorkTests {
  private struct Hanging {
    var hasBegun = false
    var isReleased = false
  }

  private let fixture: AppFixture
  private let work = HomeWork()
  private var store: Store { fixture.store }

  init() throws {
    fixture = try AppFixture()
    for name in ["first", "second"] {
      for home in ["anna", "ben"] {
        try fixture.temporary.makeDirectory("\(name)-\(home)")
        try fixture.temporary.write("\(name) \(home)", to: "\(name)-\(home)/mine")
      }
    }
    for home in ["anna", "ben"] {
      try store.link(home, to: "/elsewhere")
      try have("first", at: home)
    }
  }

  /// Makes a directory the home of that name.
  private func have(_ directory: String, at home: String) throws {
    let root = SharedFD(try TemporaryDirectory.open(fixture.temporary.appending("\(directory)-\(home)")))
    RedirectedNames.set(
      Array(home.utf8), in: try store.tree.status(of: "Users"),
      to: try RedirectedNames.Target(root: root, workshop: root, in: root))
  }

  private func home(_ name: String) throws -> HomeElsewhere {
    try #require(store.homeElsewhere(of: "Users/\(name)/"))
  }

  /// What is in a home, by its path in the tree.
  private static func contents(_ store: Store, _ name: String) -> Result<String, Errno> {
    do throws(Errno) {
      let home = try store.tree.openDirectory(at: "Users/\(name)")
      return .success(String(decoding: try home.fd.contents(of: "mine", limit: 100), as: UTF8.self))
    } catch {
      return .failure(error)
    }
  }

  private func soon() -> UInt64 { monotonicNanoseconds() &+ 20_000_000_000 }

  /// Has work hang in the homes of both while `body` is done; gives what each home's is then.
  private func whileBothHang(_ body: () throws -> Void) throws -> [Result<String, Errno>?] {
    let state = Condition(["anna": Hanging(), "ben": Hanging()])
    defer { state.change { for home in $0.keys { $0[home]?.isReleased = true } } }
    let results = try ["anna", "ben"].map { name in
      let result = work.begin(in: try home(name)) { [store] in
        state.change { $0[name]?.hasBegun = true }
        _ = state.wait(milliseconds: 60_000) { $0[name]?.isReleased == true }
        return Self.contents(store, name)
      }
      return try #require(result)
    }
    #expect(state.wait(milliseconds: 20_000) { $0.values.allSatisfy(\.hasBegun) })
    try body()
    state.change { for home in $0.keys { $0[home]?.isReleased = true } }
    return results.map { $0.value(until: soon()) }
  }

  @Test func anotherHomeOfTheNameWaitsForNothing() throws {
    var former: [HomeWork.Result<Bool>] = []
    let found = try whileBothHang {
      former = try ["anna", "ben"].map { name in try #require(work.begin(in: home(name)) { true }) }
      try have("second", at: "anna")
      let there = work.begin(in: try home("anna")) { [store] in Self.contents(store, "anna") }
      #expect(there?.value(until: soon()) == .success("second anna"))
      #expect(!work.hangs(in: try home("anna")))
    }
    // What was begun before has nothing of the next one.
    #expect(found == [.failure(.ENOTDIR), .success("first ben")])
    #expect(former.map { $0.value(until: soon()) } == [nil, true])
    #expect(Self.contents(store, "anna") == .success("second anna"))
  }

  @Test func aHomeInTheStoreHasNothingToDoWithIt() throws {
    let tree = store.tree
    let found = try whileBothHang {
      RedirectedNames.set(Array("anna".utf8), in: try tree.status(of: "Users"), to: nil)
      try store.unlink("anna")
      try fixture.temporary.makeDirectory("store/tree/Users/anna")
      try fixture.temporary.write("in the store", to: "store/tree/Users/anna/mine")
      #expect(Self.contents(store, "anna") == .success("in the store"))
    }
    #expect(found == [.failure(.ENOMEDIUM), .success("first ben")])
    #expect(Self.contents(store, "anna") == .success("in the store"))
  }

  @Test func whoHasTablesLearnsOfEachEnd() throws {
    let told = Condition(0)
    work.tellOfChanges { told.change { $0 += 1 } }
    for (home, count) in [("anna", 1), ("ben", 2)] {
      let quiet = work.begin(in: try self.home(home), changingApps: false) { true }
      #expect(quiet?.value(until: soon()) == true)
      work.begin(in: try self.home(home)) { true }
      #expect(told.wait(milliseconds: 20_000) { $0 == count })
    }
    work.finish(milliseconds: 20_000)
    #expect(told.withLock { $0 } == 2)
  }

  /// A home that comes back is the same: one thing is done after the other.
  @Test func theSameHomeWaitsForItself() throws {
    var next: HomeWork.Result<Result<String, Errno>>?
    let found = try whileBothHang {
      RedirectedNames.set(Array("anna".utf8), in: try store.tree.status(of: "Users"), to: nil)
      #expect(work.begin(in: try home("anna")) { true } == nil)
      try have("first", at: "anna")
      next = work.begin(in: try home("anna")) { [store] in Self.contents(store, "anna") }
      #expect(next?.value(until: 0) == nil)
    }
    #expect(found == [.success("first anna"), .success("first ben")])
    #expect(next?.value(until: soon()) == .success("first anna"))
  }
}
