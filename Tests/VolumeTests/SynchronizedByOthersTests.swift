// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

@testable internal import Volume

/// Whoever may only read something has nothing of it written to the disk: the kernel holds it meanwhile.
@Suite(.enabled(if: Program.isRoot, "a tree of several users needs root"))
struct SynchronizedByOthersTests {
  @Test func directoriesAreForWhoeverMayChangeThem() throws {
    let tree = try Tree()
    let view = tree.view
    try view.makeDirectory("Users/Shared/team", mode: 0o755, by: .alice)
    try view.makeDirectory("Users/Shared/box", mode: 0o733, by: .alice)
    for (path, caller, may) in [
      ("Users", Caller.alice, false), ("Users", .root, true), ("Users/Shared", .alice, true),
      ("Users/Shared/team", .alice, true), ("Users/Shared/team", .bob, false),
      ("Users/Shared/box", .bob, true),
    ] {
      #expect(try view.mayHaveChanged(view.node(path), handle: nil, caller) == may, "\(path) \(caller.uid)")
    }
    // Its owner may have changed it before.
    #expect(chmod(tree.path("Users/Shared/team"), 0o555) == 0)
    #expect(try view.mayHaveChanged(view.node("Users/Shared/team"), handle: nil, .alice))
  }

  @Test func filesAreForWhoeverHasOpenedThemForWriting() throws {
    let tree = try Tree()
    let view = tree.view
    let node = try view.make("Users/Shared/file", mode: 0o644, by: .alice)
    let reading = try view.open(node, flags: O_RDONLY, clearsSetID: false, by: .bob)
    let writing = try view.open(node, flags: O_RDWR, clearsSetID: false, by: .alice)
    #expect(!view.mayHaveChanged(node, handle: reading.handle, .bob))
    #expect(view.mayHaveChanged(node, handle: reading.handle, .alice))
    // It may have been handed on.
    #expect(view.mayHaveChanged(node, handle: writing.handle, .bob))
    view.release(node, handle: reading.handle, flockOwner: nil)
    view.release(node, handle: writing.handle, flockOwner: nil)
  }
}
