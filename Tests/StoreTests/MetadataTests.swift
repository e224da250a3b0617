// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// What is kept beside an inode.
@Suite struct MetadataTests {
  private let temporary: TemporaryDirectory
  private let metadata = Metadata(isSystem: Program.isRoot)
  private let list = AccessControlList([AccessControlEntry(.deny, .everyone, .delete)])
  private var aclName: String { Program.isRoot ? "trusted.insula.acl" : "user.insula.acl" }

  init() throws { temporary = try TemporaryDirectory() }

  /// Lends a name for a file, as the daemon has it.
  private func withFile<Result>(
    _ name: String = "file", _ body: (FD) throws(Errno) -> Result
  ) throws -> Result {
    try temporary.write("x", to: name)
    let directory = try temporary.open()
    return try name.withName { (name) throws(Errno) in
      let object = try directory.fd.child(name)
      return try body(object.fd)
    }
  }

  @Test func whatIsWrittenIsRead() throws {
    try withFile { (file) throws(Errno) in
      #expect(try metadata.security(of: file) == .none)
      try metadata.setACL(list, on: file)
      try metadata.setFlags([.userImmutable, .archived], on: file)
      #expect(
        try metadata.security(of: file) == Security(acl: .acl(list), flags: [.userImmutable, .archived]))
      try metadata.setACL(AccessControlList([]), on: file)
      #expect(try metadata.security(of: file).acl == .acl(AccessControlList([])))
      try metadata.setACL(nil, on: file)
      try metadata.setFlags([], on: file)
      #expect(try metadata.security(of: file) == .none)
      // Nothing is left, and nothing can be removed twice.
      try metadata.setACL(nil, on: file)
    }
    #expect(listxattr(temporary.appending("file"), nil, 0) == 0)
  }

  @Test func flagsAreFourBytesMostSignificantFirst() throws {
    try withFile { (file) throws(Errno) in
      try metadata.setFlags([.hidden, .systemAppend], on: file)
      try withUnsafeTemporaryAllocation(byteCount: 8, alignment: 1) { (room) throws(Errno) in
        let name = Program.isRoot ? "trusted.insula.flags" : "user.insula.flags"
        let count = try name.withName { (name) throws(Errno) in try file.attribute(name.bytes, into: room) }
        #expect(Array(room[..<count]) == [0, 4, 0x80, 0])
      }
    }
  }

  /// With many other attributes, whose names do not fit into the room that is tried first.
  @Test func aclIsFoundAmongManyAttributes() throws {
    try withFile { (file) throws(Errno) in
      try metadata.setACL(list, on: file)
      for number in 0..<60 {
        #expect(setxattr(temporary.appending("file"), "user.number-\(number)", "x", 1, 0) == 0)
      }
      #expect(try metadata.security(of: file) == Security(acl: .acl(list)))
    }
  }

  @Test func whatCanNotBeReadIsDamaged() throws {
    try withFile { (file) throws(Errno) in
      let path = temporary.appending("file")
      for bytes in [[], [0], list.filesec.dropLast(), list.filesec + [0]] as [[UInt8]] {
        #expect(setxattr(path, aclName, bytes, bytes.count, 0) == 0)
        #expect(try metadata.security(of: file).acl == .damaged)
      }
      let flagsName = Program.isRoot ? "trusted.insula.flags" : "user.insula.flags"
      // Too few, too many, and a flag that nobody knows.
      for bytes in [[], [0, 0, 2], [0, 0, 0, 0, 2], [0, 0x40, 0, 0]] as [[UInt8]] {
        #expect(setxattr(path, flagsName, bytes, bytes.count, 0) == 0)
        #expect(try metadata.security(of: file).flags == .systemImmutable)
      }
    }
  }

  /// Attributes of users follow the mode, which must not keep the daemon of its owner from them.
  @Test func modeDoesNotStandInTheWay() throws {
    for mode in [0o000, 0o444, 0o200] as [UInt32] {
      try withFile("file\(mode)") { (file) throws(Errno) in
        try file.changeMode(mode)
        try metadata.setACL(list, on: file)
        #expect(try metadata.security(of: file) == Security(acl: .acl(list)))
        #expect(try file.status().permissions == mode)
      }
    }
  }
}
