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

/// What ACLs allow and deny, asked through the operations themselves.
@Suite(.enabled(if: Program.isRoot, "acting as several users needs root"))
struct ACLEnforcementTests {
  private let tree: Tree
  private var view: View { tree.view }
  private let dir = "Users/Shared/dir"
  private let file = "Users/Shared/dir/file"

  /// A directory and a file of Alice's that nobody else may do anything with.
  init() throws {
    tree = try Tree()
    try tree.view.makeDirectory(dir, mode: 0o711, by: .alice)
    try tree.view.make(file, mode: 0o600, by: .alice)
  }

  private func errno<Result>(_ body: @Sendable (View) throws(Errno) -> Result) -> Errno? {
    view.errnoOfWorker { v throws(Errno) in _ = try body(v) }
  }

  /// Something that takes one right, and what refuses it where the mode does not allow it.
  private struct Deed: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let right: Rights
    var isDirectory = false
    var refusal = Errno.EACCES
    /// The mode with which the others may do it too; nil where no mode lets them.
    var mode: UInt32? = 0o666
    let run: @Sendable (View, Caller) throws(Errno) -> Void
  }

  private static let deeds: [Deed] = [
    Deed(testDescription: "read", right: .read) { v, c throws(Errno) in
      try v.open("Users/Shared/dir/file", O_RDONLY, by: c)
    },
    Deed(testDescription: "write", right: .write) { v, c throws(Errno) in
      try v.open("Users/Shared/dir/file", O_WRONLY, by: c)
    },
    Deed(testDescription: "truncate at open", right: .write) { v, c throws(Errno) in
      try v.open("Users/Shared/dir/file", O_WRONLY | O_APPEND | O_TRUNC, by: c)
    },
    Deed(testDescription: "truncate", right: .write) { v, c throws(Errno) in
      try v.change("Users/Shared/dir/file", by: c) { $0.size = 0 }
    },
    Deed(testDescription: "append", right: .append) { v, c throws(Errno) in
      try v.open("Users/Shared/dir/file", O_WRONLY | O_APPEND, by: c)
    },
    Deed(testDescription: "execute", right: .execute, mode: 0o777) { v, c throws(Errno) in
      try v.open("Users/Shared/dir/file", 0x20, by: c)
    },
    Deed(testDescription: "times to now", right: .writeAttributes) { v, c throws(Errno) in
      try v.change("Users/Shared/dir/file", by: c) {
        $0.access = .now
        $0.modification = .now
      }
    },
    Deed(testDescription: "get an attribute", right: .readExtended) { v, c throws(Errno) in
      _ = try v.attribute("user.a", of: "Users/Shared/dir/file", by: c)
    },
    Deed(testDescription: "set an attribute", right: .writeExtended) { v, c throws(Errno) in
      try v.setAttribute("user.b", of: "Users/Shared/dir/file", to: [1], by: c)
    },
    Deed(testDescription: "chmod", right: .writeSecurity, refusal: .EPERM, mode: nil) { v, c throws(Errno) in
      try v.change("Users/Shared/dir/file", by: c) { $0.mode = 0o600 }
    },
    Deed(testDescription: "set a flag", right: .writeSecurity, refusal: .EPERM, mode: nil) {
      v, c throws(Errno) in
      try v.setFlags("Users/Shared/dir/file", "hidden", by: c)
    },
    Deed(testDescription: "take", right: .takeOwnership, refusal: .EPERM, mode: nil) { v, c throws(Errno) in
      try v.change("Users/Shared/dir/file", by: c) { $0.uid = c.uid }
    },
    Deed(testDescription: "list", right: .list, isDirectory: true, mode: 0o777) { v, c throws(Errno) in
      try v.openDirectory("Users/Shared/dir", by: c)
    },
    Deed(testDescription: "make a file", right: .addFile, isDirectory: true, mode: 0o777) {
      v, c throws(Errno) in
      try v.make("Users/Shared/dir/new", by: c)
    },
    Deed(testDescription: "make a link", right: .addFile, isDirectory: true, mode: 0o777) {
      v, c throws(Errno) in
      _ = try v.at("Users/Shared/dir/new") { (name, parent) throws(Errno) in
        try v.makeSymlink(name, in: parent, to: "x", by: c)
      }
    },
    Deed(testDescription: "make a fifo", right: .addFile, isDirectory: true, mode: 0o777) {
      v, c throws(Errno) in
      try v.makeFifo("Users/Shared/dir/new", mode: 0o666, by: c)
    },
    Deed(testDescription: "make a directory", right: .addSubdirectory, isDirectory: true, mode: 0o777) {
      v, c throws(Errno) in
      try v.makeDirectory("Users/Shared/dir/new", by: c)
    },
    Deed(testDescription: "move something in", right: .addFile, isDirectory: true, mode: 0o777) {
      v, c throws(Errno) in
      try v.make("Users/Shared/mine", by: c)
      do throws(Errno) {
        try v.rename("Users/Shared/mine", to: "Users/Shared/dir/new", by: c)
      } catch {
        try v.remove("Users/Shared/mine", by: c)
        throw error
      }
    },
    Deed(testDescription: "remove a file", right: .deleteChild, isDirectory: true, mode: 0o777) {
      v, c throws(Errno) in
      try v.remove("Users/Shared/dir/file", by: c)
    },
    Deed(testDescription: "look something up", right: .search, isDirectory: true, mode: 0o777) {
      v, c throws(Errno) in
      try v.at("Users/Shared/dir/file") { (name, parent) throws(Errno) in
        _ = try v.lookup(name, in: parent, by: c)
      }
    },
  ]

  /// Each right allows and denies just what it is for, whatever the mode says.
  @Test(arguments: deeds)
  private func rightsAreWhatTheyAreFor(_ deed: Deed) throws {
    let path = deed.isDirectory ? dir : file
    try view.setAttribute("user.a", of: file, to: [7])
    func run(by caller: Caller) -> Errno? { errno { v throws(Errno) in try deed.run(v, caller) } }
    // Nobody looks anything up in it.
    if deed.right == .search { try view.change(dir) { $0.mode = 0o700 } }
    #expect(run(by: .bob) == deed.refusal)
    try view.setACL(path, AccessControlEntry(.permit, .bob, Rights.all.subtracting(deed.right)))
    #expect(run(by: .bob) == deed.refusal)
    if let mode = deed.mode {
      try view.setACL(path, AccessControlEntry(.deny, .bob, deed.right))
      try view.change(path) { $0.mode = mode }
      #expect(run(by: .bob) == .EACCES)
      try view.setACL(path, AccessControlEntry(.deny, .alice, deed.right))
      #expect(run(by: .bob) == nil)
      if deed.isDirectory, deed.right != .search { try? view.remove(dir + "/new") }
      if deed.right == .deleteChild { try view.make(file, mode: 0o600, by: .alice) }
      try? view.remove(dir + "/new", directory: true)
      try view.change(path) { $0.mode = deed.isDirectory ? (deed.right == .search ? 0o700 : 0o711) : 0o600 }
    }
    try view.setACL(path, AccessControlEntry(.permit, .bob, deed.right))
    #expect(run(by: .bob) == nil)
    // Root needs no ACL.
    try? view.remove(dir + "/new")
    try? view.remove(dir + "/new", directory: true)
    if deed.right == .deleteChild { try view.make(file, mode: 0o600, by: .alice) }
    try view.setACL(path, AccessControlEntry(.deny, .everyone, .all))
    if deed.right != .execute { #expect(run(by: .root) == nil) }
  }

  @Test func firstEntryThatSettlesItWins() throws {
    try view.setACL(
      file, AccessControlEntry(.permit, .bob, .read), AccessControlEntry(.deny, .everyone, .read))
    #expect(errno { v throws(Errno) in try v.open(file, O_RDONLY, by: .bob) } == nil)
    try view.setACL(
      file, AccessControlEntry(.deny, .everyone, .read), AccessControlEntry(.permit, .bob, .read))
    #expect(errno { v throws(Errno) in try v.open(file, O_RDONLY, by: .bob) } == .EACCES)
    #expect(errno { v throws(Errno) in try v.open(file, O_RDONLY, by: .alice) } == .EACCES)
    #expect(errno { v throws(Errno) in try v.open(file, O_RDONLY, by: .root) } == nil)
  }

  @Test func attributesAreRefusedOnlyByTheObjectsOwnACL() throws {
    #expect(errno { v throws(Errno) in try v.stat(file, by: .bob) } == nil)
    for right in [Rights.readAttributes, .readSecurity] {
      try view.setACL(file, AccessControlEntry(.deny, .bob, right))
      #expect(errno { v throws(Errno) in try v.stat(file, by: .bob) } == .EACCES)
      #expect(errno { v throws(Errno) in try v.stat(file, by: .alice) } == nil)
      let node = try view.node(file)
      #expect(
        errno { v throws(Errno) in
          try withRoom(256) { (room) throws(Errno) in
            guard let base = room.baseAddress else { throw .EIO }
            _ = try v.extendedStatus(of: node, handle: nil, into: base, by: .bob)
          }
        } == .EACCES)
      // The kernel's own question about a file that is open is answered.
      #expect(
        errno { v throws(Errno) in try v.attributes(of: node, handle: HandleID(1), by: .bob) } == nil)
    }
    try view.setACL(file, AccessControlEntry(.deny, .bob, .readExtended))
    #expect(errno { v throws(Errno) in try v.attributeNames(of: file, by: .bob) } == .EACCES)
    try view.removeAttribute(View.aclAlias, of: file)
    #expect(errno { v throws(Errno) in try v.attributeNames(of: file, by: .bob) } == nil)
  }

  /// The object's ACL has the last word, then the directory's, then the directory's mode and its sticky bit.
  @Test func deletionAsksObjectAndDirectory() throws {
    #expect(errno { v throws(Errno) in try v.remove(file, by: .bob) } == .EACCES)
    try view.setACL(file, AccessControlEntry(.permit, .bob, .delete))
    try view.setACL(dir, AccessControlEntry(.deny, .bob, .deleteChild))
    #expect(errno { v throws(Errno) in try v.rename(file, to: "Users/Shared/stolen", by: .bob) } == nil)
    #expect(errno { v throws(Errno) in try v.remove("Users/Shared/stolen", by: .bob) } == nil)
    // The other way round: who may delete in the directory may not delete this.
    try view.make(file, mode: 0o600, by: .alice)
    try view.setACL(dir, AccessControlEntry(.permit, .bob, [.deleteChild, .addFile]))
    try view.setACL(file, AccessControlEntry(.deny, .everyone, .delete))
    for caller in [Caller.bob, .alice] {
      #expect(errno { v throws(Errno) in try v.remove(file, by: caller) } == .EACCES)
      #expect(errno { v throws(Errno) in try v.rename(file, to: dir + "/x", by: caller) } == .EACCES)
      // Nor is it replaced or exchanged.
      #expect(errno { v throws(Errno) in try v.make(dir + "/other", mode: 0o600, by: caller) } == nil)
      #expect(errno { v throws(Errno) in try v.rename(dir + "/other", to: file, by: caller) } == .EACCES)
      #expect(
        errno { v throws(Errno) in try v.rename(dir + "/other", to: file, flags: 2, by: caller) } == .EACCES)
      try view.remove(dir + "/other")
    }
    // A sticky directory's ACL lets one delete what is others'.
    try view.removeAttribute(View.aclAlias, of: file)
    try view.change(dir) { $0.mode = 0o1777 }
    #expect(errno { v throws(Errno) in try v.remove(file, by: .bob) } == nil)
    try view.make(file, mode: 0o600, by: .alice)
    try view.removeAttribute(View.aclAlias, of: dir)
    #expect(errno { v throws(Errno) in try v.remove(file, by: .bob) } == .EPERM)
    #expect(errno { v throws(Errno) in try v.remove(file, by: .root) } == nil)
  }

  @Test func nothingIsSaidAboutNamesThatOneMayNotLookUp() throws {
    try view.setACL(dir, AccessControlEntry(.deny, .bob, .search))
    for name in ["file", "missing"] {
      #expect(errno { v throws(Errno) in try v.remove(dir + "/" + name, by: .bob) } == .EACCES)
      #expect(
        errno { v throws(Errno) in try v.rename(dir + "/" + name, to: "Users/Shared/x", by: .bob) } == .EACCES
      )
    }
  }

  @Test func movedDirectoryIsAskedItself() throws {
    try view.change(dir) { $0.mode = 0o777 }
    try view.makeDirectory(dir + "/sub", mode: 0o755, by: .bob)
    try view.makeDirectory("Users/Shared/other", mode: 0o777, by: .bob)
    try view.setACL(dir + "/sub", AccessControlEntry(.deny, .bob, .addSubdirectory))
    // Its parent does not change.
    try view.rename(dir + "/sub", to: dir + "/sub2", by: .bob)
    #expect(
      errno { v throws(Errno) in try v.rename(dir + "/sub2", to: "Users/Shared/other/sub", by: .bob) }
        == .EACCES)
    try view.setACL("Users/Shared/other", AccessControlEntry(.deny, .bob, .addSubdirectory))
    try view.removeAttribute(View.aclAlias, of: dir + "/sub2")
    #expect(
      errno { v throws(Errno) in try v.rename(dir + "/sub2", to: "Users/Shared/other/sub", by: .bob) }
        == .EACCES)
    try view.setACL("Users/Shared/other", AccessControlEntry(.deny, .bob, .addFile))
    try view.rename(dir + "/sub2", to: "Users/Shared/other/sub", by: .bob)
  }

  /// Access answers what then happens.
  @Test func accessAgreesWithWhatHappens() throws {
    for (rights, mask) in [(Rights.read, R_OK), (.write, W_OK), (.execute, X_OK)] {
      try view.setACL(file, AccessControlEntry(.permit, .bob, rights))
      for wanted in [R_OK, W_OK, X_OK] {
        #expect(
          errno { v throws(Errno) in try v.access(file, wanted, by: .bob) }
            == (wanted == mask ? nil : .EACCES))
      }
    }
    try view.setACL(dir, AccessControlEntry(.permit, .bob, .addFile))
    #expect(errno { v throws(Errno) in try v.access(dir, W_OK, by: .bob) } == .EACCES)
    try view.setACL(dir, AccessControlEntry(.permit, .bob, [.addFile, .addSubdirectory]))
    #expect(errno { v throws(Errno) in try v.access(dir, W_OK, by: .bob) } == nil)
  }

  @Test func ownerMayAlwaysChangeTheSecurityOfWhatTheyOwn() throws {
    try view.setACL(file, AccessControlEntry(.deny, .everyone, .all), by: .alice)
    #expect(errno { v throws(Errno) in try v.change(file, by: .alice) { $0.mode = 0o640 } } == nil)
    // But not what may be denied to them.
    #expect(
      errno { v throws(Errno) in try v.change(file, by: .alice) { $0.modification = .set(FileTime()) } }
        == .EPERM)
    #expect(errno { v throws(Errno) in try v.removeAttribute(View.aclAlias, of: file, by: .bob) } == .EPERM)
    #expect(errno { v throws(Errno) in try v.removeAttribute(View.aclAlias, of: file, by: .alice) } == nil)
    // Whose rights a program has is not for those to say who may only change its mode.
    try view.setACL(file, AccessControlEntry(.permit, .bob, .writeSecurity))
    #expect(errno { v throws(Errno) in try v.change(file, by: .bob) { $0.mode = 0o4755 } } == .EPERM)
    // Nor set-group-id, unless they are in the group.
    #expect(errno { v throws(Errno) in try v.change(file, by: .bob) { $0.mode = 0o2755 } } == .EPERM)
    #expect(errno { v throws(Errno) in try v.change(file, by: .bob) { $0.mode = 0o755 } } == nil)
    #expect(errno { v throws(Errno) in try v.change(file, by: .bob) { $0.gid = Caller.bob.gid } } == nil)
    #expect(errno { v throws(Errno) in try v.change(file, by: .bob) { $0.uid = Caller.bob.uid } } == .EPERM)
    try view.setACL(file, AccessControlEntry(.permit, .bob, .takeOwnership))
    #expect(errno { v throws(Errno) in try v.change(file, by: .bob) { $0.uid = 0 } } == .EPERM)
    #expect(errno { v throws(Errno) in try v.change(file, by: .bob) { $0.uid = Caller.bob.uid } } == nil)
  }

  /// The groups of the caller's process count, and who can't be told to be in one gets nothing by it.
  @Test func groupsOfEntriesAreAskedFor() throws {
    let member = try Sleeper(groups: "54400,54410")
    let inside = Caller(uid: 54321, gid: 54321, pid: member.pid)
    let other = "Users/Shared/other"
    try view.make(other, mode: 0o600, by: .bob)
    try view.setACL(other, AccessControlEntry(.permit, .group(54410), .read))
    #expect(errno { v throws(Errno) in try v.open(other, O_RDONLY, by: inside) } == nil)
    #expect(errno { v throws(Errno) in try v.open(other, O_RDONLY, by: .alice) } == .EACCES)
    try view.change(other) { $0.mode = 0o644 }
    try view.setACL(other, AccessControlEntry(.deny, .group(54499), .read))
    #expect(errno { v throws(Errno) in try v.open(other, O_RDONLY, by: inside) } == nil)
    #expect(errno { v throws(Errno) in try v.open(other, O_RDONLY, by: .alice) } == .EACCES)
    #expect(
      errno { v throws(Errno) in try v.open(other, O_RDONLY, by: Caller(uid: 9, gid: 54499, pid: 0)) }
        == .EACCES)
  }

  /// Adding and searching are two questions, as when a Mac looks up the name first.
  @Test func makingAsksOneThingAfterTheOther() throws {
    try view.makeDirectory("Users/Shared/other", mode: 0o777, by: .bob)
    try view.make("Users/Shared/other/file", mode: 0o666, by: .bob)
    try view.setACL(
      dir, AccessControlEntry(.permit, .bob, .addFile), AccessControlEntry(.deny, .everyone, .addFile))
    let dir = dir
    func make(_ name: String, by caller: Caller, _ type: FileMode) -> Errno? {
      errno { v throws(Errno) in
        try v.at(dir + "/" + name) { (name, parent) throws(Errno) in
          try v.makeNode(name, in: parent, mode: type | 0o666, device: 0, by: caller)
        }
      }
    }
    func refused(_ caller: Caller) -> [Errno?] {
      [
        make("plain", by: caller, S_IFREG), make("fifo", by: caller, S_IFIFO),
        make("socket", by: caller, S_IFSOCK),
        errno { v throws(Errno) in try v.make(dir + "/created", by: caller) },
        errno { v throws(Errno) in
          try v.at(dir + "/link") { (name, parent) throws(Errno) in
            try v.makeSymlink(name, in: parent, to: "x", by: caller)
          }
        },
        errno { v throws(Errno) in
          try v.link("Users/Shared/other/file", as: dir + "/hard", by: caller)
        },
        errno { v throws(Errno) in
          let parent = try v.node(dir)
          let (entry, opened) = try v.createUnnamed(in: parent, flags: O_RDWR, mode: 0o600, by: caller)
          if let node = entry.node { v.release(node, handle: opened.handle, flockOwner: nil) }
        },
      ]
    }
    #expect(refused(.bob) == Array(repeating: nil, count: 7))
    #expect(refused(.alice) == Array(repeating: .EACCES, count: 7))
    try view.setACL(
      dir, AccessControlEntry(.permit, .bob, .addSubdirectory),
      AccessControlEntry(.deny, .everyone, .addSubdirectory))
    #expect(errno { v throws(Errno) in try v.makeDirectory(dir + "/sub", by: .bob) } == nil)
    #expect(errno { v throws(Errno) in try v.makeDirectory(dir + "/sub2", by: .alice) } == .EACCES)
    // Who may not search makes nothing, whatever they may add.
    try view.setACL(
      dir, AccessControlEntry(.permit, .bob, .addFile), AccessControlEntry(.deny, .bob, .search))
    #expect(refused(.bob) == Array(repeating: .EACCES, count: 7))
  }

  @Test func whatIsOpenStaysOpen() throws {
    let node = try view.node(file)
    let opened = try view.open(node, flags: O_RDWR, clearsSetID: false, by: .alice)
    try view.setACL(file, AccessControlEntry(.deny, .everyone, .all))
    try view.setFlags(file, "uchg")
    #expect(errno { v throws(Errno) in try v.open(file, O_RDONLY, by: .alice) } == .EACCES)
    let written = try withBytes("more") { (bytes) throws(Errno) in
      try view.write(
        node, handle: opened.handle, at: 0, from: bytes, [], by: .alice)
    }
    #expect(written == 4)
    var change = AttributeChange()
    change.size = 2
    _ = try view.setAttributes(of: node, handle: opened.handle, to: change, by: .alice)
    #expect(tree.temporary.text(of: file) == "mo")
    view.release(node, handle: opened.handle, flockOwner: nil)
  }

  @Test func fifosAreFoundByThoseWhomTheACLAllows() throws {
    let fifo = "Users/Shared/fifo"
    try view.makeFifo(fifo, mode: 0o666, by: .alice)
    #expect(try view.find(fifo, by: .bob).validity == 0)
    try view.setACL(fifo, AccessControlEntry(.deny, .bob, .read))
    #expect(errno { v throws(Errno) in try v.find(fifo, by: .bob) } == .EACCES)
    #expect(try view.find(fifo, by: .alice).validity == 0)
    try view.setACL(fifo, AccessControlEntry(.permit, .bob, [.read, .write]))
    try view.change(fifo) { $0.mode = 0o600 }
    #expect(errno { v throws(Errno) in try v.find(fifo, by: .bob) } == nil)
  }

  @Test func linksToWhatTheACLLetsOneWrite() throws {
    #expect(errno { v throws(Errno) in try v.link(file, as: "Users/Shared/link", by: .bob) } == .EPERM)
    try view.setACL(file, AccessControlEntry(.permit, .bob, [.read, .write]))
    #expect(errno { v throws(Errno) in try v.link(file, as: "Users/Shared/link", by: .bob) } == nil)
    // One object, one ACL.
    try view.setACL(file, AccessControlEntry(.deny, .bob, .read))
    #expect(errno { v throws(Errno) in try v.open("Users/Shared/link", O_RDONLY, by: .bob) } == .EACCES)
  }
}
