// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Synchronization
internal import TestSupport
internal import Testing
@testable internal import Volume

/// What is under way in something that is taken back.
@Suite(.enabled(if: Program.isRoot, "acting as several users needs root"))
struct GrantedUseTests {
  private final class Signs: Sendable {
    let hasBegun = Atomic<Bool>(false)
    let mayEnd = Atomic<Bool>(false)
    let isWithdrawn = Atomic<Bool>(false)
    /// It was waited for with success.
    let isComplete = Atomic<Bool>(true)
    /// What was done under way had not been waited for.
    let wasLate = Atomic<Bool>(false)

    static func wait(for sign: borrowing Atomic<Bool>) {
      while !sign.load(ordering: .sequentiallyConsistent) { usleep(100) }
    }
  }

  /// A file in a directory that was granted, and the view that has it.
  private struct GrantedFile {
    let tree: Tree
    let place = ScopePlace("Users/Shared/dir", [.read, .write, .revocable])
    let connection = RecordingConnection(passthrough: false, canWithdraw: true)
    let view: View
    let node: NodeID

    init() throws {
      tree = try Tree()
      try tree.view.makeDirectory("Users/Shared/dir", mode: 0o777)
      try tree.view.make("Users/Shared/dir/file")
      view = try View(tree.volume, scope: Scope([place]), user: 0)
      view.started(connection)
      node = try view.node("Users/Shared/dir/file")
    }
  }

  /// Not even in the moment in which its node does not know yet.
  @Test(arguments: [O_RDONLY, O_RDWR]) func whatWasTakenBackIsNotOpened(flags: Int32) throws {
    let tree = try Tree(passthrough: true)
    try tree.view.make("Users/Shared/file", mode: 0o666)
    let place = ScopePlace("Users/Shared/file", [.read, .write, .revocable], isSubtree: false)
    let view = try View(tree.volume, scope: Scope([place]), user: 0)
    view.started(RecordingConnection(passthrough: true, canWithdraw: true))
    let node = try view.node("Users/Shared/file")
    let open = { (view: View) throws(Errno) in
      _ = try view.open(node, flags: flags, clearsSetID: false, by: .root)
    }
    view.scope.change { $0.withdraw(place) }
    #expect(view.errno(open) == .ENOENT)
  }

  /// Nobody waits for the end of an open that only reads, as with files of one's own.
  @Test(arguments: [true, false]) func onlyWritersAreAskedAtTheirClose(passes: Bool) throws {
    let tree = try Tree(passthrough: passes)
    try tree.view.make("Users/Shared/file", mode: 0o666)
    let place = ScopePlace("Users/Shared/file", [.read, .write, .revocable], isSubtree: false)
    let view = try View(tree.volume, scope: Scope([place]), user: 0)
    view.started(RecordingConnection(passthrough: passes, canWithdraw: true))
    let node = try view.node("Users/Shared/file")
    let reading = try view.open(node, flags: O_RDONLY, clearsSetID: false, by: .root)
    #expect(reading.mode.contains(.noFlush) == passes)
    let writing = try view.open(node, flags: O_WRONLY, clearsSetID: false, by: .root)
    #expect(!writing.mode.contains(.noFlush))
  }

  /// Nor is what was just made beside it, unless that can be taken back.
  @Test func whatIsMadeMeanwhileCanBeTakenBack() throws {
    let tree = try Tree()
    try tree.view.makeDirectory("Users/Shared/dir", mode: 0o777)
    try tree.view.make("Users/Shared/dir/file", mode: 0o666)
    let place = ScopePlace("Users/Shared/dir/file", [.read, .write, .revocable], isSubtree: false)
    let view = try View(tree.volume, scope: Scope([place]), user: 0)
    view.started(RecordingConnection(passthrough: false, canWithdraw: true))
    let directory = try view.node("Users/Shared/dir")
    let signs = Signs()
    let giver = try JoinableThread(name: "giver") {
      while !signs.mayEnd.load(ordering: .sequentiallyConsistent) {
        view.scope.change { $0.withdraw(place) }
        view.scope.change { $0.admit(place) }
      }
    }
    var ends: [Errno?: Int] = [:]
    func makeOne() {
      let end = view.errno { (view) throws(Errno) in
        _ = try "file.tmp".withName { (name) throws(Errno) in
          try view.create(name, in: directory, flags: O_RDWR | O_CREAT, mode: 0o644, by: .root)
        }
      }
      ends[end, default: 0] += 1
      try? tree.view.remove("Users/Shared/dir/file.tmp")
    }
    for _ in 0..<2_000 { makeOne() }
    // On a busy machine the other thread may have had no turn yet.
    let sawBoth = eventually {
      makeOne()
      return ends.count > 1 && ends[nil, default: 0] > 0
    }
    signs.mayEnd.store(true, ordering: .sequentiallyConsistent)
    giver.join()
    #expect(view.files.all.count { !$0.isRevocable } == 0)
    #expect(sawBoth, "\(ends)")
  }

  /// An app that could keep or take locks of what it has no more would keep its user out.
  @Test(arguments: [false, true]) func whatWasTakenBackIsNotLocked(flock: Bool) throws {
    let tree = try Tree()
    try tree.view.make("Users/Shared/file", mode: 0o666)
    let place = ScopePlace("Users/Shared/file", [.read, .write, .revocable], isSubtree: false)
    let view = try View(tree.volume, scope: Scope([place]), user: 0)
    view.started(RecordingConnection(passthrough: false, canWithdraw: true))
    func lock(_ view: View, _ node: NodeID, _ handle: HandleID, _ kind: LockRange.Kind) -> Errno? {
      view.errno { (view) throws(Errno) in
        let owner = LockOwner(7)
        if flock {
          _ = try view.setFlock(node, handle: handle, owner: owner, to: kind, parking: nil, by: .root)
        } else {
          let range = LockRange.whole(kind)
          _ = try view.setLock(node, handle: handle, owner: owner, to: range, parking: nil, by: .root)
        }
      }
    }
    let node = try view.node("Users/Shared/file")
    let handle = try view.open(node, flags: O_RDWR, clearsSetID: false, by: .root).handle
    let usersNode = try tree.view.node("Users/Shared/file")
    let usersHandle = try tree.view.open(usersNode, flags: O_RDWR, clearsSetID: false, by: .root).handle
    #expect(lock(view, node, handle, .write) == nil)
    #expect(lock(tree.view, usersNode, usersHandle, .write) == .EAGAIN)
    view.granted.withdraw(place)
    #expect(lock(tree.view, usersNode, usersHandle, .write) == nil)
    #expect(lock(tree.view, usersNode, usersHandle, .none) == nil)
    #expect(lock(view, node, handle, .write) == .EPERM)
    #expect(lock(view, node, handle, .none) == nil)
    #expect(lock(tree.view, usersNode, usersHandle, .write) == nil)
    #expect(tree.volume.locks.count == 1)
  }

  /// What was stored in a memory map before a grant was taken back may be written while that is under way,
  /// and not after.
  ///
  /// It has its place, also in a file that is open to append at a server.
  @Test(arguments: [false, true]) func whatIsCachedIsWrittenBeforeTheEndAndNotAfter(onServer: Bool) throws {
    let tree = try Tree { $0.isRemote = onServer }
    try tree.view.makeDirectory("Users/Shared/dir", mode: 0o777)
    try tree.view.make("Users/Shared/dir/file")
    let place = ScopePlace("Users/Shared/dir", [.read, .write, .revocable])
    let view = try View(tree.volume, scope: Scope([place]), user: 0)
    view.started(RecordingConnection(passthrough: false, canWithdraw: true))
    let node = try view.node("Users/Shared/dir/file")
    let opened = try view.open(node, flags: O_RDWR | O_APPEND, clearsSetID: false, by: .root)
    func write(_ text: String, fromCache: Bool) -> Errno? {
      view.errno { (view) throws(Errno) in
        try withBytes(text) { (bytes) throws(Errno) in
          _ = try view.write(
            node, handle: opened.handle, at: 0, from: bytes, fromCache ? .fromCache : [],
            by: .root)
        }
      }
    }
    func text() throws -> String {
      try String(contentsOfFile: tree.path("Users/Shared/dir/file"), encoding: .utf8)
    }
    #expect(write("granted", fromCache: false) == nil)
    view.granted.use.beginDraining()
    view.scope.change { $0.withdraw(place) }
    view.granted.applyScope()
    #expect(write("refused", fromCache: false) == .EPERM)
    #expect(write("written", fromCache: true) == nil)
    #expect(try text() == "written")
    view.granted.use.endDraining()
    for fromCache in [false, true] { #expect(write("refused", fromCache: fromCache) == .EPERM) }
    #expect(try text() == "written")
  }

  @Test(arguments: [OpenFile.Access.read, .write])
  func takingBackWaitsForWhatIsUnderWay(access: OpenFile.Access) throws {
    let granted = try GrantedFile()
    let (view, node, place) = (granted.view, granted.node, granted.place)
    let signs = Signs()
    let user = try JoinableThread(name: "user") {
      try? view.granted.whileGranted(node, access) {
        signs.hasBegun.store(true, ordering: .sequentiallyConsistent)
        Signs.wait(for: signs.mayEnd)
        signs.wasLate.store(
          signs.isWithdrawn.load(ordering: .sequentiallyConsistent), ordering: .sequentiallyConsistent)
      }
    }
    Signs.wait(for: signs.hasBegun)
    let revoker = try JoinableThread(name: "revoker") {
      view.granted.withdraw(place)
      signs.isWithdrawn.store(true, ordering: .sequentiallyConsistent)
    }
    // As soon as it is refused to others, it could have returned.
    while view.errno({ (view) throws(Errno) in try view.granted.whileGranted(node, access) {} }) != .EPERM {
      usleep(100)
    }
    usleep(50_000)
    let hasReturned = signs.isWithdrawn.load(ordering: .sequentiallyConsistent)
    #expect(!hasReturned)
    signs.mayEnd.store(true, ordering: .sequentiallyConsistent)
    user.join()
    revoker.join()
    let wasLate = signs.wasLate.load(ordering: .sequentiallyConsistent)
    #expect(!wasLate)
  }

  /// It may wait for as long as somebody holds the file: then it learns at its end that it has lost it.
  @Test(arguments: [OpenFile.Access.read, .write])
  func whatDoesNotEndIsWaitedForInVain(access: OpenFile.Access) throws {
    let granted = try GrantedFile()
    let (view, node, place) = (granted.view, granted.node, granted.place)
    let signs = Signs()
    let user = try JoinableThread(name: "user") {
      do throws(Errno) {
        try view.granted.whileGranted(node, access) {
          signs.hasBegun.store(true, ordering: .sequentiallyConsistent)
          Signs.wait(for: signs.mayEnd)
        }
      } catch {
        signs.wasLate.store(error == .EPERM, ordering: .sequentiallyConsistent)
      }
    }
    Signs.wait(for: signs.hasBegun)
    let revoker = try JoinableThread(name: "revoker") {
      signs.isComplete.store(view.granted.withdraw(place), ordering: .sequentiallyConsistent)
      signs.isWithdrawn.store(true, ordering: .sequentiallyConsistent)
    }
    #expect(eventually { signs.isWithdrawn.load(ordering: .sequentiallyConsistent) })
    signs.mayEnd.store(true, ordering: .sequentiallyConsistent)
    user.join()
    revoker.join()
    let isComplete = signs.isComplete.load(ordering: .sequentiallyConsistent)
    let wasLate = signs.wasLate.load(ordering: .sequentiallyConsistent)
    #expect(!isComplete && wasLate)
  }

  /// What the kernel writes back at that moment has begun before the end.
  @Test func takingBackWaitsForWhatIsWrittenBack() throws {
    let granted = try GrantedFile()
    let (view, node, place, connection) = (granted.view, granted.node, granted.place, granted.connection)
    _ = try view.open(node, flags: O_RDWR, clearsSetID: false, by: .root)
    let signs = Signs()
    let writer = Mutex<JoinableThread?>(nil)
    connection.whenTold.withLock {
      $0 = { event in
        guard event == .contents(node) else { return }
        let thread = try? JoinableThread(name: "writer") {
          try? view.granted.use.during { () throws(Errno) in
            signs.hasBegun.store(true, ordering: .sequentiallyConsistent)
            Signs.wait(for: signs.mayEnd)
            signs.wasLate.store(
              signs.isWithdrawn.load(ordering: .sequentiallyConsistent), ordering: .sequentiallyConsistent)
          }
        }
        writer.withLock { $0 = thread }
        Signs.wait(for: signs.hasBegun)
      }
    }
    let revoker = try JoinableThread(name: "revoker") {
      view.granted.withdraw(place)
      signs.isWithdrawn.store(true, ordering: .sequentiallyConsistent)
    }
    #expect(eventually { signs.hasBegun.load(ordering: .sequentiallyConsistent) })
    usleep(50_000)
    let hasReturned = signs.isWithdrawn.load(ordering: .sequentiallyConsistent)
    #expect(!hasReturned)
    signs.mayEnd.store(true, ordering: .sequentiallyConsistent)
    revoker.join()
    writer.withLock { $0 }?.join()
    let wasLate = signs.wasLate.load(ordering: .sequentiallyConsistent)
    #expect(!wasLate)
  }
}
