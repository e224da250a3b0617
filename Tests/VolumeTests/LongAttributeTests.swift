// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing
@testable internal import Volume

@Suite struct LongAttributeTests {
  /// What is worked out of others' declarations and files must not keep workers from quick requests.
  @Test(
    .enabled(if: Program.isRoot, "a tree of several users needs root"),
    arguments: [
      ("system.insula.type", true), ("system.insula.kind", true), ("system.insula.package", true),
      ("system.insula.name", true), ("system.insula.name.de", true), ("system.insula.acl", false),
      ("system.insula.flags", false), ("system.nfs4_acl", false), ("user.x", false),
    ])
  func whatIsWorkedOutIsLong(name: String, isLong: Bool) throws {
    let tree = try Tree()
    let found = try name.withName { (name) throws(Errno) in tree.view.isLongAttribute(name) }
    #expect(found == isLong)
  }
}
