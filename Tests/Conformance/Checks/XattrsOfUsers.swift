// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

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
}
