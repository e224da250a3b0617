// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing
@testable internal import Volume

/// The families of extended attributes.
@Suite(.enabled(if: Program.isRoot, "acting as several users needs root"))
struct ExtendedAttributeTests {
  private func set(_ view: View, _ node: NodeID, _ name: String, _ value: String = "v", by caller: Caller)
    -> Errno?
  {
    view.errno { v throws(Errno) in
      try name.withName { (name) throws(Errno) in
        try withBytes(value) { (bytes) throws(Errno) in
          try v.setAttribute(name, of: node, to: bytes, flags: 0, by: caller)
        }
      }
    }
  }
  private func get(_ view: View, _ node: NodeID, _ name: String, by caller: Caller) throws(Errno) -> String {
    try withRoom(100) { (room) throws(Errno) in
      let count = try name.withName { (name) throws(Errno) in
        try view.attribute(name, of: node, into: room, by: caller)
      }
      return String(decoding: room[..<count], as: UTF8.self)
    }
  }
  private func names(_ view: View, _ node: NodeID, by caller: Caller) throws(Errno) -> [String] {
    let size = try view.attributeNames(
      of: node, into: UnsafeMutableRawBufferPointer(start: nil, count: 0), by: caller)
    return try withRoom(4096) { (room) throws(Errno) in
      let count = try view.attributeNames(of: node, into: room, by: caller)
      #expect(size == count)
      return room[..<count].split(separator: 0).map { String(decoding: $0, as: UTF8.self) }.sorted()
    }
  }
  private func remove(_ view: View, _ node: NodeID, _ name: String, by caller: Caller) -> Errno? {
    view.errno { v throws(Errno) in
      try name.withName { (name) throws(Errno) in try v.removeAttribute(name, of: node, by: caller) }
    }
  }

  @Test func oursDoNotExistForAnyoneOutside() throws {
    let tree = try Tree()
    let view = tree.view
    let node = try view.make("Users/Shared/file", mode: 0o666)
    let ours = ["trusted.insula.acl", "user.insula.flags"]
    for name in ours { #expect(setxattr(tree.path("Users/Shared/file"), name, "x", 1, 0) == 0) }
    #expect(set(view, node, "user.mine", by: .alice) == nil)
    for caller in [Caller.root, .alice] {
      #expect(try names(view, node, by: caller) == ["user.mine"])
      for name in ours {
        #expect(view.errno { v throws(Errno) in try get(v, node, name, by: caller) } == .ENODATA)
        #expect(set(view, node, name, by: caller) == .EPERM)
        #expect(remove(view, node, name, by: caller) == .EPERM)
      }
    }
    // Only the whole prefix is ours.
    #expect(set(view, node, "user.insular", by: .alice) == nil)
    #expect(try get(view, node, "user.insular", by: .bob) == "v")
    for name in ours { #expect(getxattr(tree.path("Users/Shared/file"), name, nil, 0) == 1) }
  }

  @Test func familiesHaveTheirRules() throws {
    let tree = try Tree()
    let view = tree.view
    let node = try view.make("Users/Shared/file", mode: 0o640, by: .alice)
    #expect(set(view, node, "user.a", "one", by: .alice) == nil)
    #expect(try get(view, node, "user.a", by: .alice) == "one")
    #expect(view.errno { v throws(Errno) in try get(v, node, "user.a", by: .bob) } == .EACCES)
    #expect(
      set(view, node, "user.a", by: .bob) == .EACCES && remove(view, node, "user.a", by: .bob) == .EACCES)
    #expect(
      set(view, node, "trusted.a", by: .root) == nil && set(view, node, "trusted.a", by: .alice) == .EPERM)
    #expect(view.errno { v throws(Errno) in try get(v, node, "trusted.a", by: .alice) } == .ENODATA)
    #expect(try names(view, node, by: .alice) == ["user.a"])
    #expect(try names(view, node, by: .root) == ["trusted.a", "user.a"])
    for name in ["system.posix_acl_access", "system.posix_acl_default"] {
      #expect(set(view, node, name, by: .root) == .EOPNOTSUPP)
      #expect(view.errno { v throws(Errno) in try get(v, node, name, by: .root) } == .EOPNOTSUPP)
    }
    #expect(set(view, node, "odd.name", by: .alice) == .EOPNOTSUPP)
    #expect(remove(view, node, "user.none", by: .alice) == .ENODATA)
    // On a sticky directory only the owner's.
    let shared = try view.node("Users/Shared")
    #expect(
      set(view, shared, "user.a", by: .alice) == .EPERM && set(view, shared, "user.a", by: .root) == nil)
    let sealed = try view.node("System/Library")
    #expect(
      set(view, sealed, "user.a", by: .root) == .EROFS && remove(view, sealed, "user.a", by: .root) == .EROFS)
  }

  /// Whoever is told that there are none asks no more; a label that somebody has set is there.
  @Test func labelsOfSELinuxAreSaidToBeUnknownUnlessOneIsSet() throws {
    let tree = try Tree()
    defer { withExtendedLifetime(tree) {} }
    let view = tree.view
    let node = try view.make("Users/Shared/file", mode: 0o666)
    func label() throws(Errno) -> String { try get(view, node, "security.selinux", by: .alice) }
    #expect(view.errno { _ throws(Errno) in try label() } == .EOPNOTSUPP)
    #expect(view.errno { v throws(Errno) in try get(v, node, "security.other", by: .alice) } == .ENODATA)
    #expect(set(view, node, "security.selinux", "a:b:c", by: .root) == nil)
    #expect(try label() == "a:b:c")
    #expect(set(view, node, "security.selinux", by: .alice) == .EPERM)
  }

  @Test func sizesAreToldAndKept() throws {
    let tree = try Tree()
    defer { withExtendedLifetime(tree) {} }
    let view = tree.view
    let node = try view.make("Users/Shared/file", mode: 0o666)
    let value = String(repeating: "x", count: 60)
    #expect(set(view, node, "user.long", value, by: .root) == nil)
    try "user.long".withName { (name) throws(Errno) in
      let none = UnsafeMutableRawBufferPointer(start: nil, count: 0)
      #expect(try view.attribute(name, of: node, into: none, by: .root) == 60)
      #expect(
        view.errno { v throws(Errno) in
          try withRoom(59) { (room) throws(Errno) in try v.attribute(name, of: node, into: room, by: .root) }
        } == .ERANGE)
    }
    #expect(
      view.errno { v throws(Errno) in
        try withRoom(3) { (room) throws(Errno) in try v.attributeNames(of: node, into: room, by: .root) }
      } == .ERANGE)
  }
}
