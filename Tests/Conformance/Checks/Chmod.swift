// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

func modes(_ check: inout Checks) {
  check("chmod.all-twelve-bits-of-a-file-and-a-directory") { t in
    try t.make("file")
    try t.dir("dir")
    for bit in 0..<12 as Range<mode_t> {
      try t.ok(chmod("file", 1 << bit))
      try t.equal(try t.info("file").bits, 1 << bit, "mode of a file")
    }
    for mode in [0o700, 0o755, 0o1777, 0o2755, 0o711] as [mode_t] {
      try t.ok(chmod("dir", mode))
      try t.equal(try t.info("dir").bits, mode, "mode of a directory")
    }
  }
  check("chmod.errors") { t in
    try t.make("file")
    try t.fails(ENOENT, chmod("missing", 0o644))
    try t.fails(ENOENT, chmod("", 0o644))
    try t.fails(ENOTDIR, chmod("file/below", 0o644))
    try t.fails(ENAMETOOLONG, chmod(String(repeating: "n", count: 256), 0o644))
    try t.fails(EBADF, fchmod(999, 0o644))
  }
  check("chmod.follows-symlinks") { t in
    try t.make("file")
    try t.ok(symlink("file", "link"))
    try t.ok(chmod("link", 0o600))
    try t.equal(try t.info("file").bits, 0o600, "mode of the file")
    try t.equal(try t.info("link").bits, 0o777, "mode of the link")
  }
  check("chmod.of-a-symlink-itself-is-EOPNOTSUPP") { t in
    try t.make("file")
    try t.ok(symlink("file", "link"))
    let result = clx_fchmodat2(AT_FDCWD, "link", 0o600, AT_SYMLINK_NOFOLLOW)
    if result == -1 && errno == ENOSYS { throw Skip(reason: "no fchmodat2 in this kernel") }
    try t.fails(EOPNOTSUPP, clx_fchmodat2(AT_FDCWD, "link", 0o600, AT_SYMLINK_NOFOLLOW))
    try t.equal(try t.info("file").bits, 0o644, "mode of the file")
  }
  check("chmod.by-descriptor") { t in
    try t.make("file")
    try t.dir("dir")
    try t.ok(fchmod(try t.open("file", O_RDONLY), 0o4711))
    try t.equal(try t.info("file").bits, 0o4711, "mode")
    try t.ok(fchmod(try t.open("dir", O_RDONLY), 0o700))
    try t.equal(try t.info("dir").bits, 0o700, "mode")
  }
  check("chmod.touches-only-the-change-time") { t in
    try t.make("file")
    let before = try t.info("file")
    usleep(20_000)
    try t.ok(chmod("file", 0o600))
    let after = try t.info("file")
    try t.expect(after.changed > before.changed, "a newer change time")
    try t.equal(after.modified, before.modified, "modification time")
  }
  check("chmod.by-a-stranger-is-EPERM", .several) { t in
    try t.as(t.user) {
      try t.make("file")
      try t.ok(chmod("file", 0o666))
    }
    try t.as(t.peer) {
      try t.fails(EPERM, chmod("file", 0o777))
      let fd = try t.open("file", O_RDWR)
      try t.fails(EPERM, fchmod(fd, 0o777))
    }
    try t.ok(chmod("file", 0o600))
    try t.equal(try t.info("file").bits, 0o600, "mode set by root")
  }
  check("chmod.does-not-shut-out-an-open-descriptor", .user) { t in
    try t.make("file", "text")
    let fd = try t.open("file", O_RDWR)
    try t.ok(chmod("file", 0))
    try t.equal(try t.get(fd, 4), "text", "content")
    try t.put(fd, "s")
    try t.fails(EACCES, clx_open("file", O_RDONLY, 0))
  }
  check("chmod.sgid-is-dropped-when-the-owner-is-not-in-the-group", .several) { t in
    try t.as(t.user) { try t.make("file") }
    try t.ok(chown("file", t.user.uid, t.peer.gid))
    try t.as(t.user) {
      try t.ok(chmod("file", 0o2755))
      try t.equal(try t.info("file").bits, 0o755, "mode")
    }
    try t.as(t.user.joining(t.peer.gid)) {
      try t.ok(chmod("file", 0o2755))
      try t.equal(try t.info("file").bits, 0o2755, "mode set by a member")
    }
    try t.ok(chmod("file", 0o755))
    try t.ok(chmod("file", 0o2755))
    try t.equal(try t.info("file").bits, 0o2755, "mode set by root")
  }
  check("chmod.sgid-of-a-directory-is-dropped-when-the-owner-is-not-in-the-group", .several) { t in
    try t.as(t.user) { try t.dir("dir") }
    try t.ok(chown("dir", t.user.uid, t.peer.gid))
    try t.as(t.user) {
      try t.ok(chmod("dir", 0o2755))
      try t.equal(try t.info("dir").bits, 0o755, "mode")
    }
    try t.as(t.user.joining(t.peer.gid)) {
      try t.ok(chmod("dir", 0o2755))
      try t.equal(try t.info("dir").bits, 0o2755, "mode set by a member")
    }
    try t.as(t.user) {
      try t.dir("dir/sub")
      try t.equal(try t.info("dir/sub").bits, 0o2755, "mode that a new directory inherits")
    }
  }
  check("chmod.keeps-type-and-takes-no-type-bits") { t in
    try t.make("file")
    try t.ok(chmod("file", S_IFDIR | 0o700))
    try t.equal(try t.info("file").st_mode, S_IFREG | 0o700, "mode")
  }
}

func owners(_ check: inout Checks) {
  check("chown.by-root", .root) { t in
    try t.make("file")
    try t.dir("dir")
    try t.ok(mkfifo("fifo", 0o644))
    for name in ["file", "dir", "fifo"] {
      try t.ok(chown(name, 1234, 5678))
      try t.equal(try t.info(name).st_uid, 1234, "owner")
      try t.equal(try t.info(name).st_gid, 5678, "group")
    }
  }
  check("chown.minus-one-leaves-as-is", .root) { t in
    try t.make("file")
    try t.ok(chown("file", 1234, 5678))
    try t.ok(chown("file", uid_t.max, 99))
    try t.equal(try t.info("file").st_uid, 1234, "owner")
    try t.ok(chown("file", 42, gid_t.max))
    try t.equal(try t.info("file").st_gid, 99, "group")
    try t.equal(try t.info("file").st_uid, 42, "owner")
  }
  check("chown.large-ids", .root) { t in
    try t.make("file")
    try t.ok(chown("file", 4_294_967_294, 4_294_967_293))
    try t.equal(try t.info("file").st_uid, 4_294_967_294, "owner")
    try t.equal(try t.info("file").st_gid, 4_294_967_293, "group")
  }
  check("chown.lchown-acts-on-the-symlink", .root) { t in
    try t.make("file")
    try t.ok(symlink("file", "link"))
    try t.ok(lchown("link", 1234, 5678))
    try t.equal(try t.info("link").st_uid, 1234, "owner of the link")
    try t.equal(try t.info("file").st_uid, 0, "owner of the file")
    try t.ok(chown("link", 77, 78))
    try t.equal(try t.info("file").st_uid, 77, "owner of the file")
    try t.ok(symlink("missing", "dangling"))
    try t.ok(lchown("dangling", 5, 5))
    try t.fails(ENOENT, chown("dangling", 6, 6))
  }
  check("chown.by-descriptor-and-empty-path", .root) { t in
    try t.make("file")
    let fd = try t.open("file", O_RDONLY)
    try t.ok(fchown(fd, 1, 2))
    try t.equal(try t.info("file").st_uid, 1, "owner")
    try t.ok(fchownat(fd, "", 3, 4, CLX_AT_EMPTY_PATH))
    try t.equal(try t.info("file").st_uid, 3, "owner")
  }
  check("chown.errors") { t in
    try t.make("file")
    try t.fails(ENOENT, chown("missing", uid_t.max, gid_t.max))
    try t.fails(ENOTDIR, chown("file/below", uid_t.max, gid_t.max))
    try t.fails(EBADF, fchown(999, uid_t.max, gid_t.max))
    try t.fails(ENAMETOOLONG, lchown(String(repeating: "n", count: 256), uid_t.max, gid_t.max))
  }
  check("chown.giving-a-file-away-is-EPERM", .user) { t in
    try t.make("file")
    try t.fails(EPERM, chown("file", 1, gid_t.max))
    try t.fails(EPERM, chown("file", uid_t.max, 1))
    try t.fails(EPERM, lchown("file", 0, 0))
  }
  check("chown.to-oneself-is-fine", .user) { t in
    try t.make("file")
    let info = try t.info("file")
    try t.ok(chown("file", info.st_uid, info.st_gid))
    try t.ok(chown("file", uid_t.max, gid_t.max))
  }
  check("chown.owner-moves-it-to-a-group-of-his", .several) { t in
    try t.as(t.user) { try t.make("file") }
    try t.as(t.user.joining(t.peer.gid)) {
      try t.ok(chown("file", uid_t.max, t.peer.gid))
      try t.equal(try t.info("file").st_gid, t.peer.gid, "group")
      try t.fails(EPERM, chown("file", uid_t.max, 99))
    }
  }
  check("chown.by-a-stranger-is-EPERM", .several) { t in
    try t.as(t.user) { try t.make("file", mode: 0o666) }
    try t.as(t.peer.joining(t.user.gid)) {
      try t.fails(EPERM, chown("file", t.peer.uid, gid_t.max))
      try t.fails(EPERM, chown("file", uid_t.max, t.peer.gid))
    }
  }
  check("chown.touches-only-the-change-time", .user) { t in
    try t.make("file")
    let before = try t.info("file")
    usleep(20_000)
    try t.ok(chown("file", before.st_uid, before.st_gid))
    let after = try t.info("file")
    try t.expect(after.changed > before.changed, "a newer change time")
    try t.equal(after.modified, before.modified, "modification time")
  }
}
