// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
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
    try view.makeDirectory("Users/Shared/dir", mode: 0o777, by: .alice)
    try view.make("Users/Shared/dir/file", by: .alice)
    for mode in UInt32(0)...0o777 {
      try view.change("Users/Shared/dir", by: .alice) { $0.mode = mode }
      let expected = mode & 0o111 == 0o111 ? day : 0
      #expect(try view.find("Users/Shared/dir/file", by: .root).validity == expected)
      if expected > 0 {
        #expect(try absence(view, "Users/Shared/dir/missing") == expected)
      } else {
        #expect(throws: Errno.ENOENT) { try absence(view, "Users/Shared/dir/missing") }
      }
    }
    #expect(
      try view.find("Users", by: .bob).validity == day && absence(view, "Users/missing", by: .bob) == day)
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
    try view.change("Users/Shared/dir") { $0.mode = 0o755 }
    try view.find("Users/Shared/dir/file", by: .bob)
    try view.change("Users/Shared/dir") { $0.mode = 0o700 }
    #expect(tree.connection.take() == [.entries])
  }

  @Test(arguments: ["missing", "file", "directory"])
  func missingAndNewNamesCountAsRemembered(kind: String) throws {
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
    #expect(tree.connection.take() == [.entries])
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
    // An exchange takes both along.
    try view.make("Users/Shared/open/new", by: .alice)
    try view.find("Users/Shared/open/new", by: .bob)
    _ = withdrawals()
    try view.rename("Users/Shared/closed/file", to: "Users/Shared/open/new", flags: 2, by: .alice)
    #expect(withdrawals() == 1)
  }

  private enum Change: CaseIterable {
    case create, makeDirectory, link, remove, rename, setAttribute, removeAttribute
  }

  /// A look at what a call changes besides may be under way: the kernel would take it in after the call's answer, and keep it.
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
