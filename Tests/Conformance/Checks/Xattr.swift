// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

extension Trial {
  fileprivate func set(_ path: String, _ name: String, _ value: [UInt8], _ flags: Int32 = 0) -> Int32 {
    setxattr(path, name, value, value.count, flags)
  }

  fileprivate func value(
    _ path: String, _ name: String, file: StaticString = #fileID, line: UInt = #line
  ) throws -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 65536)
    let length = try ok(getxattr(path, name, &buffer, buffer.count), file: file, line: line)
    return Array(buffer.prefix(length))
  }

  /// The names that a user's tool sees, without what a security module adds.
  fileprivate func attributes(
    _ path: String, file: StaticString = #fileID, line: UInt = #line
  ) throws -> [String] {
    var buffer = [CChar](repeating: 0, count: 65536)
    let length = try ok(listxattr(path, &buffer, buffer.count), file: file, line: line)
    let names = buffer.prefix(length).split(separator: 0).map {
      String(decoding: $0.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
    return names.filter { !$0.hasPrefix("security.") }.sorted()
  }

  /// Skips the check where users' names are not taken at all; leaves the file `probe` behind.
  func needsUserXattrs() throws {
    try make("probe")
    try probe("user xattrs", setxattr("probe", "user.probe", "", 0, 0))
  }
}

func extendedAttributes(_ check: inout Checks) {
  check("xattr.set-get-list-remove") { t in
    try t.needsUserXattrs()
    try t.make("file")
    try t.ok(t.set("file", "user.one", [1, 0, 255]))
    try t.ok(t.set("file", "user.two", Array("two".utf8)))
    try t.equal(try t.value("file", "user.one"), [1, 0, 255], "value")
    try t.equal(try t.attributes("file"), ["user.one", "user.two"], "names")
    try t.ok(removexattr("file", "user.one"))
    try t.equal(try t.attributes("file"), ["user.two"], "names")
    try t.ok(t.set("file", "user.two", Array("another".utf8)))
    try t.equal(try t.value("file", "user.two"), Array("another".utf8), "value")
  }
  check("xattr.on-a-directory-and-by-descriptor") { t in
    try t.needsUserXattrs()
    try t.dir("dir")
    let fd = try t.open("dir", O_RDONLY)
    try t.ok(fsetxattr(fd, "user.x", "value", 5, 0))
    try t.equal(try t.value("dir", "user.x"), Array("value".utf8), "value")
    try t.ok(fremovexattr(fd, "user.x"))
    try t.equal(try t.attributes("dir"), [], "names")
  }
  check("xattr.create-and-replace-flags") { t in
    try t.needsUserXattrs()
    try t.make("file")
    try t.fails(ENODATA, t.set("file", "user.x", [1], Int32(XATTR_REPLACE)))
    try t.ok(t.set("file", "user.x", [1], Int32(XATTR_CREATE)))
    try t.fails(EEXIST, t.set("file", "user.x", [2], Int32(XATTR_CREATE)))
    try t.equal(try t.value("file", "user.x"), [1], "value")
    try t.ok(t.set("file", "user.x", [3], Int32(XATTR_REPLACE)))
    try t.equal(try t.value("file", "user.x"), [3], "value")
    try t.fails(EINVAL, t.set("file", "user.x", [4], 99))
  }
  check("xattr.missing-is-ENODATA") { t in
    try t.needsUserXattrs()
    try t.make("file")
    var buffer = [UInt8](repeating: 0, count: 10)
    try t.fails(ENODATA, getxattr("file", "user.missing", &buffer, 10))
    try t.fails(ENODATA, removexattr("file", "user.missing"))
  }
  check("xattr.errors") { t in
    try t.needsUserXattrs()
    try t.make("file")
    var buffer = [UInt8](repeating: 0, count: 10)
    try t.fails(ENOENT, getxattr("missing", "user.x", &buffer, 10))
    try t.fails(ENOENT, t.set("missing", "user.x", [1]))
    try t.fails(ENOENT, listxattr("missing", nil, 0))
    try t.fails(ENOTDIR, t.set("file/below", "user.x", [1]))
    try t.fails(EOPNOTSUPP, t.set("file", "nonsense", [1]))
    try t.fails(EOPNOTSUPP, t.set("file", "nonsense.x", [1]))
    try t.fails(oneOf: [EINVAL, EOPNOTSUPP], t.set("file", "user.", [1]))
    try t.fails(EBADF, fsetxattr(999, "user.x", "", 0, 0))
  }
  check("xattr.names-up-to-255-bytes") { t in
    try t.needsUserXattrs()
    try t.make("file")
    let longest = "user." + String(repeating: "n", count: 250)
    try t.ok(t.set("file", longest, [1]))
    try t.equal(try t.attributes("file"), [longest], "names")
    try t.fails(ERANGE, t.set("file", longest + "n", [1]))
    try t.fails(ERANGE, t.set("file", "", [1]))
  }
  check("xattr.short-buffers-are-ERANGE") { t in
    try t.needsUserXattrs()
    try t.make("file")
    try t.ok(t.set("file", "user.x", pattern(100)))
    var buffer = [UInt8](repeating: 0, count: 100)
    try t.fails(ERANGE, getxattr("file", "user.x", &buffer, 99))
    try t.equal(try t.ok(getxattr("file", "user.x", &buffer, 100)), 100, "size")
    try t.equal(try t.ok(getxattr("file", "user.x", nil, 0)), 100, "size asked for")
    var names = [CChar](repeating: 0, count: 100)
    try t.fails(ERANGE, listxattr("file", &names, 3))
    try t.expect(try t.ok(listxattr("file", nil, 0)) >= 7, "the size of the list")
  }
  check("xattr.empty-value") { t in
    try t.needsUserXattrs()
    try t.make("file")
    try t.ok(t.set("file", "user.empty", []))
    try t.equal(try t.value("file", "user.empty"), [], "value")
    try t.equal(try t.attributes("file"), ["user.empty"], "names")
  }
  check("xattr.values-of-many-sizes") { t in
    try t.needsUserXattrs()
    for size in [1, 10, 100, 1000, 2000, 3000, 3900] {
      try t.make("f\(size)")
      try t.ok(t.set("f\(size)", "user.x", pattern(size)))
      try t.expect(try t.value("f\(size)", "user.x") == pattern(size), "the value of \(size) bytes")
    }
  }
  check("xattr.value-over-64-KiB-is-E2BIG") { t in
    try t.needsUserXattrs()
    try t.make("file")
    try t.fails(E2BIG, t.set("file", "user.x", [UInt8](repeating: 1, count: 65537)))
    try t.equal(try t.attributes("file"), [], "names")
  }
  check("xattr.twenty-names-and-values") { t in
    try t.needsUserXattrs()
    try t.make("file")
    for index in 0..<20 { try t.ok(t.set("file", "user.name-\(index)", pattern(30, seed: index))) }
    try t.equal(try t.attributes("file").count, 20, "names")
    for index in 0..<20 {
      try t.equal(try t.value("file", "user.name-\(index)"), pattern(30, seed: index), "value")
    }
  }
  check("xattr.odd-names") { t in
    try t.needsUserXattrs()
    try t.make("file")
    for name in [
      "user.with space", "user.ünïcode", "user..dots", "user.com.apple.quarantine", "user.a/b", "user.\n",
    ] {
      try t.ok(t.set("file", name, Array(name.utf8)))
      try t.equal(try t.value("file", name), Array(name.utf8), "value of \(name)")
    }
    try t.equal(try t.attributes("file").count, 6, "names")
  }
  check("xattr.follows-hard-links-and-renames") { t in
    try t.needsUserXattrs()
    try t.make("file")
    try t.ok(t.set("file", "user.x", [1]))
    try t.ok(link("file", "other"))
    try t.ok(rename("file", "moved"))
    try t.equal(try t.value("other", "user.x"), [1], "value")
    try t.ok(t.set("moved", "user.x", [2]))
    try t.equal(try t.value("other", "user.x"), [2], "value")
  }
  check("xattr.touches-the-change-time") { t in
    try t.needsUserXattrs()
    try t.make("file")
    let before = try t.info("file")
    usleep(20_000)
    try t.ok(t.set("file", "user.x", [1]))
    let after = try t.info("file")
    try t.expect(after.changed > before.changed, "a newer change time")
    try t.equal(after.modified, before.modified, "modification time")
  }
  check("xattr.user-names-on-symlink-and-fifo-are-EPERM") { t in
    try t.needsUserXattrs()
    try t.ok(symlink("probe", "link"))
    try t.ok(mkfifo("fifo", 0o644))
    try t.fails(EPERM, lsetxattr("link", "user.x", "1", 1, 0))
    try t.fails(EPERM, t.set("fifo", "user.x", [1]))
    var buffer = [UInt8](repeating: 0, count: 10)
    try t.fails(ENODATA, lgetxattr("link", "user.x", &buffer, 10))
    try t.ok(llistxattr("link", nil, 0))
    try t.ok(t.set("link", "user.followed", [1]))
    try t.equal(try t.attributes("probe"), ["user.followed", "user.probe"], "names")
  }
}

func extendedAttributesOfUsers(_ check: inout Checks) {
  check("xattr.needs-write-permission-to-set", .several) { t in
    try t.as(t.user) {
      try t.needsUserXattrs()
      try t.make("file")
      try t.ok(t.set("file", "user.x", [1]))
    }
    try t.as(t.peer) {
      try t.fails(EACCES, t.set("file", "user.x", [2]))
      try t.fails(EACCES, removexattr("file", "user.x"))
      try t.equal(try t.value("file", "user.x"), [1], "value")
    }
    try t.as(t.user) { try t.ok(chmod("file", 0o200)) }
    try t.as(t.user) {
      var buffer = [UInt8](repeating: 0, count: 10)
      try t.fails(EACCES, getxattr("file", "user.x", &buffer, 10))
      try t.equal(try t.attributes("file"), ["user.x"], "names")
    }
  }
  check("xattr.sticky-directory-only-the-owner-sets", .several) { t in
    try t.dir("dir")
    try t.make("probe")
    try t.probe("user xattrs", setxattr("probe", "user.probe", "", 0, 0))
    try t.ok(chmod("dir", 0o1777))
    try t.as(t.user) { try t.fails(EPERM, t.set("dir", "user.x", [1])) }
    try t.ok(t.set("dir", "user.x", [1]))
  }
  check("xattr.trusted-by-root", .root) { t in
    try t.make("file")
    try t.probe("trusted xattrs", setxattr("file", "trusted.x", "1", 1, 0))
    try t.equal(try t.value("file", "trusted.x"), Array("1".utf8), "value")
    try t.equal(try t.attributes("file"), ["trusted.x"], "names")
    try t.ok(symlink("file", "link"))
    try t.ok(lsetxattr("link", "trusted.y", "2", 1, 0))
    try t.equal(try t.attributes("file"), ["trusted.x"], "names of the file")
    try t.ok(removexattr("file", "trusted.x"))
  }
  check("xattr.trusted-is-hidden-from-users", .several) { t in
    try t.as(t.user) { try t.make("file") }
    try t.probe("trusted xattrs", setxattr("file", "trusted.x", "1", 1, 0))
    try t.as(t.user) {
      var buffer = [UInt8](repeating: 0, count: 10)
      try t.fails(ENODATA, getxattr("file", "trusted.x", &buffer, 10))
      try t.fails(EPERM, t.set("file", "trusted.x", [2]))
      try t.fails(EPERM, removexattr("file", "trusted.x"))
      try t.equal(try t.attributes("file"), [], "names")
    }
  }
  check("xattr.security-by-a-user-is-EPERM", .user) { t in
    try t.make("file")
    try t.fails(EPERM, t.set("file", "security.x", [1]))
  }
  check("xattr.security-by-root", .root) { t in
    try t.make("file")
    try t.probe("security xattrs", setxattr("file", "security.x", "1", 1, 0))
    try t.equal(try t.value("file", "security.x"), Array("1".utf8), "value")
    try t.ok(removexattr("file", "security.x"))
  }
  check("xattr.security-capability-goes-on-a-write", .several) { t in
    // VFS_CAP_REVISION_2 with CAP_NET_RAW: what setcap(8) writes.
    let capability: [UInt8] = [1, 0, 0, 2, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    try t.as(t.user) { try t.make("file", "text", mode: 0o755) }
    try t.probe("file capabilities", setxattr("file", "security.capability", capability, capability.count, 0))
    try t.equal(try t.value("file", "security.capability"), capability, "value")
    try t.as(t.user) { try t.put(try t.open("file", O_WRONLY), "x") }
    var buffer = [UInt8](repeating: 0, count: 100)
    try t.fails(ENODATA, getxattr("file", "security.capability", &buffer, 100))
  }
  check("xattr.posix-acl-set-and-mode-follows", .user) { t in
    // Version 2; user rw-, group r--, mask r--, other nothing, user 1 rw-.
    let all = UInt32.max
    let entries: [(UInt16, UInt16, UInt32)] = [
      (1, 6, all), (2, 6, 1), (4, 4, all), (16, 4, all), (32, 0, all),
    ]
    var acl: [UInt8] = [2, 0, 0, 0]
    for (tag, permissions, id) in entries {
      acl +=
        [UInt8(tag), 0, UInt8(permissions), 0] + (0..<4).map { UInt8(truncatingIfNeeded: id >> (8 * $0)) }
    }
    try t.make("file")
    try t.ok(t.set("file", "system.posix_acl_access", acl))
    try t.equal(try t.info("file").bits, 0o640, "mode")
    try t.ok(removexattr("file", "system.posix_acl_access"))
  }
  check("ioctl.getflags-answers-or-is-ENOTTY") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDONLY)
    // The kernel writes an int although the request's number says long.
    var flags = 0
    if clx_ioctl(fd, CLX_FS_IOC_GETFLAGS, &flags) == -1 {
      try t.expect(errno == ENOTTY || errno == EOPNOTSUPP, "ENOTTY or EOPNOTSUPP, saw \(errnoName(errno)):")
    }
  }
  check("ioctl.unknown-request-is-ENOTTY") { t in
    try t.make("file")
    var argument = 0
    try t.fails(ENOTTY, clx_ioctl(try t.open("file", O_RDONLY), 0x7a7a, &argument))
    try t.fails(ENOTTY, clx_ioctl(try t.open(".", O_RDONLY), 0x7a7a, &argument))
  }
  check("ioctl.fionread-tells-what-is-left") { t in
    try t.make("file", "0123456789")
    let fd = try t.open("file", O_RDONLY)
    _ = try t.get(fd, 4)
    var left: Int32 = 0
    try t.ok(clx_ioctl(fd, UInt(FIONREAD), &left))
    try t.equal(left, 6, "bytes")
  }
}
