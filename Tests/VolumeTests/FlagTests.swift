// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
@testable internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing
@testable internal import Volume

/// BSD flags, asked through the operations themselves: they hold for root too.
@Suite(.enabled(if: Program.isRoot, "acting as several users needs root"))
struct FlagTests {
  private let tree: Tree
  private var view: View { tree.view }
  private let dir = "Users/Shared/dir"
  private let file = "Users/Shared/dir/file"

  init() throws {
    tree = try Tree()
    try tree.view.makeDirectory(dir, mode: 0o777, by: .alice)
    try tree.view.make(file, mode: 0o666, by: .alice)
    try tree.view.setAttribute("user.a", of: file, to: [1])
  }

  private func errno<Result>(_ body: (View) throws(Errno) -> Result) -> Errno? { view.errno(body) }

  /// What changes a file in one way or another.
  private var changes: [(name: String, change: (View, Caller) throws(Errno) -> Void)] {
    [
      ("write", { v, c throws(Errno) in try v.open(file, O_WRONLY, by: c) }),
      ("read and write", { v, c throws(Errno) in try v.open(file, O_RDWR, by: c) }),
      ("truncate at open", { v, c throws(Errno) in try v.open(file, O_RDONLY | O_TRUNC, by: c) }),
      ("truncate", { v, c throws(Errno) in try v.change(file, by: c) { $0.size = 0 } }),
      ("chmod", { v, c throws(Errno) in try v.change(file, by: c) { $0.mode = 0o666 } }),
      ("chown", { v, c throws(Errno) in try v.change(file, by: c) { $0.uid = Caller.alice.uid } }),
      ("times", { v, c throws(Errno) in try v.change(file, by: c) { $0.modification = .set(FileTime()) } }),
      (
        "times to now",
        { v, c throws(Errno) in
          try v.change(file, by: c) {
            $0.access = .now
            $0.modification = .now
          }
        }
      ),
      (
        "list",
        { v, c throws(Errno) in try v.setACL(file, AccessControlEntry(.deny, .nobody, .read), by: c) }
      ),
      ("unlink", { v, c throws(Errno) in try v.remove(file, by: c) }),
      ("rename", { v, c throws(Errno) in try v.rename(file, to: dir + "/new", by: c) }),
      ("link", { v, c throws(Errno) in try v.link(file, as: "Users/Shared/link", by: c) }),
      ("access", { v, c throws(Errno) in try v.access(file, W_OK, by: c) }),
    ]
  }

  @Test(arguments: ["uchg", "schg", "uappnd", "sappnd"])
  func protectedFileIsNotChangedByAnyone(flag: String) throws {
    try view.setFlags(file, flag)
    for caller in [Caller.alice, .root] {
      for (name, change) in changes {
        #expect(errno { v throws(Errno) in try change(v, caller) } == .EPERM, "\(name) with \(flag)")
      }
      let grows = flag.hasSuffix("appnd") ? nil : Errno.EPERM
      #expect(errno { v throws(Errno) in try v.open(file, O_WRONLY | O_APPEND, by: caller) } == grows)
      #expect(
        errno { v throws(Errno) in try v.setAttribute("user.a", of: file, to: [2], by: caller) } == grows)
      #expect(errno { v throws(Errno) in try v.open(file, O_RDONLY, by: caller) } == nil)
      #expect(errno { v throws(Errno) in try v.attribute("user.a", of: file, by: caller) } == nil)
    }
    #expect(
      errno { v throws(Errno) in try v.setAttribute("trusted.a", of: file, to: [2]) }
        == (flag.hasSuffix("appnd") ? nil : .EPERM))
    // Nor is it replaced.
    try view.make("Users/Shared/other", by: .alice)
    #expect(errno { v throws(Errno) in try v.rename("Users/Shared/other", to: file) } == .EPERM)
    #expect(errno { v throws(Errno) in try v.rename("Users/Shared/other", to: file, flags: 2) } == .EPERM)
    try view.setFlags(file, "")
    for (name, change) in changes.prefix(9) {
      #expect(errno { v throws(Errno) in try change(v, .alice) } == nil, "\(name)")
    }
  }

  @Test(arguments: ["uchg", "schg", "uappnd", "sappnd"])
  func protectedDirectoryKeepsItsEntries(flag: String) throws {
    try view.setFlags(dir, flag)
    let grows = flag.hasSuffix("appnd") ? nil : Errno.EPERM
    for caller in [Caller.alice, .root] {
      #expect(errno { v throws(Errno) in try v.remove(file, by: caller) } == .EPERM)
      #expect(errno { v throws(Errno) in try v.rename(file, to: "Users/Shared/x", by: caller) } == .EPERM)
      #expect(errno { v throws(Errno) in try v.make(dir + "/new\(caller.uid)", by: caller) } == grows)
      #expect(
        errno { v throws(Errno) in try v.makeDirectory(dir + "/sub\(caller.uid)", by: caller) } == grows)
      #expect(errno { v throws(Errno) in try v.change(dir, by: caller) { $0.mode = 0o777 } } == .EPERM)
      #expect(errno { v throws(Errno) in try v.rename(dir, to: "Users/Shared/moved", by: caller) } == .EPERM)
      #expect(errno { v throws(Errno) in try v.openDirectory(dir, by: caller) } == nil)
      // What is in it is another matter.
      #expect(errno { v throws(Errno) in try v.open(file, O_WRONLY, by: caller) } == nil)
    }
  }

  @Test func fileThatMayNotBeUnlinkedMayBeWritten() throws {
    try view.setFlags(file, "sunlnk")
    for caller in [Caller.alice, .root] {
      #expect(errno { v throws(Errno) in try v.remove(file, by: caller) } == .EPERM)
      #expect(errno { v throws(Errno) in try v.rename(file, to: dir + "/x", by: caller) } == .EPERM)
      #expect(errno { v throws(Errno) in try v.open(file, O_WRONLY, by: caller) } == nil)
    }
  }

  @Test func flagsAreChangedByTheirRules() throws {
    try view.setFlags(file, "uchg,hidden", by: .alice)
    #expect(try view.flags(of: file) == "uchg,hidden")
    // What they forbid does not keep anyone from taking them away.
    try view.setFlags(file, "uappnd", by: .alice)
    #expect(errno { v throws(Errno) in try v.setFlags(file, "schg", by: .alice) } == .EPERM)
    #expect(errno { v throws(Errno) in try v.setFlags(file, "", by: .bob) } == .EPERM)
    try view.setFlags(file, "schg,uappnd")
    #expect(errno { v throws(Errno) in try v.setFlags(file, "", by: .alice) } == .EPERM)
    // Root's flags may be handed in again as they are.
    try view.setFlags(file, "schg", by: .alice)
    #expect(errno { v throws(Errno) in try v.setFlags(file, "no such flag") } == .EINVAL)
    #expect(try view.flags(of: file) == "schg")
    try view.setFlags(file, "")
    #expect(try view.flags(of: file) == "")
    #expect(getxattr(tree.path(file), "trusted.insula.flags", nil, 0) == -1)
    try tree.temporary.write("x", to: "System/Library/file")
    #expect(errno { v throws(Errno) in try v.setFlags("System/Library/file", "hidden") } == .EROFS)
  }

  /// What chattr and lsattr know, by the ioctls.
  @Test func linuxFlagsAreTheSameFlags() throws {
    let node = try view.node(file)
    let immutable: UInt32 = 0x10
    let noDump: UInt32 = 0x40
    let before = try view.inodeFlags(of: node, by: .root)
    try view.setInodeFlags(of: node, to: before | immutable | noDump, by: .root)
    #expect(try view.flags(of: file) == "schg,nodump")
    #expect(errno { v throws(Errno) in try v.open(file, O_WRONLY, by: .root) } == .EPERM)
    #expect(try view.inodeFlags(of: node, by: .alice) == before | immutable | noDump)
    // The backing file has none of them: the daemon must be able to go on working with it.
    let backing = try tree.temporary.open()
    let kept = try file.withName { (path) throws(Errno) in
      let opened = try backing.fd.openWithoutLinks(path, O_RDONLY)
      return try opened.fd.inodeFlags()
    }
    #expect(kept & (immutable | noDump) == 0)
    #expect(errno { v throws(Errno) in try v.setInodeFlags(of: node, to: before, by: .alice) } == .EPERM)
    try view.setInodeFlags(of: node, to: before, by: .root)
    #expect(try view.flags(of: file) == "")
    try view.setFlags(file, "uchg")
    #expect(try view.inodeFlags(of: node, by: .alice) == before | immutable)
  }

  /// Both at once, as `chattr +iA` and `chattr -iA` ask for it; what stays immutable stays as it is.
  @Test func immutableGoesTogetherWithOtherFlags() throws {
    let node = try view.node(file)
    let immutable: UInt32 = 0x10
    let noAccessTime: UInt32 = 0x80
    let before = try view.inodeFlags(of: node, by: .root)
    try #require(before & noAccessTime == 0)
    try view.setInodeFlags(of: node, to: before | immutable | noAccessTime, by: .root)
    #expect(try view.inodeFlags(of: node, by: .root) == before | immutable | noAccessTime)
    #expect(
      errno { v throws(Errno) in try v.setInodeFlags(of: node, to: before | immutable, by: .root) } == .EPERM)
    try view.setInodeFlags(of: node, to: before, by: .root)
    #expect(try view.inodeFlags(of: node, by: .root) == before && view.flags(of: file) == "")
    try view.setFlags(file, "uchg")
    try view.setInodeFlags(of: node, to: before | noAccessTime, by: .root)
    #expect(try view.inodeFlags(of: node, by: .root) == before | noAccessTime)
    try view.setInodeFlags(of: node, to: before, by: .root)
  }

  @Test func linksAndFifosHaveFlagsToo() throws {
    _ = try view.at("Users/Shared/link") { (name, parent) throws(Errno) in
      try view.makeSymlink(name, in: parent, to: "x", by: .alice)
    }
    try view.makeFifo("Users/Shared/fifo", mode: 0o666, by: .alice)
    for name in ["link", "fifo"] {
      try view.setFlags("Users/Shared/" + name, "uchg", by: .alice)
      #expect(try view.flags(of: "Users/Shared/" + name) == "uchg")
      #expect(errno { v throws(Errno) in try v.remove("Users/Shared/" + name, by: .alice) } == .EPERM)
    }
    // What is written to a fifo leaves it as it was.
    #expect(errno { v throws(Errno) in try v.access("Users/Shared/fifo", W_OK, by: .bob) } == nil)
  }

  // MARK: Appending alone

  @Test(arguments: ["uappnd", "list"], [false, true])
  func whoMayOnlyAppendOnlyAppends(how: String, passthrough: Bool) throws {
    let tree = try Tree(passthrough: passthrough)
    let view = tree.view
    let file = "Users/Shared/file"
    let node = try view.make(file, mode: 0o644, by: .alice)
    try tree.temporary.write("12345", to: file)
    if how == "list" {
      try view.setACL(file, AccessControlEntry(.permit, .bob, .append))
    } else {
      try view.change(file) { $0.mode = 0o666 }
      try view.setFlags(file, how)
    }
    for mode in [O_WRONLY, O_RDWR] {
      let opened = try view.open(node, flags: mode | O_APPEND, clearsSetID: false, by: .bob)
      #expect(opened.mode.contains(.direct) && !opened.mode.contains(.passthrough) && opened.backing == 0)
      // The offset is what the client believes; it goes to the end.
      _ = try withBytes("6") { (bytes) throws(Errno) in
        try view.write(
          node, handle: opened.handle, at: 0, from: bytes, [], by: .bob)
      }
      #expect(tree.temporary.text(of: file)?.hasPrefix("123456") == true)
      func refused(_ body: (View) throws(Errno) -> Void) -> Errno? { view.errno(body) }
      let byMode: Errno = how == "list" ? .EACCES : .EPERM
      #expect(
        refused { v throws(Errno) in
          var change = AttributeChange()
          change.size = 0
          _ = try v.setAttributes(of: node, handle: opened.handle, to: change, by: .bob)
        } == byMode)
      #expect(
        refused { v throws(Errno) in
          try v.allocate(
            node, handle: opened.handle, mode: CLX_FALLOC_KEEP_SIZE | CLX_FALLOC_PUNCH_HOLE, offset: 0,
            length: 4, by: .bob)
        } == .EPERM)
      #expect(
        refused { v throws(Errno) in
          try v.allocate(node, handle: opened.handle, mode: 0, offset: 0, length: 64, by: .bob)
        } == nil)
      #expect(
        refused { v throws(Errno) in
          _ = try v.copyRange(
            from: node, opened.handle, at: 0, to: node, opened.handle, at: 100, length: 1, flags: 0, by: .bob)
        } == .EBADF)
      view.release(node, handle: opened.handle, flockOwner: nil)
      #expect(truncate(tree.path(file), 6) == 0)
    }
    // Whoever may write is served as the others are: all opens of a file must agree.
    if how == "list" {
      #expect(try !view.open(file, O_RDWR | O_APPEND, by: .alice).contains(.direct))
    }
  }

  /// What the kernel takes for the end may be older than another view's append.
  ///
  /// At a server it goes through a descriptor that appends, which all else must not; both are paid for.
  @Test(arguments: [false, true]) func appendGoesToTheEndWhateverTheOffset(onServer: Bool) throws {
    let tree = try Tree { $0.isRemote = onServer }
    let view = tree.view
    let file = "Users/Shared/file"
    let node = try view.make(file, mode: 0o644, by: .alice)
    func descriptors() -> Int { tree.volume.budget.count(.descriptors, of: Payer(user: Caller.alice.uid)) }
    let before = descriptors()
    let opened = try view.open(node, flags: O_WRONLY | O_APPEND, clearsSetID: false, by: .alice)
    #expect(opened.mode.contains(.direct), "each write is one request")
    for (bytes, flags) in [("abc", WriteFlags.atEnd), ("def", .atEnd), ("X", [])] {
      _ = try withBytes(bytes) { (bytes) throws(Errno) in
        try view.write(node, handle: opened.handle, at: 0, from: bytes, flags, by: .alice)
      }
    }
    #expect(tree.temporary.text(of: file) == "Xbcdef")
    #expect(descriptors() == before + (onServer ? 2 : 1))
    let source = try view.open(node, flags: O_RDONLY, clearsSetID: false, by: .alice).handle
    let copied = try view.copyRange(
      from: node, source, at: 3, to: node, opened.handle, at: 1, length: 2, flags: 0, by: .alice)
    #expect(copied == 2 && tree.temporary.text(of: file) == "Xdedef")
    for handle in [source, opened.handle] { view.release(node, handle: handle, flockOwner: nil) }
    #expect(descriptors() == before)
  }

  @Test func openFromBeforeDecidesHowAppendsAreServed() throws {
    let tree = try Tree(passthrough: true)
    let view = tree.view
    let file = "Users/Shared/file"
    let node = try view.make(file, mode: 0o644, by: .alice)
    let reader = try view.open(node, flags: O_RDONLY, clearsSetID: false, by: .alice)
    #expect(reader.mode.contains(.passthrough))
    try view.setACL(file, AccessControlEntry(.permit, .bob, [.append, .read]))
    let appender = try view.open(node, flags: O_WRONLY | O_APPEND, clearsSetID: false, by: .bob)
    #expect(appender.mode.contains([.passthrough, .direct]) && appender.backing == reader.backing)
    // A map of it would go past the daemon.
    #expect(
      view.errno { v throws(Errno) in
        try v.open(node, flags: O_RDWR | O_APPEND, clearsSetID: false, by: .bob)
      } == .EBUSY)
    for opened in [reader, appender] { view.release(node, handle: opened.handle, flockOwner: nil) }
    #expect(try view.open(file, O_RDWR | O_APPEND, by: .bob).contains(.direct))
    #expect(view.counts.openFiles == 0)
  }
}
