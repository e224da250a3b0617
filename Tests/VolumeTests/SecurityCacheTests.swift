// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
@testable internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing
@testable internal import Volume

/// What is remembered of ACLs, and what the kernel is told when they change.
@Suite(.enabled(if: Program.isRoot, "acting as several users needs root"))
struct SecurityCacheTests {
  private let dir = "Users/Shared/dir"
  private let file = "Users/Shared/dir/file"

  private func tree() throws -> Tree {
    // A directory that has closed is remembered again at once: what that costs others is tested elsewhere.
    let tree = try Tree { $0.backoffSeconds = 0 }
    try tree.view.makeDirectory(dir, mode: 0o755, by: .alice)
    try tree.view.make(file, mode: 0o644, by: .alice)
    return tree
  }

  private func flags(_ tree: Tree, _ path: String) throws -> Node.Flags {
    try #require(tree.view.nodes.with(try tree.view.node(path)) { $0.flags })
  }

  @Test func objectsWithoutACLsAreReadOnce() throws {
    let tree = try tree()
    // What is made is known; what is found is learned.
    try tree.temporary.write("x", to: dir + "/found")
    for path in [dir, file, dir + "/found"] {
      #expect(try flags(tree, path).contains(.securityKnown))
      #expect(try flags(tree, path).isDisjoint(with: [.hasSecurity, .hidesAttributes]))
    }
    // Nobody looks again: what someone puts there behind the daemon is not seen.
    let bytes = AccessControlList([AccessControlEntry(.deny, .everyone, .all)]).filesec
    #expect(setxattr(tree.path(file), "trusted.insula.acl", bytes, bytes.count, 0) == 0)
    try tree.view.open(file, O_RDONLY, by: .bob)
    #expect(tree.volume.securities.count == 0)
  }

  @Test(arguments: ["deny", "allow", "flags"])
  func aclThatClosesADirectoryWithdrawsNames(how: String) throws {
    let tree = try tree()
    let view = tree.view
    let day = view.volume.settings.cacheSeconds
    #expect(try view.find(file, by: .bob).validity == day)
    _ = tree.connection.take()
    let closes = how == "deny"
    switch how {
    case "deny": try view.setACL(dir, AccessControlEntry(.deny, .bob, .search))
    case "allow": try view.setACL(dir, AccessControlEntry(.permit, .bob, .all))
    default: try view.setFlags(dir, "hidden")
    }
    #expect(tree.connection.take().contains(.entries) == closes)
    #expect(try view.find(file, by: .alice).validity == (closes ? 0 : day))
    try view.setACL(dir, AccessControlEntry(.deny, .bob, .read))
    #expect(!tree.connection.take().contains(.entries))
    #expect(try view.find(file, by: .bob).validity == day)
    // An ACL that only names someone for later closes nothing now.
    try view.setACL(dir, AccessControlEntry(.deny, .bob, .search, [.directoryInherit, .onlyInherit]))
    #expect(!tree.connection.take().contains(.entries))
  }

  @Test func directoryThatInheritsAnACLIsClosedFromTheStart() throws {
    let tree = try tree()
    let view = tree.view
    try view.setACL(dir, AccessControlEntry(.deny, .bob, .search, .directoryInherit))
    try view.change(dir) { $0.mode = 0o777 }
    try view.makeDirectory(dir + "/sub", mode: 0o777, by: .alice)
    try view.make(dir + "/sub/file", by: .alice)
    #expect(try view.find(dir + "/sub/file").validity == 0)
  }

  @Test func attributesThatMayBeRefusedAreNotTheKernelsToGive() throws {
    let tree = try tree()
    let view = tree.view
    let day = view.volume.settings.cacheSeconds
    let node = try view.node(file)
    func validity() throws -> Double { try view.attributes(of: node, handle: nil, by: .alice).validity }
    #expect(try validity() == day)
    _ = tree.connection.take()
    try view.setACL(file, AccessControlEntry(.deny, .bob, .readAttributes))
    #expect(tree.connection.take() == [.attributes(node)])
    #expect(try validity() == 0 && view.find(file).attributes.validity == 0)
    var change = AttributeChange()
    change.mode = 0o640
    #expect(
      try view.setAttributes(of: node, handle: nil, to: change, by: .alice).validity == 0)
    try view.setACL(file, AccessControlEntry(.deny, .bob, .write))
    #expect(try validity() == day)
    // The directory's listing would take the kernel to ask for its attributes in the reader's name.
    func listing() throws -> OpenMode { try view.openDirectory(try view.node(dir), by: .alice).mode }
    #expect(try listing().contains(.cacheListing))
    try view.setACL(dir, AccessControlEntry(.deny, .bob, .readSecurity))
    #expect(try !listing().contains(.cacheListing))
  }

  @Test func changeThroughOneViewIsSeenInAllOthers() throws {
    let tree = try tree()
    let other = try View(tree.volume)
    let connection = RecordingConnection(passthrough: false, canWithdraw: true)
    other.started(connection)
    try other.find(file, by: .bob)
    let node = try other.node(file)
    _ = connection.take()
    try tree.view.setACL(file, AccessControlEntry(.deny, .bob, [.read, .readAttributes]))
    // And names, since the attributes may not have arrived yet.
    #expect(connection.take() == [.attributes(node), .entries])
    #expect(throws: Errno.EACCES) { try other.open(file, O_RDONLY, by: .bob) }
    #expect(throws: Errno.EACCES) { try other.stat(file, by: .bob) }
    try tree.view.setACL(dir, AccessControlEntry(.deny, .bob, .search))
    #expect(connection.take().contains(.entries))
    try other.setFlags(file, "uchg")
    #expect(throws: Errno.EPERM) { try tree.view.open(file, O_WRONLY, by: .root) }
  }

  /// Whoever has read what has changed since does not overwrite what is true now.
  @Test func whatWasReadBeforeAChangeIsNotKept() throws {
    let tree = try tree()
    let view = tree.view
    let node = try view.node(file)
    let before = tree.volume.securities.changes
    try view.setACL(file, AccessControlEntry(.deny, .bob, .read))
    view.noteSecurity(.none, of: node, readAfter: before)
    view.noteSecurity(Security(flags: .hidden), of: node, readAfter: before)
    #expect(throws: Errno.EACCES) { try view.open(file, O_RDONLY, by: .bob) }
    #expect(tree.volume.securities.count == 1)
  }

  @Test func cacheHasItsBounds() throws {
    let cache = SecurityCache()
    let count = UInt64(SecurityCache.capacity) + 1000
    func identity(_ number: UInt64) -> Identity { .numbered(number, device: 1) }
    for number in 0..<count {
      cache.note(Security(flags: FileFlags(rawValue: UInt32(number))), of: identity(number), readAfter: 0)
    }
    #expect(cache.count == SecurityCache.capacity)
    #expect(cache.find(identity(0)) == nil)
    #expect(cache.find(identity(count - 1))?.flags.rawValue == UInt32(count - 1))
    cache.changed(identity(count - 1))
    #expect(cache.find(identity(count - 1)) == nil)
    cache.note(.none, of: identity(5), readAfter: 0)
    #expect(cache.find(identity(5)) == nil)
    for _ in 0..<3 {
      cache.note(Security(flags: .hidden), of: identity(5), readAfter: cache.changes)
      cache.changed(identity(5))
    }
    #expect(cache.count < SecurityCache.capacity)
  }

  /// More ACLs than are remembered: they are read again.
  @Test func aclThatWasForgottenIsReadAgain() throws {
    let tree = try tree()
    let view = tree.view
    try view.setACL(file, AccessControlEntry(.deny, .bob, .read))
    #expect(throws: Errno.EACCES) { try view.open(file, O_RDONLY, by: .bob) }
    for number in 0..<UInt64(SecurityCache.capacity) {
      tree.volume.securities.note(
        Security(flags: .hidden), of: .numbered(number, device: 1), readAfter: tree.volume.securities.changes)
    }
    #expect(throws: Errno.EACCES) { try view.open(file, O_RDONLY, by: .bob) }
    #expect(throws: Errno.EACCES) { try view.remove(file, by: .bob) }
  }
}
