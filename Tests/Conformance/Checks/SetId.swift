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

func sticky(_ check: inout Checks) {
  check("sticky.strangers-remove-and-rename-nothing", .several) { t in
    try t.dir("tmp")
    try t.ok(chmod("tmp", 0o1777))
    try t.as(t.user) {
      try t.make("tmp/mine")
      try t.dir("tmp/dir")
    }
    try t.as(t.peer) {
      try t.fails(EPERM, unlink("tmp/mine"))
      try t.fails(EPERM, rmdir("tmp/dir"))
      try t.fails(EPERM, rename("tmp/mine", "tmp/yours"))
      try t.make("tmp/yours")
      try t.fails(EPERM, rename("tmp/yours", "tmp/mine"))
      try t.ok(rename("tmp/yours", "tmp/still-yours"))
      try t.ok(unlink("tmp/still-yours"))
    }
    try t.as(t.user) { try t.ok(unlink("tmp/mine")) }
    try t.ok(rmdir("tmp/dir"))
  }
  check("sticky.the-directorys-owner-removes-all", .several) { t in
    try t.as(t.user) {
      try t.dir("tmp")
      try t.ok(chmod("tmp", 0o1777))
    }
    try t.as(t.peer) { try t.make("tmp/theirs") }
    try t.as(t.user) { try t.ok(unlink("tmp/theirs")) }
  }
  check("sticky.exchange-needs-both", .several) { t in
    try t.dir("tmp")
    try t.ok(chmod("tmp", 0o1777))
    try t.as(t.user) { try t.make("tmp/a") }
    try t.as(t.peer) {
      try t.make("tmp/b")
      try t.fails(EPERM, clx_renameat2(AT_FDCWD, "tmp/b", AT_FDCWD, "tmp/a", UInt32(CLX_RENAME_EXCHANGE)))
      try t.fails(EPERM, clx_renameat2(AT_FDCWD, "tmp/a", AT_FDCWD, "tmp/b", UInt32(CLX_RENAME_EXCHANGE)))
    }
  }
  check("sticky.without-it-write-permission-is-enough", .several) { t in
    try t.dir("dir")
    try t.ok(chmod("dir", 0o777))
    try t.as(t.user) { try t.make("dir/mine", mode: 0o600) }
    try t.as(t.peer) { try t.ok(unlink("dir/mine")) }
  }
  check("sticky.write-to-a-file-inside-is-the-files-business", .several) { t in
    try t.dir("tmp")
    try t.ok(chmod("tmp", 0o1777))
    try t.as(t.user) {
      try t.make("tmp/shared")
      try t.ok(chmod("tmp/shared", 0o666))
    }
    try t.as(t.peer) { try t.put(try t.open("tmp/shared", O_WRONLY), "x") }
  }
}

func groups(_ check: inout Checks) {
  check("group.of-new-objects", .several) { t in
    try t.dir("dir")
    try t.ok(chown("dir", t.user.uid, 777))
    let expected = t.inheritsGroup ? 777 : t.user.gid
    try t.as(t.user) {
      try t.make("dir/file")
      try t.dir("dir/sub")
      try t.ok(symlink("x", "dir/link"))
      try t.ok(mkfifo("dir/fifo", 0o644))
      for name in ["file", "sub", "link", "fifo"] {
        try t.equal(try t.info("dir/\(name)").st_gid, expected, "group of \(name)")
      }
      try t.equal(try t.info("dir/sub").bits, 0o755, "mode of the directory")
    }
  }
  check("group.of-new-objects-in-a-setgid-directory", .several) { t in
    try t.dir("dir")
    try t.ok(chown("dir", t.user.uid, 777))
    try t.ok(chmod("dir", 0o2755))
    try t.as(t.user) {
      try t.make("dir/file")
      try t.dir("dir/sub")
      try t.equal(try t.info("dir/file").st_gid, 777, "group of a file")
      try t.equal(try t.info("dir/sub").st_gid, 777, "group of a directory")
      try t.equal(try t.info("dir/sub").bits, 0o2755, "mode of the directory")
      try t.equal(try t.info("dir/file").bits, 0o644, "mode of the file")
    }
  }
  check("group.of-a-temporary-file", .several) { t in
    try t.dir("dir")
    try t.ok(chown("dir", t.user.uid, 777))
    let expected = t.inheritsGroup ? 777 : t.user.gid
    try t.as(t.user) {
      try t.probe("O_TMPFILE", clx_open("dir", O_RDWR | CLX_O_TMPFILE, 0o600))
      let fd = try t.open("dir", O_RDWR | CLX_O_TMPFILE)
      try t.equal(try t.info(fd).st_gid, expected, "group")
    }
  }
  check("group.sgid-is-stripped-from-a-new-file-of-a-foreign-group", .several) { t in
    try t.dir("dir")
    try t.ok(chown("dir", t.user.uid, 777))
    try t.ok(chmod("dir", 0o2755))
    try t.as(t.user) {
      umask(0)
      try t.make("dir/file", mode: 0o2775)
      try t.equal(try t.info("dir/file").bits, 0o775, "mode")
    }
  }
  check("group.rename-and-link-keep-the-group", .several) { t in
    try t.dir("dir")
    try t.ok(chown("dir", t.user.uid, 777))
    try t.as(t.user) {
      try t.make("file")
      try t.ok(link("file", "dir/link"))
      try t.ok(rename("file", "dir/file"))
      try t.equal(try t.info("dir/file").st_gid, t.user.gid, "group")
    }
  }
}
