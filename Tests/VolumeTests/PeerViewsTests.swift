// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Synchronization
internal import TestSupport
internal import Testing
@testable internal import Volume

/// What the other views of a volume are told about what is done through one.
@Suite(.enabled(if: Program.isRoot, "acting as several users needs root"))
struct PeerViewsTests {
  /// A tree with a second view, which is one of those in the index.
  private struct Fixture {
    let tree: Tree
    let other: View
    let connection: RecordingConnection
    var view: View { tree.view }

    init(passthrough: Bool = true, handles: Bool = true) throws {
      tree = try Tree(passthrough: passthrough) { $0.fileHandles = handles }
      other = try View(tree.volume)
      connection = RecordingConnection(passthrough: passthrough, canWithdraw: true)
      other.started(connection)
      try view.makeDirectory("Users/Shared/dir", mode: 0o777)
      try view.make("Users/Shared/dir/file", mode: 0o666)
      _ = connection.take()
    }

    /// What the other view knows from now on, and has known for a while.
    func know(_ paths: String...) throws -> [NodeID] {
      var nodes: [NodeID] = []
      for path in paths {
        let node = try other.node(path)
        // The kernel asks for something of it.
        _ = try other.attributes(of: node, handle: nil, by: .root)
        nodes.append(node)
      }
      _ = connection.take()
      return nodes
    }
  }

  private static let file = "Users/Shared/dir/file"
  private static let dir = "Users/Shared/dir"

  /// A directory that another view closes between a lookup's judgement and its note: who closes it finds no
  /// note.
  @Test func namesAreNotRememberedWhereItCloses() throws {
    let fixture = try Fixture()
    try fixture.view.makeDirectory("Users/Shared/fresh", mode: 0o755)
    let directory = try fixture.other.nodes.reference(to: try fixture.other.node("Users/Shared/fresh"))
    let before = try fixture.other.object(try directory.fd.status(), directory)
    try fixture.view.change("Users/Shared/fresh") { $0.mode = 0o700 }
    #expect(fixture.other.nameValidity(in: directory, before) == 0)
  }

  @Test(arguments: [
    "create", "mkdir", "symlink", "mknod", "link", "unlink", "rmdir", "rename away", "rename here",
    "exchange",
  ])
  func changedNamesAreWithdrawn(how: String) throws {
    let fixture = try Fixture()
    let view = fixture.view
    try view.makeDirectory("Users/Shared/else", mode: 0o777)
    try view.make("Users/Shared/else/file")
    try view.makeDirectory("Users/Shared/dir/empty")
    // Neither the file nor the other directory is known there.
    let dir = try fixture.know(Self.dir)[0]
    #expect(throws: Errno.ENOENT) { try fixture.other.node("Users/Shared/dir/missing") }
    _ = fixture.connection.take()
    switch how {
    case "create": try view.make("Users/Shared/dir/new")
    case "mkdir": try view.makeDirectory("Users/Shared/dir/new")
    case "symlink":
      _ = try view.at("Users/Shared/dir/new") { (name, parent) throws(Errno) in
        try "x".withName { (target) throws(Errno) in
          try view.makeSymlink(name, in: parent, to: target.bytes, by: .root)
        }
      }
    case "mknod":
      _ = try view.at("Users/Shared/dir/new") { (name, parent) throws(Errno) in
        try view.makeNode(name, in: parent, mode: S_IFIFO | 0o666, device: 0, by: .root)
      }
    case "link":
      let node = try view.node("Users/Shared/else/file")
      _ = try view.at("Users/Shared/dir/new") { (name, parent) throws(Errno) in
        try view.link(node, as: name, in: parent, by: .root)
      }
    case "unlink": try view.remove(Self.file)
    case "rmdir": try view.remove("Users/Shared/dir/empty", directory: true)
    case "rename away": try view.rename(Self.file, to: "Users/Shared/else/new")
    case "rename here": try view.rename("Users/Shared/else/file", to: "Users/Shared/dir/new")
    default: try view.rename("Users/Shared/else/file", to: Self.file, flags: 2)
    }
    let events = fixture.connection.take()
    #expect(events.contains(.attributes(dir)) && events.contains(.entries))
    // Once is enough, and what is not known concerns nobody.
    try view.make("Users/Shared/dir/another")
    try view.make("Users/Shared/else/another")
    #expect(fixture.connection.take() == [])
    // The listing is read again, once.
    func mode() throws -> OpenMode { try fixture.other.openDirectory(dir, by: .root).mode }
    #expect(try mode() == .cacheListing)
    #expect(try mode() == [.keepCache, .cacheListing])
  }

  /// The kernel that makes the change drops what it has by itself, but no answer that is still on its way.
  @Test(arguments: ["create", "unlink"]) func ownKernelForgetsTheDirectorysAttributes(how: String) throws {
    let fixture = try Fixture()
    let dir = try fixture.view.node(Self.dir)
    #expect(try fixture.view.attributes(of: dir, handle: nil, by: .root).validity > 0)
    _ = fixture.tree.connection.take()
    if how == "create" {
      try fixture.view.make("Users/Shared/dir/new")
    } else {
      try fixture.view.remove(Self.file)
    }
    #expect(fixture.tree.connection.take().contains(.attributes(dir)))
  }

  @Test(arguments: [
    "chmod", "chown", "times", "truncate", "setxattr", "removexattr", "link", "unlink", "O_TRUNC", "flags",
  ])
  func changedAttributesAreForgotten(how: String) throws {
    let fixture = try Fixture()
    let view = fixture.view
    let mine = try view.node(Self.file)
    func setAttribute() throws {
      try "user.a".withName { (name) throws(Errno) in
        try withBytes("x") { (value) throws(Errno) in
          try view.setAttribute(name, of: mine, to: value, flags: 0, by: .root)
        }
      }
    }
    try setAttribute()
    try view.make("Users/Shared/second")
    try view.at("Users/Shared/third") { (name, parent) throws(Errno) in
      _ = try view.link(mine, as: name, in: parent, by: .root)
    }
    let file = try fixture.know(Self.file)[0]
    switch how {
    case "chmod": try view.change(Self.file) { $0.mode = 0o640 }
    case "chown": try view.change(Self.file) { $0.uid = 54321 }
    case "times": try view.change(Self.file) { $0.modification = .now }
    case "truncate": try view.change(Self.file) { $0.size = 5 }
    case "setxattr": try setAttribute()
    case "removexattr":
      try "user.a".withName { (name) throws(Errno) in try view.removeAttribute(name, of: mine, by: .root) }
    case "link":
      try view.at("Users/Shared/fourth") { (name, parent) throws(Errno) in
        _ = try view.link(mine, as: name, in: parent, by: .root)
      }
    case "unlink": try view.remove("Users/Shared/third")
    case "O_TRUNC":
      let opened = try view.open(mine, flags: O_RDONLY | O_TRUNC, clearsSetID: false, by: .root)
      view.release(mine, handle: opened.handle, flockOwner: nil)
    default: try view.setInodeFlags(of: mine, to: 0x40, by: .root)
    }
    #expect(fixture.connection.take().contains(.attributes(file)))
  }

  @Test func directoryThatClosesIsClosedInAllViews() throws {
    let fixture = try Fixture()
    let nodes = try fixture.know(Self.dir, Self.file)
    try fixture.view.change(Self.dir) { $0.mode = 0o700 }
    #expect(fixture.connection.take() == [.attributes(nodes[0]), .entries])
    #expect(try fixture.other.find(Self.file).validity == 0)
  }

  /// Attributes that came with a name may be taken in after the kernel was told to forget them.
  @Test func attributesOnTheirWayAreAskedForAgain() throws {
    let fixture = try Fixture()
    let file = try fixture.other.node(Self.file)
    _ = fixture.connection.take()
    try fixture.view.change(Self.file) { $0.mode = 0o600 }
    #expect(fixture.connection.take() == [.attributes(file), .entries])
    // Who has opened it by then has taken them in.
    let opened = try fixture.other.open(file, flags: O_RDONLY, clearsSetID: false, by: .root)
    #expect(fixture.connection.take().first == .attributes(file))
    fixture.other.release(file, handle: opened.handle, flockOwner: nil)
  }

  @Test(arguments: [O_WRONLY, O_RDWR])
  func sizesAreNotRememberedWhileAnotherViewMayChangeThem(flags: Int32) throws {
    for (writer, reader) in [(0, 1), (1, 0)] {
      let fixture = try Fixture()
      let views = [fixture.view, fixture.other]
      let connections = [fixture.tree.connection, fixture.connection]
      let nodes = try views.map { (view) throws(Errno) in try view.node(Self.file) }
      func validity() throws -> Double {
        try views[reader].attributes(of: nodes[reader], handle: nil, by: .root).validity
      }
      #expect(try validity() > 0)
      _ = connections[reader].take()
      let opened = try views[writer].open(nodes[writer], flags: flags, clearsSetID: false, by: .root)
      #expect(connections[reader].take() == [.attributes(nodes[reader])])
      #expect(try validity() == 0)
      // What the kernel does for a client with passthrough: it opens the backing file, and maps it.
      let raw = clx_open(fixture.tree.path(Self.file), O_RDWR, 0)
      #expect(raw >= 0 && ftruncate(raw, 8192) == 0)
      let map = flags == O_RDWR ? mmap(nil, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, raw, 0) : nil
      #expect(close(raw) == 0 && map != MAP_FAILED)
      views[writer].release(nodes[writer], handle: opened.handle, flockOwner: nil)
      #expect(try (validity() == 0) == (map != nil))
      if let map { munmap(map, 8192) }
      #expect(try validity() > 0)
    }
  }

  /// Without passthrough each kernel has pages of its own.
  @Test func pagesAreNotKeptWhereAnotherViewWrites() throws {
    let fixture = try Fixture(passthrough: false)
    let (mine, theirs) = (try fixture.view.node(Self.file), try fixture.other.node(Self.file))
    func mode() throws -> OpenMode {
      let opened = try fixture.other.open(theirs, flags: O_RDONLY, clearsSetID: false, by: .root)
      fixture.other.release(theirs, handle: opened.handle, flockOwner: nil)
      return opened.mode
    }
    #expect(try mode().contains(.keepCache))
    let writer = try fixture.view.open(mine, flags: O_WRONLY, clearsSetID: false, by: .root)
    #expect(try mode().contains(.direct))
    fixture.view.release(mine, handle: writer.handle, flockOwner: nil)
    try fixture.view.change(Self.file) { $0.size = 5 }
    #expect(try mode().isDisjoint(with: [.keepCache, .direct]))
    #expect(try mode().contains(.keepCache))
  }

  /// Where an app saves a document through its own view, names are not cached for a while in the whole tree,
  /// and in no other directory of its user.
  @Test func oneSaveThroughAnotherViewConcernsItsDirectoryAlone() throws {
    let fixture = try Fixture()
    let (view, app) = (fixture.view, try View(fixture.tree.volume, user: Caller.alice.uid))
    app.started(RecordingConnection(passthrough: true, canWithdraw: true))
    for name in ["documents", "projects"] {
      try view.makeDirectory("Users/Shared/\(name)", mode: 0o755, by: .alice)
      try view.make("Users/Shared/\(name)/letter", by: .alice)
    }
    let day = view.volume.settings.cacheSeconds
    func validity(_ path: String) throws -> Double {
      try view.find("Users/Shared/" + path, by: .bob).validity
    }
    #expect(try validity("documents/letter") == day && validity("projects/letter") == day)
    try app.make("Users/Shared/documents/new", by: .alice)
    try app.rename("Users/Shared/documents/new", to: "Users/Shared/documents/letter", by: .alice)
    #expect(try validity("documents/letter") == 0)
    #expect(try validity("projects/letter") == day)
    #expect(view.counts.uncachedDirectories == 1 && view.counts.uncachedUsers == 0)
    app.ended()
  }

  @Test func zonesMoveInAllViews() throws {
    let fixture = try Fixture()
    let nodes = try fixture.know(Self.dir, Self.file)
    func zones() -> [Zone?] { nodes.map { node in fixture.other.nodes.with(node) { $0.zone } } }
    let before = zones()
    // The other view knows nothing of the new parent.
    try fixture.view.rename(Self.dir, to: "Library/Fonts/dir")
    let mine = try ["Library/Fonts/dir", "Library/Fonts/dir/file"].map { (path) throws(Errno) in
      let node = try fixture.view.node(path)
      return fixture.view.nodes.with(node) { $0.zone }
    }
    #expect(zones() == mine && zones() != before)
  }

  @Test(arguments: [false, true])
  func whatIsMovedOrRemovedElsewhereIsStillFound(handles: Bool) throws {
    let fixture = try Fixture(handles: handles)
    let nodes = try fixture.know(Self.file, Self.dir)
    func count(_ place: Int) throws -> UInt64 {
      fixture.other.nodes.releaseDescriptors(1000)
      return UInt64(
        try fixture.other.attributes(of: nodes[place], handle: nil, by: .root).status.st_nlink)
    }
    try fixture.view.rename(Self.dir, to: "Library/Fonts/dir")
    #expect(try count(0) == 1)
    try fixture.view.remove("Library/Fonts/dir/file")
    // With handles a file without a name is found as long as someone has it open, and then the kernel has.
    if !handles { #expect(try count(0) == 0) }
    try fixture.view.remove("Library/Fonts/dir", directory: true)
    #expect(try count(1) == 0)
  }

  private final class Sign: Sendable {
    let isOver = Atomic<Bool>(false)
  }

  /// Whoever finds a name gone that another view takes away at that moment is told so, and not refused it.
  @Test(arguments: [false, true]) func whatGoesMeanwhileIsNotThere(renaming: Bool) throws {
    let fixture = try Fixture()
    let (view, other) = (fixture.view, fixture.other)
    let sign = Sign()
    let maker = try JoinableThread(name: "maker") {
      for _ in 0..<10_000 {
        _ = try? view.make(Self.file)
        try? view.remove(Self.file)
      }
      sign.isOver.store(true, ordering: .sequentiallyConsistent)
    }
    defer { maker.join() }
    var ends: [Errno?: Int] = [:]
    while !sign.isOver.load(ordering: .sequentiallyConsistent) {
      let end = other.errno { (other) throws(Errno) in
        if renaming {
          try other.rename(Self.file, to: Self.dir + "/there")
        } else {
          try other.remove(Self.file)
        }
      }
      ends[end, default: 0] += 1
    }
    #expect(Set(ends.keys).isSubset(of: [nil, .ENOENT]), "\(ends)")
    #expect(ends.count == 2, "\(ends)")
  }

  @Test func endedViewIsForgotten() throws {
    let fixture = try Fixture()
    let volume = fixture.tree.volume
    let nodes = try fixture.know(Self.dir, Self.file)
    _ = try fixture.other.open(nodes[1], flags: O_RDWR, clearsSetID: false, by: .root)
    #expect(
      volume.views.areSeveral && volume.interest.counts.known == 5 && volume.interest.counts.written == 1)
    fixture.other.ended()
    _ = fixture.connection.take()
    try fixture.view.change(Self.dir) { $0.mode = 0o700 }
    #expect(fixture.connection.take() == [])
    // With the view goes what it knew.
    do {
      let third = try View(volume)
      try third.find(Self.file)
      #expect(volume.interest.counts.known == 5)
    }
    #expect(volume.interest.counts.known == 5)
    for node in nodes.reversed() { fixture.other.forget(node, count: 100) }
    #expect(volume.interest.counts.known == 3 && volume.interest.counts.written == 0)
  }
}
