// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

func links(_ check: inout Checks) {
  check("link.is-one-file-under-two-names") { t in
    try t.make("a", "text")
    try t.ok(link("a", "b"))
    let (a, b) = (try t.info("a"), try t.info("b"))
    try t.equal(b.st_ino, a.st_ino, "inode")
    try t.equal(b.st_dev, a.st_dev, "device")
    try t.equal(a.st_nlink, 2, "links")
    let fd = try t.open("b", O_WRONLY | O_APPEND)
    try t.put(fd, " and more")
    try t.equal(try t.info("a").st_size, 13, "size under the first name")
    try t.ok(chmod("a", 0o600))
    try t.equal(try t.info("b").bits, 0o600, "mode under the second name")
    try t.ok(truncate("b", 2))
    try t.equal(try t.text("a"), "te", "content under the first name")
  }
  check("link.count-goes-up-and-down") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDONLY)
    for index in 0..<20 { try t.ok(link("file", "link\(index)")) }
    try t.equal(try t.info(fd).st_nlink, 21, "links")
    try t.ok(unlink("file"))
    for index in 0..<19 { try t.ok(unlink("link\(index)")) }
    try t.equal(try t.info("link19").st_nlink, 1, "links")
    try t.ok(unlink("link19"))
    try t.equal(try t.info(fd).st_nlink, 0, "links of the open file")
  }
  check("link.across-directories") { t in
    try t.dir("d")
    try t.make("file", "text")
    try t.ok(link("file", "d/file"))
    try t.ok(unlink("file"))
    try t.equal(try t.text("d/file"), "text", "content")
    try t.equal(try t.info("d/file").st_nlink, 1, "links")
  }
  check("link.errors") { t in
    try t.make("file")
    try t.make("other")
    try t.fails(ENOENT, link("missing", "new"))
    try t.fails(ENOENT, link("file", "missing/new"))
    try t.fails(ENOTDIR, link("file/below", "new"))
    try t.fails(ENOTDIR, link("file", "other/below"))
    try t.fails(EEXIST, link("file", "other"))
    try t.fails(EEXIST, link("file", "file"))
    try t.fails(ENAMETOOLONG, link("file", String(repeating: "n", count: 256)))
    try t.fails(EINVAL, linkat(AT_FDCWD, "file", AT_FDCWD, "new", 0x8000))
  }
  check("link.of-a-directory-is-EPERM") { t in
    try t.dir("dir")
    try t.fails(EPERM, link("dir", "new"))
  }
  check("link.does-not-follow-symlinks-unless-asked") { t in
    try t.make("file")
    try t.ok(symlink("file", "sym"))
    try t.ok(link("sym", "hard"))
    try t.equal(try t.info("hard").kind, S_IFLNK, "type")
    try t.equal(try t.info("hard").st_ino, try t.info("sym").st_ino, "inode")
    try t.ok(linkat(AT_FDCWD, "sym", AT_FDCWD, "followed", AT_SYMLINK_FOLLOW))
    try t.equal(try t.info("followed").st_ino, try t.info("file").st_ino, "inode")
  }
  check("link.of-a-fifo") { t in
    try t.ok(mkfifo("fifo", 0o644))
    try t.ok(link("fifo", "second"))
    try t.equal(try t.info("second").st_ino, try t.info("fifo").st_ino, "inode")
  }
  check("link.across-filesystems-is-EXDEV") { t in
    var there = stat()
    guard lstat("/proc/version", &there) == 0, try t.info(".").st_dev != there.st_dev
    else { throw Skip(reason: "no /proc") }
    try t.fails(EXDEV, link("/proc/version", "new"))
    try t.missing("new")
  }
  check("link.touches-the-change-time") { t in
    try t.make("file")
    let before = try t.info("file")
    usleep(20_000)
    try t.ok(link("file", "new"))
    let after = try t.info("file")
    try t.expect(after.changed > before.changed, "a newer change time")
    try t.equal(after.modified, before.modified, "modification time")
  }
  check("link.into-a-directory-without-write-permission-is-EACCES", .user) { t in
    try t.make("file")
    try t.dir("dir", mode: 0o555)
    try t.fails(EACCES, link("file", "dir/new"))
    try t.equal(try t.info("file").st_nlink, 1, "links")
  }
  check("unlink.removes-a-name") { t in
    try t.make("file")
    try t.ok(symlink("file", "sym"))
    try t.ok(mkfifo("fifo", 0o644))
    for name in ["sym", "fifo", "file"] {
      try t.ok(unlink(name))
      try t.missing(name)
    }
  }
  check("unlink.errors") { t in
    try t.make("file")
    try t.dir("dir")
    try t.fails(ENOENT, unlink("missing"))
    try t.fails(ENOENT, unlink("missing/file"))
    try t.fails(ENOTDIR, unlink("file/below"))
    try t.fails(ENOTDIR, unlink("file/"))
    try t.fails(EISDIR, unlink("dir"))
    try t.fails(ENAMETOOLONG, unlink(String(repeating: "n", count: 256)))
    try t.fails(EINVAL, unlinkat(AT_FDCWD, "file", 1))
    try t.ok(unlinkat(AT_FDCWD, "dir", AT_REMOVEDIR))
  }
  check("unlink.in-a-directory-without-write-permission-is-EACCES", .user) { t in
    try t.dir("dir")
    try t.make("dir/file")
    try t.ok(chmod("dir", 0o555))
    try t.fails(EACCES, unlink("dir/file"))
    try t.ok(chmod("dir", 0o666))
    try t.fails(EACCES, unlink("dir/file"))
  }
  check("unlink.of-a-file-without-any-permission-is-the-directorys-business", .user) { t in
    try t.make("file", mode: 0)
    try t.ok(unlink("file"))
  }
  check("unlink.touches-times-of-directory-and-file") { t in
    try t.dir("dir")
    try t.make("dir/a")
    try t.ok(link("dir/a", "b"))
    let (dir, file) = (try t.info("dir"), try t.info("b"))
    usleep(20_000)
    try t.ok(unlink("dir/a"))
    try t.expect(try t.info("dir").modified > dir.modified, "a newer modification time of the directory")
    try t.expect(try t.info("b").changed > file.changed, "a newer change time of the file")
  }
}
