// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Synchronization
internal import TestSupport
internal import Testing
@testable internal import Volume

/// What a name stands for is judged, changed and learned as one, though another view changes it at that
/// moment.
@Suite(.enabled(if: Program.isRoot, "acting as several users needs root"))
struct NameLockTests {
  /// Two views of one tree, and what is done through the other one again and again, until this goes.
  private final class Fixture: Sendable {
    let tree: Tree
    let other: View
    let isOver = Atomic<Bool>(false)
    let rounds = Atomic<Int>(0)
    var view: View { tree.view }

    init() throws {
      tree = try Tree()
      other = try View(tree.volume)
      other.started(RecordingConnection(passthrough: false, canWithdraw: true))
      try view.makeDirectory("Users/Shared/dir", mode: 0o1777)
    }

    /// Does `neighbour` beside `body`, both again and again.
    func beside(
      _ neighbour: @escaping @Sendable (Fixture) -> Void, _ body: () throws -> Void
    ) throws {
      let thread = try JoinableThread(name: "neighbour") { [self] in
        while !isOver.load(ordering: .sequentiallyConsistent) {
          neighbour(self)
          // A client does not come back at once either.
          usleep(1)
          rounds.wrappingAdd(1, ordering: .sequentiallyConsistent)
        }
      }
      defer {
        isOver.store(true, ordering: .sequentiallyConsistent)
        thread.join()
      }
      // Until the neighbour, too, has had its turns, however busy the machine is.
      #expect(
        try eventually {
          try body()
          return rounds.load(ordering: .sequentiallyConsistent) > 100
        })
    }
  }

  private static let dir = "Users/Shared/dir"
  private static let file = "Users/Shared/dir/file"

  /// In a directory where all may write, but take away only what is theirs.
  @Test(arguments: ["removed", "moved", "replaced"])
  func whatSomeoneElseMakesMeanwhileIsNotTaken(how: String) throws {
    let fixture = try Fixture()
    let parent = try fixture.other.node(Self.dir)
    var made = 0
    try fixture.beside({ fixture in
      let other = fixture.other
      try? "file".withName { (name) throws(Errno) in
        if how == "removed" {
          try other.remove(name, in: parent, directory: false, by: .bob)
        } else {
          try "mine".withName { (mine) throws(Errno) in
            let (from, to) = how == "moved" ? (name, mine) : (mine, name)
            try other.rename(from, in: parent, to: to, in: parent, flags: 0, by: .bob)
          }
        }
      }
    }) {
      let view = fixture.view
      for _ in 0..<2000 {
        // What the other one may take: this, or by what it has now.
        if how == "replaced" { _ = try? view.make(Self.dir + "/mine", by: .bob) }
        _ = try? view.make(Self.file, by: .bob)
        try? view.remove(Self.file, by: .bob)
        try? view.remove(Self.dir + "/mine", by: .bob)
        // Unless the other one has just put its own there.
        guard (try? view.make(Self.file, by: .alice)) != nil else { continue }
        made += 1
        let owner = try? view.find(Self.file).attributes.status.st_uid
        #expect(owner == Caller.alice.uid)
        try? view.remove(Self.file, by: .alice)
      }
    }
    #expect(made > 100)
  }

  /// Who opens a file or makes it has one, though another view makes it and takes it away all the while.
  @Test func whatIsOpenedOrMadeIsThere() throws {
    let fixture = try Fixture()
    try fixture.beside({ fixture in
      _ = try? fixture.other.make(Self.file)
      try? fixture.other.remove(Self.file)
    }) {
      for _ in 0..<5000 {
        #expect(fixture.view.errno { (view) throws(Errno) in try view.make(Self.file) } == nil)
        try? fixture.view.remove(Self.file)
      }
    }
  }

  private static let (here, there) = (dir + "/box", "Library/Fonts/box")

  /// What is found by a name that leads elsewhere by then is known by where it is.
  @Test func whatMovesMeanwhileIsWhereItIs() throws {
    let fixture = try Fixture()
    try fixture.view.makeDirectory(Self.here)
    let parent = try fixture.view.node(Self.dir)
    var found = 0
    for round in 0..<3000 {
      let mayMove = Atomic<Bool>(false)
      let mover = try JoinableThread(name: "mover") {
        while !mayMove.load(ordering: .sequentiallyConsistent) {}
        try? fixture.other.rename(Self.here, to: Self.there)
      }
      mayMove.store(true, ordering: .sequentiallyConsistent)
      for _ in 0..<round % 8 { sched_yield() }
      let node = try? "box".withName { (name) throws(Errno) in
        try fixture.view.lookup(name, in: parent, by: .root).node
      }
      mover.join()
      if let node {
        found += 1
        #expect(fixture.view.nodes.with(node) { $0.zone } == .local)
        fixture.view.forget(node, count: .max)
      }
      try fixture.other.rename(Self.there, to: Self.here)
    }
    #expect(found > 10, "\(found)")
  }

  /// Also what is found in a directory that is elsewhere by then: it is looked for again.
  @Test func whatIsInADirectoryThatMovesIsWhereThatIs() throws {
    let fixture = try Fixture()
    let box = try fixture.view.makeDirectory(Self.here)
    try fixture.view.make(Self.here + "/file")
    func find() throws(Errno) -> NodeID? {
      try "file".withName { (name) throws(Errno) in
        try fixture.view.lookup(name, in: box, by: .root).node
      }
    }
    let directory = try fixture.view.nodes.reference(to: box)
    try fixture.other.rename(Self.here, to: Self.there)
    #expect(throws: Errno.ESTALE) {
      try "file".withName { (name) throws(Errno) in
        try fixture.view.entry(name, in: directory, 0, by: .root)
      }
    }
    let file = try #require(try find())
    #expect(fixture.view.nodes.with(file) { $0.zone } == .local)
  }

  /// A name that stands for something else by then teaches nothing about what was found by it.
  @Test func whatIsExchangedMeanwhileKeepsItsACL() throws {
    let fixture = try Fixture()
    for name in ["file", "closed"] { try fixture.view.make(Self.dir + "/" + name, by: .alice) }
    try fixture.view.setACL(Self.dir + "/closed", AccessControlEntry(.deny, .bob, .read))
    let closed = try fixture.view.find(Self.dir + "/closed").attributes.status.st_ino
    let view = try View(fixture.tree.volume)
    view.started(RecordingConnection(passthrough: false, canWithdraw: true))
    defer { view.ended() }
    let parent = try view.node(Self.dir)
    var seen: [Bool: Int] = [:]
    try fixture.beside({ fixture in
      try? fixture.other.rename(Self.file, to: Self.dir + "/closed", flags: 2)
    }) {
      for _ in 0..<5000 {
        let entry = try "file".withName { (name) throws(Errno) in
          try view.lookup(name, in: parent, by: .root)
        }
        let node = try #require(entry.node)
        let isClosed = entry.attributes.status.st_ino == closed
        seen[isClosed, default: 0] += 1
        if isClosed {
          #expect(throws: Errno.EACCES) {
            try view.open(node, flags: O_RDONLY, clearsSetID: false, by: .bob)
          }
        }
        view.forget(node, count: .max)
      }
    }
    #expect(seen.count == 2, "\(seen)")
  }

  /// Whoever has the names of one directory locked holds up nobody in another, whatever numbers those have.
  @Test func directoriesHaveLocksOfTheirOwn() throws {
    let locks = NameLocks()
    let hold = locks.exclusive(in: ObjectNumber(inode: 1, device: 1))
    let others = (2..<2000).map { ObjectNumber(inode: $0, device: 1) } + [ObjectNumber(inode: 1, device: 2)]
    let done = Condition(0)
    var threads: [JoinableThread] = []
    for isForward in [true, false] {
      threads.append(
        try JoinableThread(name: "others") {
          for (one, other) in zip(others, others.dropFirst()) {
            (isForward ? locks.exclusive(in: one, other) : locks.exclusive(in: other, one)).end()
          }
          done.change { $0 += 1 }
        })
    }
    #expect(done.wait(milliseconds: Int(patience)) { $0 == 2 })
    hold.end()
    for thread in threads { thread.join() }
  }

  /// Where others change names, too, a look counts for the thread that has looked, if it was its last one.
  @Test func whatIsMissingIsRememberedForAMoment() throws {
    let locks = NameLocks()
    let (directory, beside) = (ObjectNumber(inode: 1, device: 1), ObjectNumber(inode: 2, device: 1))
    func remembers(_ name: String, by thread: Int32?) throws -> Bool {
      let hold = locks.exclusive(in: directory, beside)
      return try name.withName { (name) throws(Errno) in
        hold.remembers(missing: name, in: directory, by: thread)
      }
    }
    func look(by thread: Int32) throws {
      try "name".withName { (name) throws(Errno) in
        locks.remember(missing: name, in: directory, by: thread)
      }
    }
    for (name, thread, isKnown) in [
      ("name", nil, true), ("name", 7, true), ("name", 8, false), ("other", 7, false), ("other", nil, false),
    ] as [(String, Int32?, Bool)] {
      try look(by: 7)
      #expect(try remembers(name, by: thread) == isKnown, "\(name) \(String(describing: thread))")
      // A change ends it.
      #expect(try !remembers("name", by: 7))
    }
    // Who is in another namespace has no number.
    try look(by: 0)
    #expect(try !remembers("name", by: 0))
    try look(by: 7)
    locks.forgetMissing(in: directory)
    #expect(try !remembers("name", by: nil))
  }
}
