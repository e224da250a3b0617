// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

func openBasics(_ check: inout Checks) {
  check("open.missing-is-ENOENT") { t in
    try t.fails(ENOENT, clx_open("missing", O_RDONLY, 0))
    try t.fails(ENOENT, clx_open("missing/below", O_RDONLY, 0))
    try t.fails(ENOENT, clx_open("", O_RDONLY, 0))
  }
  check("open.below-a-file-is-ENOTDIR") { t in
    try t.make("file")
    try t.fails(ENOTDIR, clx_open("file/below", O_RDONLY, 0))
    try t.fails(ENOTDIR, clx_open("file/", O_RDONLY, 0))
    try t.fails(ENOTDIR, clx_open("file/below", O_RDWR | O_CREAT, 0o644))
  }
  check("open.creat-makes-an-empty-regular-file") { t in
    let fd = try t.open("new", O_RDWR | O_CREAT)
    let info = try t.info(fd)
    try t.equal(info.kind, S_IFREG, "type")
    try t.equal(info.st_size, 0, "size")
    try t.equal(info.st_nlink, 1, "links")
    try t.equal(try t.info("new").st_ino, info.st_ino, "inode")
  }
  check("open.creat-of-an-existing-file-keeps-content-and-mode") { t in
    try t.make("file", "text", mode: 0o640)
    let fd = try t.open("file", O_RDONLY | O_CREAT, 0o777)
    try t.equal(try t.get(fd, 10), "text", "content")
    try t.equal(try t.info(fd).bits, 0o640, "mode")
  }
  check("open.creat-in-a-missing-directory-is-ENOENT") { t in
    try t.fails(ENOENT, clx_open("no/file", O_RDWR | O_CREAT, 0o644))
  }
  check("open.creat-of-a-directory-is-EISDIR") { t in
    try t.dir("dir")
    try t.fails(EISDIR, clx_open("dir", O_RDONLY | O_CREAT, 0o644))
    try t.fails(EISDIR, clx_open("new/", O_RDWR | O_CREAT, 0o644))
  }
  check("open.excl-of-an-existing-object-is-EEXIST") { t in
    try t.make("file")
    try t.dir("dir")
    try t.ok(symlink("missing", "dangling"))
    for name in ["file", "dir", "dangling", ".", ".."] {
      try t.fails(EEXIST, clx_open(name, O_RDWR | O_CREAT | O_EXCL, 0o644))
    }
    try t.missing("missing")
  }
  check("open.creat-through-a-dangling-symlink-makes-its-target") { t in
    try t.ok(symlink("target", "link"))
    let fd = try t.open("link", O_RDWR | O_CREAT)
    try t.equal(try t.info("target").st_ino, try t.info(fd).st_ino, "inode")
  }
  check("open.trunc-empties") { t in
    try t.make("file", "text")
    let before = try t.info("file").modified
    usleep(20_000)
    let fd = try t.open("file", O_WRONLY | O_TRUNC)
    let info = try t.info(fd)
    try t.equal(info.st_size, 0, "size")
    try t.expect(info.modified > before, "a newer modification time")
  }
  check("open.trunc-of-a-read-only-open-empties-too") { t in
    try t.make("file", "text")
    try t.ok(clx_open("file", O_RDONLY | O_TRUNC, 0))
    try t.equal(try t.info("file").st_size, 0, "size")
  }
  check("open.trunc-without-write-permission-is-EACCES-and-keeps-the-content", .user) { t in
    try t.make("file", "text", mode: 0o444)
    try t.fails(EACCES, clx_open("file", O_RDONLY | O_TRUNC, 0))
    try t.equal(try t.text("file"), "text", "content")
  }
  check("open.writing-a-directory-is-EISDIR") { t in
    try t.dir("dir")
    try t.fails(EISDIR, clx_open("dir", O_WRONLY, 0))
    try t.fails(EISDIR, clx_open("dir", O_RDWR, 0))
    try t.fails(EISDIR, clx_open("dir", O_RDONLY | O_TRUNC, 0))
  }
  check("open.directory-flag-on-a-file-is-ENOTDIR") { t in
    try t.make("file")
    try t.fails(ENOTDIR, clx_open("file", O_RDONLY | O_DIRECTORY, 0))
    try t.dir("dir")
    try t.ok(clx_open("dir", O_RDONLY | O_DIRECTORY, 0))
  }
  check("open.creat-with-directory-flag-is-EINVAL") { t in
    try t.fails(EINVAL, clx_open("new", O_RDWR | O_CREAT | O_DIRECTORY, 0o644))
    try t.missing("new")
  }
  check("open.nofollow-on-a-symlink-is-ELOOP") { t in
    try t.make("file")
    try t.dir("dir")
    try t.ok(symlink("file", "link"))
    try t.ok(symlink("dir", "dirlink"))
    try t.fails(ELOOP, clx_open("link", O_RDONLY | O_NOFOLLOW, 0))
    try t.fails(ENOTDIR, clx_open("dirlink", O_RDONLY | O_NOFOLLOW | O_DIRECTORY, 0))
    try t.ok(clx_open("dirlink/", O_RDONLY | O_NOFOLLOW, 0))
  }
  check("open.long-names") { t in
    let longest = String(repeating: "n", count: 255)
    try t.ok(clx_open(longest, O_RDWR | O_CREAT, 0o644))
    try t.fails(ENAMETOOLONG, clx_open(longest + "n", O_RDWR | O_CREAT, 0o644))
    try t.fails(ENAMETOOLONG, clx_open(longest + "n", O_RDONLY, 0))
  }
  check("open.a-socket-is-ENXIO") { t in
    try t.ok(mknod("socket", S_IFSOCK | 0o644, 0))
    try t.fails(ENXIO, clx_open("socket", O_RDWR, 0))
  }
  check("open.fifo-for-writing-without-a-reader-is-ENXIO") { t in
    try t.ok(mkfifo("fifo", 0o644))
    try t.fails(ENXIO, clx_open("fifo", O_WRONLY | O_NONBLOCK, 0))
    try t.ok(clx_open("fifo", O_RDONLY | O_NONBLOCK, 0))
    try t.ok(clx_open("fifo", O_WRONLY | O_NONBLOCK, 0))
  }
}
