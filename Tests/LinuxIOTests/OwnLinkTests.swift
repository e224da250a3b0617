// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
@testable internal import LinuxIO
internal import TestSupport
internal import Testing

struct OwnLinkTests {
  /// The links that a process has opened are its own: its child's descriptors are others.
  @Test func childHasLinksOfItsOwn() throws {
    let temporary = try TemporaryDirectory()
    let paths = try ["parents", "childs"].map { try temporary.write($0, to: $0) }
    // They are open from here on.
    let parents = try FD.cwd.open(paths[0], O_RDONLY)
    let number = parents.fd.raw
    #expect(try parents.fd.ownPath() == Array(paths[0].utf8))
    // There it has the same number.
    let child = clx_fork()
    if child == 0 {
      let own = clx_open(paths[1], O_RDONLY, 0)
      dup2(own, number)
      let path = try? FD(number).ownPath()
      _exit(path == Array(paths[1].utf8) ? 0 : 1)
    }
    try #require(child > 0)
    var status: Int32 = 0
    #expect(waitpid(child, &status, 0) == child && status == 0)
  }
}
