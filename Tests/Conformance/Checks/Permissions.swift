// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

/// Which of the three sets of bits decides for someone.
private enum Role: String, CaseIterable {
  case owner, group, supplementary, other

  func person(_ t: borrowing Trial) -> Person {
    switch self {
    case .owner: t.user
    case .group: Person(uid: t.peer.uid, gid: t.user.gid)
    case .supplementary: t.peer.joining(t.user.gid)
    case .other: t.peer
    }
  }

  var shift: mode_t {
    switch self {
    case .owner: 6
    case .group, .supplementary: 3
    case .other: 0
    }
  }
}

func permissions(_ check: inout Checks) {
  for role in Role.allCases {
    check("permission.file.\(role)-each-bit-decides-alone", .several) { t in
      try t.as(t.user) { try t.make("file", "text") }
      for bits in 0...7 as ClosedRange<mode_t> {
        // The other two sets say the opposite, so that looking at a wrong one shows.
        let opposite = (7 ^ bits) * 0o111 & ~(7 << role.shift)
        try t.ok(chmod("file", opposite | bits << role.shift))
        try t.as(role.person(t)) { try probe(t, "file", bits) }
      }
    }
    check("permission.directory.\(role)-search-read-and-write", .several) { t in
      try t.as(t.user) {
        try t.dir("dir")
        try t.make("dir/file", "text")
        try t.ok(chmod("dir/file", 0o666))
      }
      for bits in 0...7 as ClosedRange<mode_t> {
        let opposite = (7 ^ bits) * 0o111 & ~(7 << role.shift)
        try t.ok(chmod("dir", opposite | bits << role.shift))
        try t.as(role.person(t)) { try probeDirectory(t, bits) }
      }
    }
  }
  check("permission.owner-is-judged-by-the-owners-bits-alone", .several) { t in
    try t.as(t.user) { try t.make("file", mode: 0) }
    try t.ok(chmod("file", 0o077))
    try t.as(t.user) { try t.fails(EACCES, clx_open("file", O_RDONLY, 0)) }
    try t.as(t.peer) { try t.ok(clx_open("file", O_RDWR, 0)) }
  }
  check("permission.group-member-is-judged-by-the-groups-bits-alone", .several) { t in
    try t.as(t.user) { try t.make("file") }
    try t.ok(chmod("file", 0o707))
    try t.as(t.peer.joining(t.user.gid)) { try t.fails(EACCES, clx_open("file", O_RDONLY, 0)) }
    try t.as(t.peer) { try t.ok(clx_open("file", O_RDWR, 0)) }
  }
  check("permission.one-of-many-supplementary-groups", .several) { t in
    try t.as(t.user) { try t.make("file", "text", mode: 0o640) }
    try t.ok(chown("file", t.user.uid, 60_031))
    let many = Person(uid: t.peer.uid, gid: t.peer.gid, groups: Array(60_000..<60_064))
    try t.as(many) { try t.equal(try t.text("file"), "text", "content") }
    let without = Person(uid: t.peer.uid, gid: t.peer.gid, groups: Array(60_032..<60_064))
    try t.as(without) { try t.fails(EACCES, clx_open("file", O_RDONLY, 0)) }
  }
  check("permission.root-passes-modes-but-not-missing-execute-bits", .root) { t in
    try t.make("file", "#!/bin/sh\n", mode: 0)
    try t.dir("dir", mode: 0)
    try t.ok(clx_open("file", O_RDWR, 0))
    try t.ok(clx_open("dir/new", O_RDWR | O_CREAT, 0o600))
    try t.equal(try t.names("dir"), ["new"], "names")
    try t.ok(access("file", R_OK | W_OK))
    try t.fails(EACCES, access("file", X_OK))
    try t.ok(access("dir", R_OK | W_OK | X_OK))
    try t.ok(chmod("file", 0o001))
    try t.ok(access("file", X_OK))
  }
  check("permission.search-is-needed-at-every-step", .several) { t in
    try t.as(t.user) {
      try t.dir("a")
      try t.dir("a/b")
      try t.dir("a/b/c")
      try t.make("a/b/c/file", "text")
    }
    for closed in ["a", "a/b", "a/b/c"] {
      try t.ok(chmod(closed, 0o766))
      try t.as(t.peer) { try t.fails(EACCES, clx_open("a/b/c/file", O_RDONLY, 0)) }
      try t.ok(chmod(closed, 0o711))
      try t.as(t.peer) { try t.equal(try t.text("a/b/c/file"), "text", "content") }
    }
  }
  check("permission.dotdot-needs-search-on-where-it-starts", .user) { t in
    try t.dir("a")
    try t.dir("a/b")
    try t.make("file")
    try t.ok(chdir("a/b"))
    try t.ok(chmod("../../a", 0o600))
    try t.fails(EACCES, clx_open("../../file", O_RDONLY, 0))
    try t.ok(chmod(".", 0o700))
  }
  check("permission.an-open-descriptor-outlasts-the-permission", .several) { t in
    try t.as(t.user) {
      try t.make("file", "text")
      try t.ok(chmod("file", 0o666))
    }
    let (ready, closed) = (try Gate(), try Gate())
    let peer = try Actor.start {
      try t.peer.assume()
      let fd = try t.open("file", O_RDWR)
      ready.pass()
      closed.wait()
      try t.equal(try t.get(fd, 4), "text", "content")
      try t.put(fd, "s")
    }
    try ready.wait(for: peer)
    try t.ok(chmod("file", 0o600))
    closed.pass()
    try peer.finish()
  }
  check("permission.symlinks-have-none-of-their-own", .several) { t in
    try t.as(t.user) { try t.make("file", "text", mode: 0o600) }
    try t.as(t.user) { try t.ok(symlink("file", "link")) }
    try t.as(t.peer) {
      try t.fails(EACCES, clx_open("link", O_RDONLY, 0))
      try t.equal(try t.target("link"), Array("file".utf8), "target")
    }
  }
  check("permission.hard-link-to-a-strangers-private-file", .several) { t in
    try t.ok(chmod(".", 0o777))
    try t.as(t.user) { try t.make("file", mode: 0o600) }
    guard protectsHardLinks() else { throw Skip(reason: "fs.protected_hardlinks is off") }
    try t.as(t.peer) { try t.fails(EPERM, link("file", "mine")) }
    try t.ok(chmod("file", 0o666))
    try t.as(t.peer) { try t.ok(link("file", "mine")) }
  }
}

private func protectsHardLinks() -> Bool {
  let fd = clx_open("/proc/sys/fs/protected_hardlinks", O_RDONLY, 0)
  var byte: UInt8 = 0
  return fd != -1 && read(fd, &byte, 1) == 1 && byte == UInt8(ascii: "1")
}

/// Tries all that `bits` allow on a file, and all that they don't.
private func probe(_ t: borrowing Trial, _ path: String, _ bits: mode_t) throws {
  for (flags, needed) in [(O_RDONLY, 4), (O_WRONLY, 2), (O_RDWR, 6)] as [(Int32, mode_t)] {
    if bits & needed == needed {
      try t.ok(clx_open(path, flags, 0))
    } else {
      try t.fails(EACCES, clx_open(path, flags, 0))
    }
  }
  for right in [R_OK, W_OK, X_OK] {
    if Int32(bits) & right == right {
      try t.ok(access(path, right))
    } else {
      try t.fails(EACCES, access(path, right))
    }
  }
}

/// Reading lists names, search reaches what has one, writing with search changes them.
private func probeDirectory(_ t: borrowing Trial, _ bits: mode_t) throws {
  let (reads, writes, searches) = (bits & 4 != 0, bits & 2 != 0, bits & 1 != 0)
  if reads {
    try t.equal(try t.names("dir"), ["file"], "names with mode \(bits)")
  } else {
    try t.fails(EACCES, clx_open("dir", O_RDONLY, 0))
  }
  var info = stat()
  if searches {
    try t.ok(stat("dir/file", &info))
    try t.equal(try t.text("dir/file"), "text", "content")
    try t.fails(ENOENT, stat("dir/missing", &info))
  } else {
    try t.fails(EACCES, stat("dir/file", &info))
    try t.fails(EACCES, stat("dir/missing", &info))
  }
  if writes && searches {
    try t.make("dir/new")
    try t.ok(rename("dir/new", "dir/newer"))
    try t.ok(unlink("dir/newer"))
  } else {
    try t.fails(EACCES, clx_open("dir/new", O_RDWR | O_CREAT, 0o644))
    try t.fails(EACCES, unlink("dir/file"))
  }
}
