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

/// What new objects get of their directory's ACL, and when.
@Suite(.enabled(if: Program.isRoot, "acting as several users needs root"))
struct NewObjectACLTests {
  private static let files = AccessControlEntry(.permit, .bob, .read, .fileInherit)
  private static let directories = AccessControlEntry(.deny, .bob, .delete, .directoryInherit)
  private static let once = AccessControlEntry(
    .permit, .owner, .all, [.fileInherit, .directoryInherit, .limitInherit, .onlyInherit])
  private let dir = "Users/Shared/dir"

  private func made(_ staging: Bool, callerGroup: Bool = false, mode: UInt32 = 0o777) throws -> Tree {
    let tree = try Tree(hasStaging: staging) { $0.callerGroup = callerGroup }
    try tree.view.makeDirectory(dir, by: .alice)
    try tree.view.change(dir) {
      $0.mode = mode
      $0.gid = 777
    }
    try tree.view.change(dir) { $0.mode = mode }
    try tree.view.setACL(dir, Self.files, Self.directories, Self.once)
    return tree
  }

  private func entry(
    _ kind: AccessControlEntry.Kind, _ principal: Principal, _ rights: Rights,
    _ inheritance: AccessControlEntry.Inheritance = []
  ) -> AccessControlEntry {
    AccessControlEntry(kind, principal, rights, inheritance.union(.inherited))
  }

  @Test(arguments: [true, false])
  func everyKindGetsItsEntries(staging: Bool) throws {
    let tree = try made(staging)
    let view = tree.view
    try view.make(dir + "/file", by: .alice)
    try view.makeFifo(dir + "/fifo", mode: 0o600, by: .alice)
    _ = try view.at(dir + "/node") { (name, parent) throws(Errno) in
      try view.makeNode(name, in: parent, mode: S_IFREG | 0o600, device: 0, by: .alice)
    }
    let forFiles = AccessControlList([entry(.permit, .bob, .read), entry(.permit, .owner, .all)])
    for name in ["file", "fifo", "node"] { #expect(try view.acl(of: dir + "/" + name) == forFiles) }
    try view.makeDirectory(dir + "/sub", by: .alice)
    #expect(
      try view.acl(of: dir + "/sub")
        == AccessControlList([entry(.deny, .bob, .delete, .directoryInherit), entry(.permit, .owner, .all)]))
    // The third level: what is limited has ended, and an entry for files does not pass through directories.
    try view.makeDirectory(dir + "/sub/sub", by: .alice)
    #expect(
      try view.acl(of: dir + "/sub/sub")
        == AccessControlList([entry(.deny, .bob, .delete, .directoryInherit)]))
    try view.make(dir + "/sub/file", by: .alice)
    #expect(try view.acl(of: dir + "/sub/file") == nil)
    _ = try view.at(dir + "/link") { (name, parent) throws(Errno) in
      try view.makeSymlink(name, in: parent, to: "x", by: .alice)
    }
    #expect(try view.acl(of: dir + "/link") == nil)
    #expect(try tree.staging.names().isEmpty)
    // What is moved or linked keeps what it has.
    try view.make("Users/Shared/plain", by: .alice)
    try view.rename("Users/Shared/plain", to: dir + "/plain", by: .alice)
    #expect(try view.acl(of: dir + "/plain") == nil)
    try view.rename(dir + "/file", to: "Users/Shared/file", by: .alice)
    #expect(try view.acl(of: "Users/Shared/file") == forFiles)
    // And it counts.
    #expect(view.errno { v throws(Errno) in try v.open("Users/Shared/file", O_RDONLY, by: .bob) } == nil)
  }

  @Test(arguments: [true, false], [true, false])
  func ownerGroupAndModeAreThoseOfAnyNewObject(staging: Bool, callerGroup: Bool) throws {
    for mode in [0o777, 0o2777] as [UInt32] {
      let tree = try made(staging, callerGroup: callerGroup, mode: mode)
      let view = tree.view
      try view.makeDirectory("Users/Shared/plain", by: .alice)
      try view.change("Users/Shared/plain") { $0.gid = 777 }
      try view.change("Users/Shared/plain") { $0.mode = mode }
      for base in [dir, "Users/Shared/plain"] {
        try view.make(base + "/file", mode: 0o2751, by: .bob)
        try view.makeDirectory(base + "/sub", mode: 0o1750, by: .bob)
        try view.makeFifo(base + "/fifo", mode: 0o640, by: .bob)
      }
      for name in ["/file", "/sub", "/fifo"] {
        let one = try view.find(dir + name, by: .root).attributes.status
        let other = try view.find("Users/Shared/plain" + name, by: .root).attributes.status
        #expect(one.st_uid == Caller.bob.uid && other.st_uid == Caller.bob.uid)
        #expect(one.st_gid == other.st_gid && one.st_mode == other.st_mode, "\(name) in \(mode)")
      }
    }
  }

  @Test(arguments: [true, false])
  func nameThatIsTakenStaysAsItIs(staging: Bool) throws {
    let tree = try made(staging)
    let view = tree.view
    try tree.temporary.write("mine", to: dir + "/file")
    try tree.temporary.makeDirectory(dir + "/sub")
    #expect(view.errno { v throws(Errno) in try v.makeDirectory(dir + "/sub", by: .alice) } == .EEXIST)
    #expect(
      view.errno { v throws(Errno) in try v.makeFifo(dir + "/file", mode: 0o666, by: .alice) } == .EEXIST)
    let taken = view.errno { v throws(Errno) in
      try v.at(dir + "/file") { (name, parent) throws(Errno) in
        try v.create(name, in: parent, flags: O_RDWR | O_EXCL, mode: 0o666, by: .alice)
      }
    }
    #expect(taken == .EEXIST)
    // Without O_EXCL it is opened; root may.
    try view.make(dir + "/file")
    #expect(tree.temporary.text(of: dir + "/file") == "mine")
    #expect(try view.acl(of: dir + "/file") == nil && view.acl(of: dir + "/sub") == nil)
    #expect(try tree.staging.names().isEmpty)
  }

  @Test func temporaryFileHasItsACLBeforeItHasAName() throws {
    let tree = try made(true)
    let view = tree.view
    let (entry, opened) = try view.createUnnamed(
      in: try view.node(dir), flags: O_RDWR, mode: 0o600, by: .alice)
    let node = try #require(entry.node)
    _ = try view.at("Users/Shared/named") { (name, parent) throws(Errno) in
      try view.link(node, as: name, in: parent, by: .alice)
    }
    view.release(node, handle: opened.handle, flockOwner: nil)
    #expect(try view.acl(of: "Users/Shared/named")?.entries.count == 2)
  }

  @Test func longestACLIsInherited() throws {
    let tree = try made(true)
    let view = tree.view
    let long = (0..<128).map { AccessControlEntry(.permit, .user(UInt32($0)), .read, .fileInherit) }
    try view.setAttribute(View.aclAlias, of: dir, to: AccessControlList(long).filesec)
    try view.make(dir + "/file", by: .alice)
    #expect(try view.acl(of: dir + "/file")?.entries.count == 128)
    #expect(try tree.staging.names().isEmpty)
  }
}
