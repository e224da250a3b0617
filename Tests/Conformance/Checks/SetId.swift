// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

/// The mode a suid and sgid file has after something was done to it.
private func mode(
  _ t: borrowing Trial, _ start: mode_t = 0o6755, as person: Person, _ act: () throws -> Void
) throws -> mode_t {
  try t.as(t.user) {
    try t.make("file", "text")
    try t.ok(chmod("file", start))
  }
  try t.as(person) { try act() }
  let bits = try t.info("file").bits
  try t.ok(unlink("file"))
  return bits
}

func setIds(_ check: inout Checks) {
  check("setid.cleared-by-a-users-write", .several) { t in
    let bits = try mode(t, as: t.user) {
      let fd = try t.open("file", O_WRONLY)
      try t.put(fd, "x")
      try t.equal(try t.info(fd).bits, 0o755, "mode at once")
    }
    try t.equal(bits, 0o755, "mode")
  }
  check("setid.cleared-by-a-users-pwritev", .several) { t in
    let bits = try mode(t, as: t.user) {
      let fd = try t.open("file", O_RDWR)
      var byte: UInt8 = 1
      try withUnsafeMutableBytes(of: &byte) { bytes in
        var vector = iovec(iov_base: bytes.baseAddress, iov_len: 1)
        _ = try t.ok(writev(fd, &vector, 1))
      }
    }
    try t.equal(bits, 0o755, "mode")
  }
  check("setid.cleared-by-a-users-truncate", .several) { t in
    for act in [{ truncate("file", 1) }, { ftruncate(clx_open("file", O_RDWR, 0), 100) }] as [() -> Int32] {
      try t.equal(try mode(t, as: t.user) { try t.ok(act()) }, 0o755, "mode")
    }
  }
  check("setid.cleared-by-a-users-open-with-trunc", .several) { t in
    try t.equal(try mode(t, as: t.user) { try t.ok(clx_open("file", O_WRONLY | O_TRUNC, 0)) }, 0o755, "mode")
  }
  check("setid.cleared-by-a-users-fallocate", .several) { t in
    let bits = try mode(t, as: t.user) {
      let fd = try t.open("file", O_RDWR)
      try t.probe("fallocate", clx_fallocate(fd, 0, 0, 8192))
    }
    try t.equal(bits, 0o755, "mode")
  }
  check("setid.cleared-by-a-users-copy-file-range", .several) { t in
    let bits = try mode(t, as: t.user) {
      try t.make("source", "source")
      let (from, to) = (try t.open("source", O_RDONLY), try t.open("file", O_RDWR))
      try t.ok(clx_copy_file_range(from, nil, to, nil, 6, 0))
    }
    try t.equal(bits, 0o755, "mode")
  }
  check("setid.kept-by-reading-and-by-utimensat", .several) { t in
    let bits = try mode(t, as: t.user) {
      _ = try t.text("file")
      try t.ok(utimensat(AT_FDCWD, "file", nil, 0))
      try t.ok(rename("file", "moved"))
      try t.ok(rename("moved", "file"))
    }
    try t.equal(bits, 0o6755, "mode")
  }
  check("setid.kept-by-roots-write-and-truncate", .several) { t in
    let bits = try mode(t, as: .root) {
      let fd = try t.open("file", O_RDWR)
      try t.put(fd, "x")
      try t.ok(ftruncate(fd, 2))
    }
    try t.equal(bits, 0o6755, "mode")
  }
  check("setid.cleared-by-chown-of-root-too", .several) { t in
    try t.equal(try mode(t, as: .root) { try t.ok(chown("file", 1, 1)) }, 0o755, "mode")
    try t.equal(try mode(t, as: .root) { try t.ok(chown("file", uid_t.max, 1)) }, 0o755, "mode")
  }
  check("setid.cleared-by-a-users-chown", .several) { t in
    let bits = try mode(t, as: t.user) { try t.ok(chown("file", t.user.uid, t.user.gid)) }
    try t.equal(bits, 0o755, "mode")
  }
  check("setid.sgid-without-group-execute-stays-on-a-members-write", .several) { t in
    // S_ISGID without S_IXGRP once meant mandatory locking; a member of the group keeps it.
    let bits = try mode(t, 0o2644, as: t.user) { try t.put(try t.open("file", O_WRONLY), "x") }
    try t.equal(bits, 0o2644, "mode")
  }
  strangers(&check)
  check("setid.directories-keep-sgid-on-chown", .several) { t in
    try t.dir("dir")
    try t.ok(chmod("dir", 0o2755))
    try t.ok(chown("dir", 1, 1))
    try t.equal(try t.info("dir").bits, 0o2755, "mode")
  }
  check("setid.by-a-writer-who-is-not-the-owner", .several) { t in
    let bits = try mode(t, 0o6777, as: t.peer) { try t.put(try t.open("file", O_WRONLY), "x") }
    try t.equal(bits, 0o777, "mode")
  }
}

/// Ways to change what is in a file, each by someone who is not in its group.
private func strangers(_ check: inout Checks) {
  check("setid.sgid-without-group-execute-goes-with-a-strangers-write", .several) { t in
    for flags in [O_WRONLY, O_RDWR, O_WRONLY | O_APPEND] {
      let bits = try mode(t, 0o2666, as: t.peer) { try t.put(try t.open("file", flags), "x") }
      try t.equal(bits, 0o666, "mode after a write")
    }
  }
  check("setid.sgid-without-group-execute-goes-with-a-strangers-direct-write", .several) { t in
    let bits = try mode(t, 0o2666, as: t.peer) {
      let fd = try t.open("file", O_WRONLY | CLX_O_DIRECT)
      var room: UnsafeMutableRawPointer?
      try t.ok(posix_memalign(&room, 4096, 4096))
      try t.ok(pwrite(fd, room, 4096, 0))
    }
    try t.equal(bits, 0o666, "mode")
  }
  check("setid.sgid-without-group-execute-goes-with-a-strangers-truncate", .several) { t in
    for act in [{ truncate("file", 1) }, { ftruncate(clx_open("file", O_RDWR, 0), 100) }] as [() -> Int32] {
      try t.equal(try mode(t, 0o2666, as: t.peer) { try t.ok(act()) }, 0o666, "mode")
    }
    let bits = try mode(t, 0o2666, as: t.peer) { try t.ok(clx_open("file", O_WRONLY | O_TRUNC, 0)) }
    try t.equal(bits, 0o666, "mode after an open that truncates")
  }
  check("setid.sgid-without-group-execute-goes-with-a-strangers-fallocate", .several) { t in
    let bits = try mode(t, 0o2666, as: t.peer) {
      let fd = try t.open("file", O_RDWR)
      try t.probe("fallocate", clx_fallocate(fd, 0, 0, 8192))
    }
    try t.equal(bits, 0o666, "mode")
  }
  check("setid.sgid-without-group-execute-goes-with-a-strangers-copy-file-range", .several) { t in
    try t.as(t.user) { try t.make("source", "source") }
    let bits = try mode(t, 0o2666, as: t.peer) {
      let (from, to) = (try t.open("source", O_RDONLY), try t.open("file", O_RDWR))
      try t.ok(clx_copy_file_range(from, nil, to, nil, 6, 0))
    }
    try t.equal(bits, 0o666, "mode")
  }
  check("setid.sgid-without-group-execute-stays-with-a-supplementary-members-change", .several) { t in
    let member = t.peer.joining(t.user.gid)
    let written = try mode(t, 0o2666, as: member) { try t.put(try t.open("file", O_WRONLY), "x") }
    try t.equal(written, 0o2666, "mode after a write")
    let cut = try mode(t, 0o2666, as: member) { try t.ok(truncate("file", 1)) }
    try t.equal(cut, 0o2666, "mode after truncate")
    let emptied = try mode(t, 0o2666, as: member) { try t.ok(clx_open("file", O_WRONLY | O_TRUNC, 0)) }
    try t.equal(emptied, 0o2666, "mode after an open that truncates")
  }
  check("setid.sgid-without-group-execute-goes-with-a-chown-by-an-owner-who-left", .several) { t in
    try t.as(t.user) { try t.make("file") }
    try t.ok(chown("file", t.user.uid, t.peer.gid))
    try t.ok(chmod("file", 0o2644))
    try t.as(t.user) { try t.ok(chown("file", t.user.uid, t.user.gid)) }
    try t.equal(try t.info("file").bits, 0o644, "mode")
  }
}
