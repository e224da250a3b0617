// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

@Suite struct ExamineTests {
  @Test func linksAndFifosDoNotLeadAway() throws {
    let directory = try TemporaryDirectory()
    try directory.write("text", to: "file")
    symlink("file", directory.appending("link"))
    mkfifo(directory.appending("fifo"), 0o644)
    let opened = try directory.open()
    func open(_ name: String) throws(Errno) -> OwnedFD {
      try name.withName { (name) throws(Errno) in try opened.fd.openToExamine(name) }
    }
    let file = try open("file")
    #expect(try file.fd.contentsIfRegular(limit: 4) == Array("text".utf8))
    #expect(throws: Errno.EFBIG) { try file.fd.contentsIfRegular(limit: 3) }
    #expect(throws: Errno.ELOOP) { _ = try open("link") }
    #expect(throws: Errno.EXDEV) { _ = try open("../file") }
    // Nobody writes to it, and still it is open.
    let fifo = try open("fifo")
    #expect(throws: Errno.EINVAL) { try fifo.fd.contentsIfRegular(limit: 4) }
    #expect(
      try "link".withName { (name) throws(Errno) in try opened.fd.linkTarget(of: name) } == Array("file".utf8)
    )
    #expect(throws: Errno.EINVAL) {
      try "file".withName { (name) throws(Errno) in try opened.fd.linkTarget(of: name) }
    }
    #expect(throws: Errno.ENOTDIR) {
      _ = try "link".withName { (name) throws(Errno) in try opened.fd.openDirectoryToExamine(name) }
    }
  }
}
