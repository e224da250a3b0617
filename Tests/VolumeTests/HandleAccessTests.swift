// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing
@testable internal import Volume

/// A handle gives what it was opened for, whatever is sent about it.
@Suite struct HandleAccessTests {
  @Test(arguments: [false, true]) func handleForReadingWritesNothing(passthrough: Bool) throws {
    let tree = try Tree(passthrough: passthrough)
    let node = try tree.view.make("Users/Shared/file", by: .me)
    let handle = try tree.view.open(node, flags: O_RDONLY, clearsSetID: false, by: .me).handle
    let error = tree.view.errno { (view) throws(Errno) in
      try withBytes("x") { (bytes) throws(Errno) in
        _ = try view.write(node, handle: handle, at: 0, from: bytes, [], by: .me)
      }
    }
    #expect(error == .EBADF)
    #expect(FileManager.default.contents(atPath: tree.path("Users/Shared/file")) == Data())
  }
}
