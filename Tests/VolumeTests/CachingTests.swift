// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing
@testable internal import Volume

/// For how long the kernel may remember, and what it is told to forget.
@Suite(.enabled(if: Program.isRoot, "acting as several users needs root"))
struct CachingTests {
  private func absence(_ view: View, _ path: String, by caller: Caller = .root) throws(Errno) -> Double {
    let entry = try view.at(path) { (name, parent) throws(Errno) in
      try view.lookup(name, in: parent, by: caller)
    }
    guard entry.node == nil else { throw .EEXIST }
    return entry.validity
  }

  @Test func namesAreRememberedOnlyInDirectoriesThatAllMayWalkThrough() throws {
    let tree = try Tree()
    defer { withExtendedLifetime(tree) {} }
    let view = tree.view
    let day = view.volume.settings.cacheSeconds
    tree.connection.canDrop.store(true, ordering: .relaxed)
    try view.makeDirectory("Users/Shared/dir", mode: 0o777, by: .alice)
    try view.make("Users/Shared/dir/file", by: .alice)
    for mode in UInt32(0)...0o777 {
      try view.change("Users/Shared/dir", by: .alice) { $0.mode = mode }
      let expected = mode & 0o111 == 0o111 ? day : 0
      #expect(try view.find("Users/Shared/dir/file", by: .root).validity == expected)
      if expected > 0 {
        #expect(try absence(view, "Users/Shared/dir/missing") == 2)
      } else {
        #expect(throws: Errno.ENOENT) { try absence(view, "Users/Shared/dir/missing") }
      }
    }
    #expect(
      try view.find("Users", by: .bob).validity == day && absence(view, "Users/missing", by: .bob) == 2)
  }

  @Test func nothingIsRememberedThatCouldNotBeWithdrawn() throws {
    let tree = try Tree(canWithdraw: false)
    defer { withExtendedLifetime(tree) {} }
    let view = tree.view
    try view.make("Users/Shared/file")
    #expect(try view.find("Users/Shared/file").validity == 0)
    #expect(throws: Errno.ENOENT) { try absence(view, "Users/Shared/missing") }
  }

  @Test(arguments: ["chmod", "chown", "nothing cached", "opened"])
  func closingADirectoryWithdrawsWhatWasRemembered(how: String) throws {
    let tree = try Tree()
    let view = tree.view
    try view.makeDirectory("Users/Shared/dir", mode: 0o755, by: .alice)
    _ = close(creat(tree.path("Users/Shared/dir/file"), 0o644))
    if how != "nothing cached" { try view.find("Users/Shared/dir/file", by: .bob) }
    _ = tree.connection.take()
    switch how {
    case "chmod", "nothing cached": try view.change("Users/Shared/dir", by: .alice) { $0.mode = 0o750 }
    case "chown":
      // Closed together with a change of owner, in one request.
      try view.change("Users/Shared/dir") {
        $0.uid = Caller.bob.uid
        $0.mode = 0o710
      }
    default: try view.change("Users/Shared/dir", by: .alice) { $0.mode = 0o711 }
    }
    let expected: [RecordingConnection.Event] = how == "chmod" || how == "chown" ? [.entries] : []
    #expect(tree.connection.take() == expected)
    // Once is enough, until something is remembered again.
    try view.change("Users/Shared/dir") { $0.mode = 0o700 }
    #expect(tree.connection.take() == (how == "opened" ? [.entries] : []))
    // Where everyone has paid for it once, nothing is remembered for a while, so nothing needs to be
    // withdrawn.
    try view.change("Users/Shared/dir") { $0.mode = 0o755 }
    let isFirst = how == "nothing cached"
    #expect(
      try view.find("Users/Shared/dir/file", by: .bob).validity
        == (isFirst ? view.volume.settings.cacheSeconds : 0))
    try view.change("Users/Shared/dir") { $0.mode = 0o700 }
    #expect(tree.connection.take() == (isFirst ? [.entries] : []))
  }

  @Test func namesThatNobodyUsesAreDroppedAtNobodysExpense() throws {
    let tree = try Tree()
    let view = tree.view
    tree.connection.canDrop.store(true, ordering: .relaxed)
    try view.makeDirectory("Users/Shared/dir", mode: 0o755, by: .alice)
    try view.makeDirectory("Users/Shared/dir/sub", by: .alice)
    let inner = try view.make("Users/Shared/dir/sub/inner", by: .alice)
    let sub = try view.node("Users/Shared/dir/sub", by: .bob)
    for _ in 0..<3 {
      _ = tree.connection.take()
      try view.change("Users/Shared/dir") { $0.mode = 0o700 }
      // What is in a directory comes before it.
      #expect(tree.connection.take() == [.drop([inner, sub])])
      try view.change("Users/Shared/dir") { $0.mode = 0o755 }
      #expect(try view.find("Users/Shared/dir/sub", by: .bob).validity == view.volume.settings.cacheSeconds)
    }
    // What is known of a directory that was closed before is looked up each time, in use or not.
    try view.change("Users/Shared/dir") { $0.mode = 0o700 }
    tree.connection.used.withLock { $0 = [sub] }
    _ = tree.connection.take()
    for mode in [UInt32(0o750), 0o710, 0o700] { try view.change("Users/Shared/dir") { $0.mode = mode } }
    #expect(tree.connection.take() == [])
    try view.change("Users/Shared/dir") { $0.mode = 0o755 }
    try view.find("Users/Shared/dir/sub", by: .bob)
    // What is in use is looked up again, with all other names.
    tree.connection.used.withLock { $0 = [sub] }
    try view.change("Users/Shared/dir") { $0.mode = 0o700 }
    #expect(tree.connection.take().last == .entries)
    // So is what there is too much of to look through it.
    try view.makeDirectory("Users/Shared/large", mode: 0o755, by: .bob)
    try view.make("Users/Shared/large/file", by: .bob)
    for number in 0..<600 { _ = close(creat(tree.path("Users/Shared/large/\(number)"), 0o644)) }
    _ = tree.connection.take()
    try view.change("Users/Shared/large") { $0.mode = 0o700 }
    #expect(tree.connection.take() == [.entries])
  }

  /// However many directories someone opens and closes, and whatever is in use in them.
  @Test func closingsCostEveryoneFewWithdrawalsForEachOwner() throws {
    let tree = try Tree()
    let view = tree.view
    let day = view.volume.settings.cacheSeconds
    func close(_ name: String, by owner: Caller) throws {
      try view.makeDirectory("Users/Shared/\(name)", mode: 0o755, by: owner)
      try view.make("Users/Shared/\(name)/file", by: owner)
      try view.find("Users/Shared/\(name)/file", by: .admin)
      try view.change("Users/Shared/\(name)", by: owner) { $0.mode = 0o700 }
    }
    // Those in which names were remembered before are withdrawn with the first of them.
    for number in 0..<5 {
      try view.makeDirectory("Users/Shared/old\(number)", mode: 0o755, by: .alice)
      try view.make("Users/Shared/old\(number)/file", by: .alice)
    }
    _ = tree.connection.take()
    for number in 0..<5 { try view.change("Users/Shared/old\(number)") { $0.mode = 0o700 } }
    #expect(tree.connection.take() == [.entries])
    for number in 0..<20 { try close("new\(number)", by: .alice) }
    #expect(tree.connection.take().count { $0 == .entries } == NameCacheBackoff.tolerated - 1)
    // Others are remembered as ever.
    try view.make("Users/Shared/file", by: .bob)
    #expect(try view.find("Users/Shared/file", by: .bob).validity == day)
    try close("bobs", by: .bob)
    #expect(tree.connection.take().count { $0 == .entries } == 1)
    #expect(try view.find("Users/Shared/file", by: .bob).validity == day)
    // Who has done it once has only lost that directory for a minute.
    for (owner, validity) in [(Caller.alice, 0), (.bob, day)] {
      try view.makeDirectory("Users/Shared/last\(owner.uid)", mode: 0o755, by: owner)
      try view.make("Users/Shared/last\(owner.uid)/file", by: owner)
      #expect(try view.find("Users/Shared/last\(owner.uid)/file", by: .admin).validity == validity)
    }
    #expect(view.counts.uncachedDirectories == NameCacheBackoff.tolerated + 1)
    #expect(view.counts.uncachedUsers == 1)
  }

  @Test(arguments: [false, true], [false, true])
  func namesOfFifosAndSocketsAreNotRemembered(isFifo: Bool, isPrivate: Bool) throws {
    let type: FileMode = isFifo ? S_IFIFO : S_IFSOCK
    let tree = try Tree()
    defer { withExtendedLifetime(tree) {} }
    let view = isPrivate ? try View(tree.volume, user: Caller.alice.uid) : tree.view
    let connection = RecordingConnection(passthrough: false, canWithdraw: true)
    if isPrivate { view.started(connection) }
    try view.makeDirectory("Users/Shared/dir", mode: 0o755, by: .alice)
    for mode in [FileMode(0o777), 0o666, 0o622, 0o600] {
      let name = "Users/Shared/dir/\(mode)"
      let made = try view.at(name) { (name, parent) throws(Errno) in
        try view.makeNode(name, in: parent, mode: type | mode, device: 0, by: .alice)
      }
      #expect(made.validity == 0)
      #expect(try view.find(name, by: .alice).validity == 0)
    }
    // What they are linked and moved to as little.
    let node = try view.node("Users/Shared/dir/\(0o777)", by: .alice)
    let linked = try view.at("Users/Shared/dir/link") { (name, parent) throws(Errno) in
      try view.link(node, as: name, in: parent, by: .alice)
    }
    #expect(linked.validity == 0)
    try view.rename("Users/Shared/dir/link", to: "Users/Shared/dir/moved", by: .alice)
    #expect(try view.find("Users/Shared/dir/moved", by: .alice).validity == 0)
  }

  @Test(arguments: ["missing", "file", "directory"])
  func newNamesCountAsRemembered(kind: String) throws {
    let tree = try Tree()
    let view = tree.view
    try view.makeDirectory("Users/Shared/dir", mode: 0o755, by: .alice)
    switch kind {
    case "missing": _ = try absence(view, "Users/Shared/dir/name")
    case "file": try view.make("Users/Shared/dir/name", by: .alice)
    default: try view.makeDirectory("Users/Shared/dir/name", by: .alice)
    }
    _ = tree.connection.take()
    try view.change("Users/Shared/dir") { $0.mode = 0o700 }
    // That a name is missing is remembered for a moment, and not withdrawn.
    #expect(tree.connection.take() == (kind == "missing" ? [] : [.entries]))
  }

  @Test func nameMovedIntoAClosedDirectoryIsWithdrawn() throws {
    let tree = try Tree()
    let view = tree.view
    try view.makeDirectory("Users/Shared/open", mode: 0o755, by: .alice)
    try view.makeDirectory("Users/Shared/closed", mode: 0o700, by: .alice)
    try view.make("Users/Shared/open/file", by: .alice)
    try view.find("Users/Shared/open/file", by: .bob)
    func withdrawals() -> Int { tree.connection.take().count { $0 == .entries } }
    _ = withdrawals()
    // Within open directories nothing needs to be withdrawn.
    try view.rename("Users/Shared/open/file", to: "Users/Shared/open/other", by: .alice)
    #expect(withdrawals() == 0)
    try view.rename("Users/Shared/open/other", to: "Users/Shared/closed/file", by: .alice)
    #expect(withdrawals() == 1)
  }

  /// Nor does one get into a directory in which nothing is remembered, and where nothing would be withdrawn.
  @Test func nameMovedIntoADirectoryInBackoffIsWithdrawn() throws {
    let tree = try Tree()
    let view = tree.view
    func withdrawals() -> Int { tree.connection.take().count { $0 == .entries } }
    try view.makeDirectory("Users/Shared/dir", mode: 0o755, by: .alice)
    try view.make("Users/Shared/dir/file", by: .alice)
    try view.change("Users/Shared/dir", by: .alice) { $0.mode = 0o700 }
    try view.change("Users/Shared/dir", by: .alice) { $0.mode = 0o755 }
    #expect(withdrawals() == 1)
    try view.make("Users/Shared/file", by: .alice)
    #expect(try view.find("Users/Shared/file", by: .bob).validity > 0)
    try view.rename("Users/Shared/file", to: "Users/Shared/dir/moved", by: .alice)
    #expect(withdrawals() == 1)
    // Where it came from is restless as well by now.
    try view.make("Users/Shared/file", by: .alice)
    try view.rename("Users/Shared/file", to: "Users/Shared/dir/other", by: .alice)
    try view.change("Users/Shared/dir", by: .alice) { $0.mode = 0o700 }
    #expect(withdrawals() == 0)
  }

  /// An exchange takes both names along.
  @Test func nameExchangedIntoAClosedDirectoryIsWithdrawn() throws {
    let tree = try Tree()
    let view = tree.view
    try view.makeDirectory("Users/Shared/open", mode: 0o755, by: .alice)
    try view.makeDirectory("Users/Shared/closed", mode: 0o700, by: .alice)
    try view.make("Users/Shared/closed/file", by: .alice)
    func withdrawals() -> Int { tree.connection.take().count { $0 == .entries } }
    try view.make("Users/Shared/open/new", by: .alice)
    try view.find("Users/Shared/open/new", by: .bob)
    _ = withdrawals()
    try view.rename("Users/Shared/closed/file", to: "Users/Shared/open/new", flags: 2, by: .alice)
    #expect(withdrawals() == 1)
  }

  private enum Change: CaseIterable {
    case create, makeDirectory, link, remove, rename, setAttribute, removeAttribute
  }

  /// A look at what a call changes besides may be under way: the kernel would take it in after the call's
  /// answer, and keep it.
  @Test(arguments: Change.allCases) private func looksUnderWayAreWithdrawn(change: Change) throws {
    let tree = try Tree()
    let view = tree.view
    let directory = try view.makeDirectory("Users/Shared/dir")
    let file = try view.make("Users/Shared/dir/file")
    let other = try view.make("Users/Shared/dir/other")
    func withName(_ text: String, _ body: (Name) throws(Errno) -> Void) throws { try text.withName(body) }
    func act() throws {
      switch change {
      case .create:
        try withName("new") { (name) throws(Errno) in
          _ = try view.create(name, in: directory, flags: O_RDWR | O_CREAT, mode: 0o644, by: .root)
        }
      case .makeDirectory:
        try withName("new") { (name) throws(Errno) in
          _ = try view.makeDirectory(name, in: directory, mode: 0o755, by: .root)
        }
      case .link:
        try withName("new") { (name) throws(Errno) in
          _ = try view.link(other, as: name, in: directory, by: .root)
        }
      case .remove:
        try withName("other") { (name) throws(Errno) in
          try view.remove(name, in: directory, directory: false, by: .root)
        }
      case .rename:
        try withName("file") { (name) throws(Errno) in
          try "moved".withName { (new) throws(Errno) in
            try view.rename(name, in: directory, to: new, in: directory, flags: 0, by: .root)
          }
        }
      case .setAttribute:
        try withName("user.a") { (name) throws(Errno) in
          try view.setAttribute(
            name, of: file, to: UnsafeRawBufferPointer(start: nil, count: 0), flags: 0, by: .root)
        }
      case .removeAttribute:
        try withName("user.a") { (name) throws(Errno) in try view.removeAttribute(name, of: file, by: .root) }
      }
    }
    if change == .removeAttribute {
      #expect(setxattr(tree.path("Users/Shared/dir/file"), "user.a", "", 0, 0) == 0)
    }
    for node in [directory, file] { _ = try view.attributes(of: node, handle: nil, by: .root) }
    _ = tree.connection.take()
    try act()
    let told = tree.connection.take()
    let changesFile = [.rename, .setAttribute, .removeAttribute].contains(change)
    let changesDirectory = ![.setAttribute, .removeAttribute].contains(change)
    #expect(told.contains(.attributes(file)) == changesFile)
    #expect(told.contains(.attributes(directory)) == changesDirectory)
    // Nobody has looked since, so there is nothing to say.
    if change == .setAttribute {
      try act()
      #expect(tree.connection.take() == [])
    }
  }

  @Test(arguments: [false, true])
  func attributesHoldWhileNobodyMayBeMapping(passthrough: Bool) throws {
    let tree = try Tree(passthrough: passthrough)
    let view = tree.view
    let day = view.volume.settings.cacheSeconds
    let node = try view.make("Users/Shared/file", mode: 0o666, by: .alice)
    func validity() throws -> Double { try view.attributes(of: node, handle: nil, by: .root).validity }
    #expect(try validity() == day)
    _ = tree.connection.take()
    let reader = try view.open(node, flags: O_RDONLY, clearsSetID: false, by: .bob)
    #expect(try validity() == day)
    #expect(tree.connection.take() == (passthrough ? [.register(2)] : []))
    // What can only be written by calls is no reason: the kernel sees those, and forgets by itself.
    let caller = try view.open(node, flags: O_WRONLY, clearsSetID: false, by: .bob)
    #expect(try validity() == day)
    #expect(tree.connection.take() == [])
    view.release(node, handle: caller.handle, flockOwner: nil)
    #expect(try validity() == day)
    let writers = try (0..<2).map { _ in try view.open(node, flags: O_RDWR, clearsSetID: false, by: .bob) }
    // The kernel forgets what it was told, once.
    #expect(tree.connection.take() == [.attributes(node)])
    for writer in writers {
      #expect(try validity() == 0)
      #expect(writer.mode.contains(.passthrough) == passthrough)
      #expect(!passthrough || writer.backing == reader.backing)
      view.release(node, handle: writer.handle, flockOwner: nil)
    }
    #expect(try validity() == day)
    view.release(node, handle: reader.handle, flockOwner: nil)
    #expect(tree.connection.take() == (passthrough ? [.unregister(2)] : []))
    #expect(view.counts.openFiles == 0)
  }

  @Test func memoryMapKeepsAttributesFromBeingRemembered() throws {
    let tree = try Tree(passthrough: true)
    let view = tree.view
    let node = try view.make("Users/Shared/file", mode: 0o666, by: .alice)
    let writer = try view.open(node, flags: O_RDWR, clearsSetID: false, by: .alice)
    // What the kernel does for a client with passthrough: it opens the backing file and maps it.
    let raw = clx_open(tree.path("Users/Shared/file"), O_RDWR, 0)
    #expect(raw >= 0 && ftruncate(raw, 8192) == 0)
    let map = mmap(nil, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, raw, 0)
    #expect(map != MAP_FAILED && close(raw) == 0)
    view.release(node, handle: writer.handle, flockOwner: nil)
    for _ in 0..<3 { #expect(try view.attributes(of: node, handle: nil, by: .root).validity == 0) }
    #expect(munmap(map, 8192) == 0)
    for _ in 0..<3 {
      #expect(
        try view.attributes(of: node, handle: nil, by: .root).validity == view.volume.settings.cacheSeconds)
    }
  }

  @Test func opensAgreeOnTheBackingFile() throws {
    let tree = try Tree(passthrough: true)
    let view = tree.view
    let node = try view.make("Users/Shared/file", mode: 0o666)
    _ = tree.connection.take()
    let first = try view.open(node, flags: O_RDONLY, clearsSetID: false, by: .root)
    let second = try view.open(node, flags: O_RDWR, clearsSetID: false, by: .root)
    #expect(first.backing == second.backing && first.backing > 0)
    // A refused open leaves nothing behind.
    try view.change("Users/Shared/file") { $0.mode = 0o600 }
    #expect(throws: Errno.EACCES) { try view.open(node, flags: O_RDONLY, clearsSetID: false, by: .bob) }
    view.release(node, handle: first.handle, flockOwner: nil)
    view.release(node, handle: first.handle, flockOwner: nil)
    #expect(!tree.connection.take().contains(.unregister(first.backing)))
    view.release(node, handle: second.handle, flockOwner: nil)
    #expect(tree.connection.take() == [.unregister(first.backing)])
  }
}
