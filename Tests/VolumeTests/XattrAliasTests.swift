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

/// ACLs and flags as extended attributes.
@Suite(.enabled(if: Program.isRoot, "acting as several users needs root"))
struct XattrAliasTests {
  private let tree: Tree
  private var view: View { tree.view }
  private let file = "Users/Shared/file"
  private let acl = AccessControlList(
    [
      AccessControlEntry(.deny, .everyone, .delete),
      AccessControlEntry(.permit, .owner, [.read, .write], .inherited),
    ])
  private static let apple = "user.com.apple.system.Security"
  private static let nfs4 = "system.nfs4_acl"
  private static let alias = View.aclAlias

  init() throws {
    tree = try Tree()
    try tree.view.make(file, mode: 0o644, by: .alice)
  }

  private func errno<Result>(_ body: (View) throws(Errno) -> Result) -> Errno? { view.errno(body) }

  private var kept: [UInt8]? {
    var room = [UInt8](repeating: 0, count: 4096)
    let count = getxattr(tree.path(file), "trusted.insula.acl", &room, room.count)
    return count < 0 ? nil : Array(room[..<count])
  }

  @Test func allAliasesLeadToOneACL() throws {
    for name in [Self.alias, Self.apple] {
      #expect(errno { v throws(Errno) in try v.attribute(name, of: file) } == .ENODATA)
      #expect(errno { v throws(Errno) in try v.removeAttribute(name, of: file) } == .ENODATA)
    }
    // What stands for the mode.
    let ofMode = try view.attribute(Self.nfs4, of: file)
    #expect(
      !ofMode.isEmpty && errno { v throws(Errno) in try v.removeAttribute(Self.nfs4, of: file) } == .ENODATA)
    for name in [Self.alias, Self.apple] {
      try view.setAttribute(name, of: file, to: acl.filesec, by: .alice)
      #expect(kept == acl.filesec)
      #expect(try view.attribute(Self.alias, of: file) == acl.filesec)
      #expect(try view.attribute(Self.apple, of: file) == acl.filesec)
      let nfs4 = try view.attribute(Self.nfs4, of: file)
      #expect(nfs4 != ofMode)
      try view.removeAttribute(name, of: file, by: .alice)
      #expect(kept == nil)
      try view.setAttribute(Self.nfs4, of: file, to: nfs4, by: .alice)
      #expect(try view.acl(of: file) == acl)
      try view.removeAttribute(Self.nfs4, of: file, by: .alice)
    }
  }

  @Test func copyingProgramsSeeTheACL() throws {
    #expect(try view.attributeNames(of: file).isEmpty)
    try view.setAttribute(Self.alias, of: file, to: acl.filesec)
    try view.setFlags(file, "hidden")
    try view.setAttribute("user.mine", of: file, to: [1])
    #expect(
      try view.attributeNames(of: file, by: .bob)
        == [Self.nfs4, Self.apple, "user.mine", "user.org.insula.flags"].sorted())
    #expect(
      errno { v throws(Errno) in
        let node = try v.node(file)
        try withRoom(40) { (room) throws(Errno) in
          _ = try v.attributeNames(of: node, into: room, by: .bob)
        }
      } == .ERANGE)
    try view.makeFifo("Users/Shared/fifo", mode: 0o666, by: .alice)
    try view.setAttribute(Self.alias, of: "Users/Shared/fifo", to: acl.filesec)
    #expect(try view.attributeNames(of: "Users/Shared/fifo") == [Self.nfs4])
    // An empty ACL is an ACL.
    try view.setAttribute(Self.alias, of: file, to: AccessControlList([]).filesec)
    #expect(try view.acl(of: file) == AccessControlList([]))
    #expect(try view.attributeNames(of: file).contains(Self.apple))
  }

  @Test func whatIsNoACLChangesNothing() throws {
    try view.setAttribute(Self.alias, of: file, to: acl.filesec)
    let entry = AccessControlEntry(.permit, .everyone, .read)
    let most = AccessControlList([AccessControlEntry](repeating: entry, count: 128))
    let tooMany = AccessControlList([AccessControlEntry](repeating: entry, count: 129))
    for name in [Self.alias, Self.apple, Self.nfs4] {
      for bytes in [
        [], [1], Array(acl.filesec.dropLast()), acl.filesec + [0], [UInt8](repeating: 0xff, count: 4096),
      ] {
        #expect(
          errno { v throws(Errno) in try v.setAttribute(name, of: file, to: bytes, by: .alice) } == .EINVAL,
          "\(name) \(bytes.count)")
      }
    }
    #expect(
      errno { v throws(Errno) in try v.setAttribute(Self.alias, of: file, to: tooMany.filesec) } == .E2BIG)
    #expect(kept == acl.filesec)
    try view.setAttribute(Self.alias, of: file, to: most.filesec)
    #expect(try view.acl(of: file) == most)
    _ = try view.at("Users/Shared/link") { (name, parent) throws(Errno) in
      try view.makeSymlink(name, in: parent, to: "x", by: .alice)
    }
    #expect(
      errno { v throws(Errno) in
        try v.setAttribute(Self.alias, of: "Users/Shared/link", to: acl.filesec, by: .alice)
      } == .EOPNOTSUPP)
    try tree.temporary.write("x", to: "System/Library/file")
    for name in [Self.alias, Self.apple, Self.nfs4] {
      #expect(
        errno { v throws(Errno) in try v.setAttribute(name, of: "System/Library/file", to: acl.filesec) }
          == .EROFS)
      #expect(errno { v throws(Errno) in try v.removeAttribute(name, of: "System/Library/file") } == .EROFS)
    }
    for name in ["system.posix_acl_access", "system.posix_acl_default"] {
      #expect(errno { v throws(Errno) in try v.setAttribute(name, of: file, to: [2]) } == .EOPNOTSUPP)
    }
  }

  @Test func setxattrsFlagsAreHonoured() throws {
    let create: Int32 = 1
    let replace: Int32 = 2
    func set(_ flags: Int32) -> Errno? {
      errno { v throws(Errno) in try v.setAttribute(Self.alias, of: file, to: acl.filesec, flags: flags) }
    }
    #expect(set(replace) == .ENODATA)
    #expect(set(create) == nil)
    #expect(set(create) == .EEXIST)
    #expect(set(replace) == nil)
  }

  @Test func aclsAreForThoseWhoMaySeeAndChangeThem() throws {
    try view.setAttribute(Self.alias, of: file, to: acl.filesec)
    for name in [Self.alias, Self.apple, Self.nfs4] {
      let value = try view.attribute(name, of: file, by: .bob)
      #expect(
        errno { v throws(Errno) in try v.setAttribute(name, of: file, to: value, by: .bob) } == .EPERM)
      #expect(errno { v throws(Errno) in try v.removeAttribute(name, of: file, by: .bob) } == .EPERM)
    }
    try view.setACL(
      file, AccessControlEntry(.deny, .bob, .readSecurity), AccessControlEntry(.permit, .bob, .writeSecurity))
    for name in [Self.alias, Self.apple, Self.nfs4] {
      #expect(errno { v throws(Errno) in try v.attribute(name, of: file, by: .bob) } == .EACCES)
    }
    try view.setAttribute(Self.alias, of: file, to: acl.filesec, by: .bob)
    #expect(try view.acl(of: file) == acl)
    // On what everyone may write to, the mode gives nobody the ACL.
    #expect(
      errno { v throws(Errno) in
        try v.setAttribute(Self.alias, of: "Users/Shared", to: acl.filesec, by: .alice)
      }
        == .EPERM)
  }

  /// An ACL that can't be understood lets nobody in but root, who puts another in its place.
  @Test func damagedACLRefuses() throws {
    for bytes in [[], [1, 2, 3], [UInt8](repeating: 0, count: 44), Array(acl.filesec.dropLast())]
      as [[UInt8]]
    {
      let name = "Users/Shared/damaged"
      try tree.temporary.write("x", to: name)
      #expect(chown(tree.path(name), Caller.alice.uid, 0) == 0 && chmod(tree.path(name), 0o666) == 0)
      #expect(setxattr(tree.path(name), "trusted.insula.acl", bytes, bytes.count, 0) == 0)
      for caller in [Caller.alice, .bob] {
        #expect(errno { v throws(Errno) in try v.open(name, O_RDONLY, by: caller) } == .EACCES)
        #expect(errno { v throws(Errno) in try v.stat(name, by: caller) } == .EACCES)
        #expect(errno { v throws(Errno) in try v.remove(name, by: caller) } == .EACCES)
      }
      #expect(errno { v throws(Errno) in try v.open(name, O_RDWR, by: .root) } == nil)
      #expect(errno { v throws(Errno) in try v.attribute(Self.alias, of: name) } == .EIO)
      try view.setAttribute(Self.alias, of: name, to: acl.filesec)
      #expect(errno { v throws(Errno) in try v.open(name, O_RDONLY, by: .bob) } == nil)
      try view.remove(name)
    }
  }

  @Test func damagedFlagsForbid() throws {
    let name = "Users/Shared/damaged"
    for bytes in [[], [1], [0, 0, 0, 0, 0], [0xff, 0xff, 0xff, 0xff]] as [[UInt8]] {
      try tree.temporary.write("x", to: name)
      #expect(setxattr(tree.path(name), "trusted.insula.flags", bytes, bytes.count, 0) == 0)
      #expect(errno { v throws(Errno) in try v.open(name, O_WRONLY, by: .root) } == .EPERM)
      #expect(errno { v throws(Errno) in try v.remove(name, by: .root) } == .EPERM)
      #expect(errno { v throws(Errno) in try v.open(name, O_RDONLY, by: .root) } == nil)
      #expect(try view.flags(of: name) == "schg")
      try view.setFlags(name, "schg")
      #expect(getxattr(tree.path(name), "trusted.insula.flags", nil, 0) == 4)
      try view.setFlags(name, "")
      try view.remove(name)
    }
  }
}
