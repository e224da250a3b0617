// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing
@testable internal import Volume

/// Someone works in the backing directory while it is served.
struct BehindTests {
  private static let isPossible = Program.isRoot

  private func tree(handles: Bool) throws -> Tree {
    try Tree {
      $0.fileHandles = handles && Self.isPossible
      $0.descriptors = 16
    }
  }

  private func contents(_ view: View, _ node: NodeID) throws(Errno) -> String {
    let opened = try view.open(node, flags: O_RDONLY, clearsSetID: false, by: .me)
    defer { view.release(node, handle: opened.handle, flockOwner: nil) }
    return try withRoom(100) { (room) throws(Errno) in
      let count = try view.read(node, handle: opened.handle, at: 0, into: room)
      return String(decoding: room[..<count], as: UTF8.self)
    }
  }

  @Test(arguments: [false, true], [false, true])
  func removedOrReplacedFileIsNeverAnother(handles: Bool, evicted: Bool) throws {
    let tree = try tree(handles: handles)
    let view = tree.view
    for round in 0..<20 {
      let path = "Users/Shared/file\(round)"
      try tree.temporary.write("first", to: path)
      let node = try view.node(path, by: .me)
      #expect(try contents(view, node) == "first")
      if evicted { view.nodes.releaseDescriptors(100) }
      #expect(unlink(tree.path(path)) == 0)
      if round % 2 == 0 { try tree.temporary.write("second", to: path) }
      // What was known is the first file, as long as it is there, or an error.
      let outcome = Result { try contents(view, node) }
      switch outcome {
      case .success(let text): #expect(text == "first" && !evicted)
      case .failure(let error): #expect([Errno.ESTALE, .ENOENT].contains(error as? Errno))
      }
      if round % 2 == 0 {
        let next = try view.node(path, by: .me)
        #expect(next != node)
        #expect(try contents(view, next) == "second")
      } else {
        #expect(throws: Errno.ENOENT) {
          try view.at(path, by: .me) { (name, parent) throws(Errno) in
            try view.remove(name, in: parent, directory: false, by: .me)
          }
        }
      }
    }
    #expect(view.counts.openFiles == 0)
  }

  @Test(arguments: [false, true])
  func directoryThatWentIsAnHonestError(handles: Bool) throws {
    let tree = try tree(handles: handles)
    let view = tree.view
    try tree.temporary.makeDirectory("Users/Shared/dir")
    try tree.temporary.makeDirectory("Users/Shared/dir/sub")
    try tree.temporary.write("deep", to: "Users/Shared/dir/sub/file")
    let directory = try view.node("Users/Shared/dir/sub", by: .me)
    let file = try view.node("Users/Shared/dir/sub/file", by: .me)
    view.nodes.releaseDescriptors(100)
    // Moved behind our back: handles follow the object, names do not find it, and neither finds something
    // else.
    #expect(Glibc.rename(tree.path("Users/Shared/dir/sub"), tree.path("Users/Shared/elsewhere")) == 0)
    try tree.temporary.makeDirectory("Users/Shared/dir/sub")
    try tree.temporary.write("other", to: "Users/Shared/dir/sub/file")
    let outcome = Result { try contents(view, file) }
    switch outcome {
    case .success(let text): #expect(text == "deep" && handles)
    case .failure(let error):
      #expect([Errno.ESTALE, .ENOENT].contains(error as? Errno) && !(handles && Self.isPossible))
    }
    let made = Result { () throws(Errno) in
      try "new".withName { (name) throws(Errno) in
        try view.create(name, in: directory, flags: O_RDWR, mode: 0o600, by: .me).1
      }
    }
    if case .success(let opened) = made { view.release(directory, handle: opened.handle, flockOwner: nil) }
    #expect(access(tree.path("Users/Shared/dir/sub/new"), F_OK) == -1)
  }

  @Test func typeMayHaveChanged() throws {
    let tree = try tree(handles: true)
    let view = tree.view
    try tree.temporary.write("file", to: "Users/Shared/thing")
    let node = try view.node("Users/Shared/thing", by: .me)
    #expect(unlink(tree.path("Users/Shared/thing")) == 0)
    try tree.temporary.makeDirectory("Users/Shared/thing")
    #expect(try view.find("Users/Shared/thing", by: .me).kind == S_IFDIR)
    #expect(throws: (any Error).self) { try view.openDirectory(node, by: .me) }
    #expect(rmdir(tree.path("Users/Shared/thing")) == 0)
    // A link is shown as what it is, and never followed by us.
    #expect(symlink("/nonexistent/bait", tree.path("Users/Shared/thing")) == 0)
    let link = try view.find("Users/Shared/thing", by: .me)
    #expect(link.kind == S_IFLNK)
    let target = try #require(link.node)
    #expect(throws: Errno.ENXIO) { try view.open(target, flags: O_RDONLY, clearsSetID: false, by: .me) }
  }
}
