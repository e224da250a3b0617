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

/// Listings in pages.
struct ListingTests {
  /// Page by page a name could come twice, and a program that backs up give up everything.
  @Test(arguments: [(1 << 24, true), (1 << 13, false)])
  func listingsForBackupsAreWholeOrRefused(memory: Int, isWhole: Bool) throws {
    var limits = Budget.Limits(descriptors: 1 << 14)
    limits[.memory] = memory
    let tree = try Tree(budget: Budget(limits))
    try tree.temporary.makeDirectory("Users/Shared/dir")
    for number in 0..<300 { try tree.temporary.write("", to: "Users/Shared/dir/file-\(number)") }
    let view = try tree.volume.backupView(of: .wholeTree, user: ProcessID.user)
    defer { view.ended() }
    let node = try view.node("Users/Shared/dir", by: .me)
    let handle = try view.openDirectory(node, by: .me).handle
    defer { view.releaseDirectory(node, handle: handle) }
    for offset in [Int64(0), 7] {
      let page = Result { try view.page(node, handle, after: offset, size: 4096, withAttributes: false) }
      switch page {
      case .success(let names): #expect(isWhole && names.count > 50)
      case .failure(let error): #expect(!isWhole && error as? Errno == .EOVERFLOW)
      }
    }
  }

  @Test(arguments: [false, true], [200, 512, 4096])
  func offsetsStayTrueWhileEntriesComeAndGo(withAttributes: Bool, size: Int) throws {
    let tree = try Tree()
    let view = tree.view
    var random = SeededRandom(seed: UInt64(size))
    try tree.temporary.makeDirectory("Users/Shared/dir")
    let steady = Set((0..<300).map { "steady-\($0)" })
    for name in steady { try tree.temporary.write("", to: "Users/Shared/dir/" + name) }
    var passing = (0..<100).map { "passing-\($0)" }
    for name in passing { try tree.temporary.write("", to: "Users/Shared/dir/" + name) }
    let node = try view.node("Users/Shared/dir", by: .me)
    let known = view.counts.nodes
    let handle = try view.openDirectory(node, by: .me).handle
    var seen: [String: Int] = [:]
    var offset: Int64 = 0
    var pages = 0
    while true {
      let entries = try view.page(node, handle, after: offset, size: size, withAttributes: withAttributes)
      guard let last = entries.last else { break }
      pages += 1
      for entry in entries { seen[entry.name, default: 0] += 1 }
      offset = last.next
      // Asking again from the same place gives the same.
      let again = try view.page(
        node, handle, after: entries[0].next, size: size, withAttributes: withAttributes)
      #expect(entries.count < 2 || again.first?.name == entries[1].name)
      // Between two pages, the directory is closed, some go and others come.
      if pages % 3 == 0 { tree.volume.listings.removeAll() }
      if let gone = passing.randomElement(using: &random) {
        #expect(unlink(tree.path("Users/Shared/dir/" + gone)) == 0)
        passing.removeAll { $0 == gone }
      }
      if pages < 100 { try tree.temporary.write("", to: "Users/Shared/dir/new-\(pages)") }
      try #require(pages < 2000)
    }
    #expect(steady.allSatisfy { seen[$0] == 1 } && seen.values.allSatisfy { $0 == 1 })
    #expect(seen["."] == 1 && seen[".."] == 1 && pages > (size == 4096 ? 3 : 20))
    view.releaseDirectory(node, handle: handle)
    #expect(view.counts.nodes == known && view.counts.openDirectories == 0)
    #expect(throws: Errno.EBADF) {
      try view.page(node, handle, after: 0, size: size, withAttributes: withAttributes)
    }
  }

  /// A tree that was just unpacked is listed at the price of its names.
  @Test func whatTheKernelKnowsIsNotToldAgain() throws {
    let tree = try Tree()
    let view = tree.view
    try tree.temporary.makeDirectory("Users/Shared/dir", mode: 0o755)
    for name in ["known", "unknown"] { try tree.temporary.write("", to: "Users/Shared/dir/" + name) }
    let node = try view.node("Users/Shared/dir", by: .me)
    let known = try view.node("Users/Shared/dir/known", by: .me)
    let handle = try view.openDirectory(node, by: .me).handle
    func told() throws -> [NodeID] {
      try withRoom(4096) { (room) throws(Errno) in
        var writer = DirectoryWriter(room, withAttributes: true)
        try view.readDirectory(node, handle: handle, after: 0, into: &writer, by: .me)
        for node in writer.lookups { view.forget(node, count: 1) }
        return writer.lookups
      }
    }
    let first = try told()
    #expect(first.count == 1 && !first.contains(known))
    // A shared map may change it at any time, so the kernel keeps none of its attributes.
    let opened = try view.open(known, flags: O_RDWR, clearsSetID: false, by: .me)
    #expect(try told().count == 2)
    view.release(known, handle: opened.handle, flockOwner: nil)
    view.releaseDirectory(node, handle: handle)
  }

  @Test func rootDoesNotTellWhatIsAboveIt() throws {
    let tree = try Tree()
    let handle = try tree.view.openDirectory(.root, by: .me).handle
    let inode = try tree.view.attributes(of: .root, handle: nil, by: .me).inode
    let entries = try tree.view.page(.root, handle, after: 0, size: 4096, withAttributes: false)
    let dots = entries.filter { [".", ".."].contains($0.name) }
    #expect(dots.count == 2 && dots.allSatisfy { $0.inode == inode })
    tree.view.releaseDirectory(.root, handle: handle)
  }
}
