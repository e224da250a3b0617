// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing
@testable internal import Volume

/// Who may do what, asked through the operations themselves.
@Suite(.enabled(if: Program.isRoot, "acting as several users needs root"))
struct GateTests {
  @Test func readOnlyRegionsAreReadOnlyForRootToo() throws {
    let tree = try Tree()
    try tree.temporary.write("x", to: "System/Library/file")
    let view = tree.view
    for path in ["System/Library/file", "System/Library", "System"] {
      for caller in [Caller.root, .alice] {
        #expect(
          view.errno { v throws(Errno) in try v.change(path, by: caller) { $0.mode = 0o777 } } == .EROFS)
        #expect(view.errno { v throws(Errno) in try v.change(path, by: caller) { $0.uid = 5 } } == .EROFS)
        #expect(
          view.errno { v throws(Errno) in try v.change(path, by: caller) { $0.modification = .now } }
            == .EROFS)
        #expect(
          view.errno { v throws(Errno) in try v.change(path, by: caller) { $0.clearsSetID = true } } == .EROFS
        )
      }
    }
    for directory in ["System/Library", "System", ""] {
      let new = directory + (directory.isEmpty ? "" : "/") + "new"
      #expect(view.errno { v throws(Errno) in try v.make(new) } == .EROFS)
      #expect(view.errno { v throws(Errno) in try v.makeDirectory(new) } == .EROFS)
      #expect(
        view.errno { v throws(Errno) in
          try v.at(new) { (name, parent) throws(Errno) in
            try v.makeSymlink(name, in: parent, to: "x", by: .root)
          }
        } == .EROFS)
      #expect(
        view.errno { v throws(Errno) in
          try v.at(new) { (name, parent) throws(Errno) in
            try v.makeNode(name, in: parent, mode: S_IFIFO, device: 0, by: .root)
          }
        } == .EROFS)
      #expect(
        view.errno { v throws(Errno) in
          _ = try v.createUnnamed(in: try v.node(directory), flags: O_RDWR, mode: 0o600, by: .root)
        } == .EROFS)
    }
    let file = try view.node("System/Library/file")
    for flags in [O_WRONLY, O_RDWR, O_RDONLY | O_TRUNC] {
      #expect(
        view.errno { v throws(Errno) in try v.open(file, flags: flags, clearsSetID: false, by: .root) }
          == .EROFS)
    }
    #expect(view.errno { v throws(Errno) in try v.access(file, mask: W_OK, by: .root) } == .EROFS)
    #expect(view.errno { v throws(Errno) in try v.access(file, mask: R_OK, by: .alice) } == nil)
    #expect(view.errno { v throws(Errno) in try v.remove("System/Library/file") } == .EROFS)
    #expect(
      view.errno { v throws(Errno) in try v.rename("System/Library/file", to: "Users/Shared/f") } == .EROFS)
    try view.make("Users/Shared/mine")
    #expect(
      view.errno { v throws(Errno) in try v.rename("Users/Shared/mine", to: "System/Library/f") } == .EROFS)
    #expect(
      view.errno { v throws(Errno) in
        try v.at("Users/Shared/hard") { (name, parent) throws(Errno) in
          try v.link(file, as: name, in: parent, by: .root)
        }
      } == .EROFS)
    #expect(view.errno { v throws(Errno) in try v.setInodeFlags(of: file, to: 0, by: .root) } == .EROFS)
    #expect(tree.temporary.text(of: "System/Library/file") == "x")
  }

  @Test func skeletonStaysWhereItIs() throws {
    let tree = try Tree()
    let view = tree.view
    for path in ["Applications/Utilities", "Library/Caches", "Library/Fonts", "Users/Shared"] {
      #expect(view.errno { v throws(Errno) in try v.remove(path, directory: true) } == .EPERM)
      #expect(view.errno { v throws(Errno) in try v.rename(path, to: "Users/moved") } == .EPERM)
    }
    // At the very top, where everything is sealed, that comes first.
    for path in ["Applications", "Library", "Users", "Volumes", "Network"] {
      #expect(view.errno { v throws(Errno) in try v.remove(path, directory: true) } == .EROFS)
      #expect(view.errno { v throws(Errno) in try v.rename(path, to: "Users/moved") } == .EROFS)
    }
    // Nor is it replaced or exchanged.
    try view.makeDirectory("Users/other")
    #expect(view.errno { v throws(Errno) in try v.rename("Users/other", to: "Users/Shared") } == .EPERM)
    #expect(
      view.errno { v throws(Errno) in try v.rename("Users/other", to: "Users/Shared", flags: 2) } == .EPERM)
    // Its mode is its owner's business.
    #expect(view.errno { v throws(Errno) in try v.change("Library/Fonts") { $0.mode = 0o755 } } == nil)
    try view.makeDirectory("Library/Mine", by: .admin)
    try view.remove("Library/Mine", directory: true, by: .admin)
  }

  @Test func stickyDirectoryGuardsWhatIsOthers() throws {
    let tree = try Tree()
    defer { withExtendedLifetime(tree) {} }
    let view = tree.view
    try view.make("Users/Shared/alices", by: .alice)
    #expect(view.errno { v throws(Errno) in try v.remove("Users/Shared/alices", by: .bob) } == .EPERM)
    #expect(
      view.errno { v throws(Errno) in try v.rename("Users/Shared/alices", to: "Users/Shared/b", by: .bob) }
        == .EPERM)
    try view.make("Users/Shared/bobs", by: .bob)
    #expect(
      view.errno { v throws(Errno) in
        try v.rename("Users/Shared/bobs", to: "Users/Shared/alices", by: .bob)
      } == .EPERM)
    try view.rename("Users/Shared/alices", to: "Users/Shared/still", by: .alice)
    try view.remove("Users/Shared/still", by: .alice)
    // The directory's owner may remove anything in it.
    try view.makeDirectory("Users/Shared/open", mode: 0o777, by: .alice)
    try view.change("Users/Shared/open", by: .alice) { $0.mode = 0o1777 }
    try view.make("Users/Shared/open/bobs", by: .bob)
    try view.remove("Users/Shared/open/bobs", by: .alice)
    try view.remove("Users/Shared/bobs", by: .root)
  }

  @Test func ownersAndModesAreChangedByTheirRules() throws {
    let tree = try Tree()
    defer { withExtendedLifetime(tree) {} }
    let view = tree.view
    let file = "Users/Shared/file"
    try view.make(file, mode: 0o6777, by: .alice)
    func status() throws -> FileStatus { try view.find(file).attributes.status }
    #expect(try status().st_uid == Caller.alice.uid && status().st_gid == 0)
    #expect(view.errno { v throws(Errno) in try v.change(file, by: .bob) { $0.mode = 0o777 } } == .EPERM)
    #expect(
      view.errno { v throws(Errno) in try v.change(file, by: .bob) { $0.uid = Caller.bob.uid } } == .EPERM)
    #expect(
      view.errno { v throws(Errno) in try v.change(file, by: .alice) { $0.uid = Caller.bob.uid } } == .EPERM)
    #expect(
      view.errno { v throws(Errno) in try v.change(file, by: .alice) { $0.gid = Caller.bob.gid } } == .EPERM)
    try view.change(file, by: .alice) { $0.uid = Caller.alice.uid }
    try view.change(file, by: .alice) { $0.gid = Caller.alice.gid }
    #expect(try status().st_gid == Caller.alice.gid && status().st_mode & 0o6000 == 0)
    // Set-group-id is given only by members of the group.
    try view.change(file, by: .alice) { $0.mode = 0o2755 }
    #expect(try status().permissions == 0o2755)
    try view.change(file, by: .root) { $0.gid = Caller.bob.gid }
    try view.change(file, by: .alice) { $0.mode = 0o2755 }
    #expect(try status().permissions == 0o755)
    // Times: now for those who may write, others for the owner.
    try view.change(file, by: .root) { $0.mode = 0o666 }
    try view.change(file, by: .bob) {
      $0.access = .now
      $0.modification = .now
    }
    let past = TimeChange.set(timespec(tv_sec: 5, tv_nsec: 6))
    #expect(
      view.errno { v throws(Errno) in try v.change(file, by: .bob) { $0.modification = past } } == .EPERM)
    #expect(view.errno { v throws(Errno) in try v.change(file, by: .bob) { $0.access = .now } } == .EPERM)
    try view.change(file, by: .alice) { $0.modification = past }
    #expect(try status().st_mtim.tv_sec == 5 && status().st_mtim.tv_nsec == 6)
    #expect(view.errno { v throws(Errno) in try v.change(file, by: .root) { $0.size = -1 } } == .EINVAL)
  }

  @Test func setIDGoesWhenAStrangerChangesTheFile() throws {
    let tree = try Tree()
    let view = tree.view
    let file = "Users/Shared/file"
    for (mode, kept) in [(0o6777, 0o777), (0o2767, 0o2767), (0o4700, 0o700), (0o2010, 0o010)]
      as [(mode_t, mode_t)]
    {
      let node = try view.make(file, by: .alice)
      func reset() { _ = chmod(tree.path(file), mode) }
      func expectKept() throws {
        #expect(try view.attributes(of: node, handle: nil, by: .root).status.permissions == kept)
      }
      reset()
      try view.change(file) { $0.clearsSetID = true }
      try expectKept()
      reset()
      let opened = try view.open(node, flags: O_WRONLY | O_TRUNC, clearsSetID: true, by: .root)
      try expectKept()
      reset()
      _ = try withBytes("x") { (bytes) throws(Errno) in
        try view.write(
          node, handle: opened.handle, at: 0, from: bytes, .clearsSetID, by: .root)
      }
      try expectKept()
      reset()
      _ = try withBytes("x") { (bytes) throws(Errno) in
        try view.write(
          node, handle: opened.handle, at: 0, from: bytes, [], by: .root)
      }
      #expect(try view.attributes(of: node, handle: nil, by: .root).status.permissions == mode)
      view.release(node, handle: opened.handle, flockOwner: nil)
      try view.remove(file)
    }
  }

  @Test func linksToWhatOneMayNotWriteAreRefused() throws {
    let tree = try Tree()
    defer { withExtendedLifetime(tree) {} }
    let view = tree.view
    func link(_ path: String, by caller: Caller) -> Errno? {
      view.errno { v throws(Errno) in
        let node = try v.node(path)
        _ = try v.at("Users/Shared/link") { (name, parent) throws(Errno) in
          try v.link(node, as: name, in: parent, by: caller)
        }
        try v.remove("Users/Shared/link")
      }
    }
    let file = "Users/Shared/file"
    try view.make(file, mode: 0o666, by: .alice)
    #expect(link(file, by: .alice) == nil && link(file, by: .bob) == nil)
    for mode in [0o644, 0o622, 0o600, 0o4666, 0o2676] as [UInt32] {
      try view.change(file, by: .root) { $0.mode = mode }
      #expect(link(file, by: .bob) == .EPERM)
      #expect(link(file, by: .alice) == nil && link(file, by: .root) == nil)
    }
    _ = try view.at("Users/Shared/fifo") { (name, parent) throws(Errno) in
      try view.makeNode(name, in: parent, mode: S_IFIFO | 0o666, device: 0, by: .alice)
    }
    #expect(link("Users/Shared/fifo", by: .bob) == .EPERM && link("Users/Shared/fifo", by: .alice) == nil)
  }

  /// The kernel opens these by itself, so whoever finds the name is in.
  @Test func fifosAndSocketsAreFoundByThoseWhoMayUseThem() throws {
    let tree = try Tree()
    defer { withExtendedLifetime(tree) {} }
    let view = tree.view
    for (type, needed) in [(S_IFIFO, 0o666), (S_IFSOCK, 0o222)] as [(mode_t, UInt32)] {
      let path = "Users/Shared/meeting"
      _ = try view.at(path) { (name, parent) throws(Errno) in
        try view.makeNode(name, in: parent, mode: type | 0o600, device: 0, by: .alice)
      }
      #expect(view.errno { v throws(Errno) in try v.find(path, by: .bob) } == .EACCES)
      // What one may use and another not is never remembered by name.
      #expect(try view.find(path, by: .alice).validity == 0)
      #expect(try view.find(path, by: .root).validity == 0)
      try view.change(path, by: .alice) { $0.mode = needed }
      // It may be closed again.
      #expect(try view.find(path, by: .bob).validity == 0)
      try view.change(path, by: .alice) { $0.mode = needed & 0o660 }
      #expect(view.errno { v throws(Errno) in try v.find(path, by: .bob) } == .EACCES)
      try view.remove(path)
    }
  }

  /// Root keeps device nodes in the tree as a whole; nobody else does, and nobody in a view or in a rule's
  /// way.
  @Test func devicesAreRoots() throws {
    let tree = try Tree()
    let null = clx_makedev(1, 3)
    func make(_ path: String, _ type: FileMode, in view: View, by caller: Caller) -> Errno? {
      view.errnoOfWorker { v throws(Errno) in
        _ = try v.at(path) { (name, parent) throws(Errno) in
          try v.makeNode(name, in: parent, mode: type | 0o620, device: null, by: caller)
        }
      }
    }
    let types: [FileMode] = [0o020000, 0o060000]
    for type in types {
      let path = "Users/Shared/device-\(type)"
      #expect(make(path, type, in: tree.view, by: .alice) == .EPERM)
      #expect(make(path, type, in: tree.view, by: .root) == nil)
      let node = try tree.view.node(path, by: .bob)
      let status = try tree.view.attributes(of: node, handle: nil, by: .bob).status
      #expect(status.st_mode == type | 0o620 && status.st_rdev == null)
      #expect(tree.view.errno { v throws(Errno) in try v.open(path, O_RDONLY, by: .root) } == .ENXIO)
      #expect(tree.view.errno { v throws(Errno) in _ = try v.inodeFlags(of: node, by: .root) } == .ENOTTY)
      #expect(make("System/Library/device", type, in: tree.view, by: .root) == .EROFS)
      #expect(make("Users/device", type, in: tree.view, by: .root) == nil)
      try tree.view.remove("Users/device")
      try tree.view.remove(path)
    }
    let app = try View(
      tree.volume, scope: Scope([ScopePlace([Array("Users".utf8), Array("Shared".utf8)], .everything)]),
      user: 0)
    defer { app.ended() }
    #expect(make("Users/Shared/device", types[0], in: app, by: .root) == .EPERM)
    let rootless = try Tree { $0.isSystem = false }
    #expect(make("Users/Shared/device", types[0], in: rootless.view, by: .root) == .EPERM)
  }

  @Test(arguments: [false, true])
  func groupOfNewObjects(nogrpid: Bool) throws {
    let tree = try Tree { $0.callerGroup = nogrpid }
    let view = tree.view
    try view.makeDirectory("Users/Shared/dir", mode: 0o777)
    #expect(
      chown(tree.path("Users/Shared/dir"), 0, 777) == 0 && chmod(tree.path("Users/Shared/dir"), 0o777) == 0)
    func expectGroups(_ gid: UInt32) throws {
      try view.make("Users/Shared/dir/file", by: .alice)
      try view.makeDirectory("Users/Shared/dir/sub", by: .alice)
      _ = try view.at("Users/Shared/dir/link") { (name, parent) throws(Errno) in
        try view.makeSymlink(name, in: parent, to: "x", by: .alice)
      }
      for name in ["file", "sub", "link"] {
        let status = try view.find("Users/Shared/dir/" + name).attributes.status
        #expect(status.st_gid == gid && status.st_uid == Caller.alice.uid)
        try view.remove("Users/Shared/dir/" + name, directory: name == "sub")
      }
    }
    try expectGroups(nogrpid ? Caller.alice.gid : 777)
    #expect(chmod(tree.path("Users/Shared/dir"), 0o2777) == 0)
    try expectGroups(777)
    // Set-group-id of a group that one is not in.
    let node = try view.make("Users/Shared/dir/file", mode: 0o2755, by: .alice)
    #expect(try view.attributes(of: node, handle: nil, by: .root).status.permissions == 0o755)
  }

  @Test func supplementaryGroupsCount() throws {
    let tree = try Tree()
    defer { withExtendedLifetime(tree) {} }
    let view = tree.view
    try view.makeDirectory("Users/Shared/admins", mode: 0o770)
    try view.change("Users/Shared/admins") { $0.gid = Tree.admins }
    let member = try Sleeper(groups: "\(Tree.admins)")
    let stranger = try Sleeper(groups: "54401")
    let inside = Caller(uid: 54321, gid: 54321, pid: member.pid)
    let outside = Caller(uid: 54321, gid: 54321, pid: stranger.pid)
    #expect(view.errno { v throws(Errno) in try v.make("Users/Shared/admins/a", by: inside) } == nil)
    #expect(view.errno { v throws(Errno) in try v.make("Users/Shared/admins/b", by: outside) } == .EACCES)
    #expect(view.errno { v throws(Errno) in try v.make("Users/Shared/admins/b", by: .admin) } == nil)
    // Where nothing can be learned, no right is given.
    #expect(view.errno { v throws(Errno) in try v.make("Users/Shared/admins/c", by: .alice) } == .EACCES)
  }

  /// The kernel can let a thread act as somebody else, of whose groups /proc says nothing.
  @Test func groupsOfSomebodyElseAreUnknown() throws {
    let tree = try Tree()
    defer { withExtendedLifetime(tree) {} }
    let view = tree.view
    let member = try Sleeper(groups: "54400")
    try view.make("Users/Shared/file", mode: 0o644, by: .root)
    func read(_ uid: UInt32, _ gid: UInt32) -> Errno? {
      view.errno { v throws(Errno) in
        try v.open("Users/Shared/file", O_RDONLY, by: Caller(uid: uid, gid: gid, pid: member.pid))
      }
    }
    try view.setACL("Users/Shared/file", AccessControlEntry(.deny, .group(54499), .read))
    #expect(read(54321, 54321) == nil)
    #expect(read(54322, 54321) == .EACCES)
    #expect(read(54321, 54322) == .EACCES)
    try view.change("Users/Shared/file") { $0.mode = 0o600 }
    try view.setACL("Users/Shared/file", AccessControlEntry(.permit, .group(54400), .read))
    #expect(read(54321, 54321) == nil)
    #expect(read(54322, 54321) == .EACCES)
    #expect(read(54321, 54322) == .EACCES)
  }
}
