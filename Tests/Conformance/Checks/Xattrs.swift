// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

extension Trial {
  func set(_ path: String, _ name: String, _ value: [UInt8], _ flags: Int32 = 0) -> Int32 {
    setxattr(path, name, value, value.count, flags)
  }

  func value(
    _ path: String, _ name: String, file: StaticString = #fileID, line: UInt = #line
  ) throws -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 65536)
    let length = try ok(getxattr(path, name, &buffer, buffer.count), file: file, line: line)
    return Array(buffer.prefix(length))
  }

  /// The names that a user's tool sees, without what a security module adds.
  func attributes(
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
    try t.needsFullBlocks()
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
    try t.needsFullBlocks()
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
