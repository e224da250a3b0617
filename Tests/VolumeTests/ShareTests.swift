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

/// What one user may make grow.
struct ShareTests {
  private func descriptors() throws -> Int {
    let own = try FD.cwd.openFollowing("/proc/self/fd", O_RDONLY | O_DIRECTORY)
    return try own.fd.entries().count
  }

  /// A budget of so many of a kind.
  private static func budget(_ kind: Budget.Kind, _ pool: Int) -> Budget {
    var limits = Budget.Limits(descriptors: 1 << 14)
    limits[kind] = pool
    return Budget(limits)
  }

  @Test(.enabled(if: Program.isRoot))
  func openDirectoriesHoldNoDescriptors() throws {
    let tree = try Tree()
    let view = tree.view
    try tree.temporary.makeDirectory("Users/Shared/dir")
    let node = try view.node("Users/Shared/dir")
    let before = try descriptors()
    let handles = try (0..<5000).map { _ in try view.openDirectory(node, by: .alice).handle }
    // A directory that is being read has one, and there are few of those, whoever reads.
    for handle in handles {
      #expect(try view.page(node, handle, after: 0, size: 4096, withAttributes: false).count == 2)
    }
    // Other tests have some open as well.
    #expect(try descriptors() <= before + ListingDescriptors.limit + 1000)
    for handle in handles { view.releaseDirectory(node, handle: handle) }
    #expect(view.counts.openDirectories == 0 && tree.volume.budget.total(.openDirectories) == 0)
    #expect(try descriptors() <= before + 1000)
  }

  /// Without the daemon's rights a directory that was closed could not be opened again.
  @Test func userWhoseOwnDaemonItIsKeepsReadingWhatHasClosed() throws {
    let tree = try Tree { $0.isSystem = false }
    let view = tree.view
    try tree.temporary.makeDirectory("Users/Shared/dir", mode: 0o700)
    let node = try view.node("Users/Shared/dir", by: .me)
    let handle = try view.openDirectory(node, by: .me).handle
    #expect(chmod(tree.path("Users/Shared/dir"), 0) == 0)
    tree.volume.listings.removeAll()
    #expect(try view.page(node, handle, after: 0, size: 4096, withAttributes: false).count == 2)
    #expect(tree.volume.budget.total(.descriptors) == 1)
    view.releaseDirectory(node, handle: handle)
    #expect(tree.volume.budget.total(.descriptors) == 0)
    #expect(chmod(tree.path("Users/Shared/dir"), 0o700) == 0)
  }

  @Test(.enabled(if: Program.isRoot))
  func directoriesOfOneUserLeaveThoseOfOthers() throws {
    let tree = try Tree(budget: Self.budget(.openDirectories, 1600))
    let view = tree.view
    try tree.temporary.makeDirectory("Users/Shared/dir", mode: 0o777)
    let node = try view.node("Users/Shared/dir")
    var handles: [HandleID] = []
    for _ in 0..<300 { handles.append(try view.openDirectory(node, by: .alice).handle) }
    #expect(throws: Errno.EMFILE) { try view.openDirectory(node, by: .alice) }
    for caller in [Caller.bob, .root] { handles.append(try view.openDirectory(node, by: caller).handle) }
    #expect(tree.volume.budget.refusals.map(\.user) == [Caller.alice.uid])
    for handle in handles { view.releaseDirectory(node, handle: handle) }
    #expect(tree.volume.budget.total(.openDirectories) == 0)
  }

  /// Files whose data goes through the daemon take a descriptor each.
  @Test(.enabled(if: Program.isRoot))
  func filesOfOneUserLeaveThoseOfOthers() throws {
    let tree = try Tree(budget: Self.budget(.descriptors, 1600))
    let view = tree.view
    try tree.temporary.write("data", to: "Users/Shared/a")
    #expect(chmod(tree.path("Users/Shared/a"), 0o666) == 0)
    let node = try view.node("Users/Shared/a")
    func open(_ flags: Int32, by caller: Caller) throws(Errno) -> HandleID {
      try view.open(node, flags: flags, clearsSetID: false, by: caller).handle
    }
    var handles: [HandleID] = []
    for _ in 0..<300 { handles.append(try open(O_RDONLY, by: .alice)) }
    // Who may not open it does not empty it.
    #expect(throws: Errno.EMFILE) { try open(O_RDWR | O_TRUNC, by: .alice) }
    #expect(try view.attributes(of: node, handle: nil, by: .root).status.st_size == 4)
    #expect(throws: Errno.EMFILE) {
      try view.at("Users/Shared/new") { (name, parent) throws(Errno) in
        _ = try view.create(name, in: parent, flags: O_RDWR | O_CREAT, mode: 0o644, by: .alice)
      }
    }
    // Nothing is left of what could not be opened.
    #expect(throws: Errno.ENOENT) { try view.node("Users/Shared/new") }
    handles.append(try open(O_RDWR, by: .bob))
    #expect(tree.volume.budget.total(.openFiles) == 301)
    for handle in handles { view.release(node, handle: handle, flockOwner: nil) }
    #expect(tree.volume.budget.total(.openFiles) == 0 && tree.volume.budget.total(.descriptors) == 0)
  }

  /// What has lost its name is kept for whoever has it, at the cost of who removed it.
  @Test(.enabled(if: Program.isRoot))
  func removedObjectsOfOneUserLeaveThoseOfOthers() throws {
    let tree = try Tree(budget: Self.budget(.descriptors, 160))
    let view = tree.view
    var nodes: [NodeID] = []
    for number in 0..<40 {
      nodes.append(try view.makeDirectory("Users/Shared/\(number)", by: .alice))
      try view.remove("Users/Shared/\(number)", directory: true, by: .alice)
    }
    #expect(tree.volume.budget.count(.descriptors, of: Payer(user: Caller.alice.uid)) == 30)
    let kept = try view.makeDirectory("Users/Shared/bobs", by: .bob)
    try view.remove("Users/Shared/bobs", directory: true, by: .bob)
    view.nodes.releaseDescriptors(1000)
    _ = try view.attributes(of: kept, handle: nil, by: .bob)
    for node in nodes + [kept] { view.forget(node, count: 2) }
    #expect(tree.volume.budget.total(.descriptors) == 0)
  }

  /// A file that nobody has open may be in use: bound into another place, or named by a descriptor.
  @Test(.enabled(if: Program.isRoot), arguments: [true, false])
  func removedFileIsKeptWhileItsDescriptorIsThere(descriptor: Bool) throws {
    let tree = try Tree()
    try tree.temporary.write("x", to: "Users/Shared/a")
    let view = tree.view
    let file = try view.node("Users/Shared/a")
    if !descriptor { view.nodes.releaseDescriptors(1000) }
    try view.remove("Users/Shared/a")
    // What other files would make room with.
    view.nodes.releaseDescriptors(1000)
    if descriptor {
      #expect(try view.attributes(of: file, handle: nil, by: .root).status.st_nlink == 0)
    } else {
      #expect(throws: Errno.ESTALE) { try view.attributes(of: file, handle: nil, by: .root) }
    }
  }

  /// A connection that ends releases nothing.
  @Test(.enabled(if: Program.isRoot))
  func endOfAViewGivesEverythingBack() throws {
    let tree = try Tree()
    try tree.temporary.write("x", to: "Users/Shared/a")
    let budget = tree.volume.budget
    do {
      let other = try View(tree.volume)
      other.started(RecordingConnection(passthrough: false, canWithdraw: true))
      let file = try other.node("Users/Shared/a")
      let directory = try other.node("Users/Shared")
      _ = try other.open(file, flags: O_RDONLY, clearsSetID: false, by: .root)
      _ = try other.openDirectory(directory, by: .root)
      try other.remove("Users/Shared/a")
      #expect(budget.total(.openFiles) == 1 && budget.total(.openDirectories) == 1)
      #expect(budget.total(.descriptors) == 2)
      other.ended()
    }
    #expect(Budget.Kind.allCases.allSatisfy { budget.total($0) == 0 })
  }

  @Test func directoriesWhoseOffsetsLastAreKnown() {
    #expect(ListingDescriptors.areLasting(on: .ext4) && !ListingDescriptors.areLasting(on: nil))
    #expect(!ListingDescriptors.areLasting(on: FilesystemKind(magic: 0x794c_7630)))
    #expect(
      KernelRelease("6.18.44-cloud") == KernelRelease(6, 18) && KernelRelease("x") < KernelRelease("5.4"))
    #expect(KernelRelease("6.5.0") < KernelRelease(6, 6) && KernelRelease("10.1") > KernelRelease(6, 6))
  }
}
