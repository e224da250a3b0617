// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

func directories(_ check: inout Checks) {
  check("mkdir.has-two-links-and-the-parent-one-more") { t in
    let before = try t.info(".").st_nlink
    try t.dir("dir")
    try t.equal(try t.info("dir").st_nlink, 2, "links of the new one")
    try t.equal(try t.info(".").st_nlink, before + 1, "links of the parent")
    try t.ok(rmdir("dir"))
    try t.equal(try t.info(".").st_nlink, before, "links of the parent after rmdir")
  }
  check("mkdir.existing-is-EEXIST") { t in
    try t.make("file")
    try t.dir("dir")
    try t.ok(symlink("missing", "dangling"))
    for name in ["file", "dir", "dangling", ".", "..", "dir/."] { try t.fails(EEXIST, mkdir(name, 0o755)) }
  }
  check("mkdir.below-nothing-is-ENOENT-and-below-a-file-ENOTDIR") { t in
    try t.make("file")
    try t.fails(ENOENT, mkdir("missing/dir", 0o755))
    try t.fails(ENOENT, mkdir("", 0o755))
    try t.fails(ENOTDIR, mkdir("file/dir", 0o755))
  }
  check("mkdir.trailing-slash-is-fine") { t in
    try t.ok(mkdir("dir/", 0o755))
    try t.equal(try t.info("dir").kind, S_IFDIR, "type")
  }
  check("mkdir.long-names") { t in
    let longest = String(repeating: "d", count: 255)
    try t.ok(mkdir(longest, 0o755))
    try t.fails(ENAMETOOLONG, mkdir(longest + "d", 0o755))
  }
  check("mkdir.ignores-suid-and-sgid-in-the-mode") { t in
    umask(0)
    try t.ok(mkdir("dir", 0o6755))
    try t.equal(try t.info("dir").bits & 0o777, 0o755, "permission bits")
  }
  check("mkdir.dot-and-dotdot-lead-home") { t in
    try t.dir("a")
    try t.dir("a/b")
    try t.equal(try t.info("a/b/.").st_ino, try t.info("a/b").st_ino, "inode of .")
    try t.equal(try t.info("a/b/..").st_ino, try t.info("a").st_ino, "inode of ..")
  }
  check("rmdir.non-empty-is-ENOTEMPTY") { t in
    try t.dir("dir")
    try t.make("dir/file")
    try t.fails(oneOf: [ENOTEMPTY], rmdir("dir"))
    try t.ok(unlink("dir/file"))
    try t.ok(rmdir("dir"))
    try t.missing("dir")
  }
  check("rmdir.of-other-types-is-ENOTDIR") { t in
    try t.make("file")
    try t.dir("dir")
    try t.ok(symlink("dir", "link"))
    try t.ok(mkfifo("fifo", 0o644))
    for name in ["file", "link", "fifo", "link/"] { try t.fails(ENOTDIR, rmdir(name)) }
  }
  check("rmdir.dot-is-EINVAL-and-dotdot-ENOTEMPTY") { t in
    try t.dir("dir")
    try t.dir("dir/sub")
    try t.fails(EINVAL, rmdir("dir/."))
    try t.fails(ENOTEMPTY, rmdir("dir/sub/.."))
  }
  check("rmdir.missing-is-ENOENT") { t in
    try t.fails(ENOENT, rmdir("missing"))
    try t.fails(ENOENT, rmdir("missing/dir"))
    try t.fails(ENAMETOOLONG, rmdir(String(repeating: "d", count: 256)))
  }
  check("rmdir.in-a-directory-without-write-permission-is-EACCES", .user) { t in
    try t.dir("dir")
    try t.dir("dir/sub")
    try t.ok(chmod("dir", 0o555))
    try t.fails(EACCES, rmdir("dir/sub"))
  }
  check("rmdir.of-an-open-directory") { t in
    try t.dir("dir")
    let fd = try t.open("dir", O_RDONLY | O_DIRECTORY)
    try t.ok(rmdir("dir"))
    try t.equal(try t.info(fd).st_nlink, 0, "links")
    try t.fails(ENOENT, clx_openat(fd, "new", O_RDWR | O_CREAT, 0o644))
    try t.fails(ENOENT, mkdirat(fd, "new", 0o755))
    var buffer = [UInt8](repeating: 0, count: 4096)
    try t.fails(ENOENT, clx_getdents64(fd, &buffer, 4096))
  }
  check("rmdir.of-the-working-directory") { t in
    try t.dir("dir")
    try t.ok(chdir("dir"))
    try t.ok(rmdir("../dir"))
    try t.fails(ENOENT, clx_open("new", O_RDWR | O_CREAT, 0o644))
    try t.fails(ENOENT, clx_open("../dir", O_RDONLY, 0))
    try t.ok(chdir(".."))
  }
  check("rmdir.and-mkdir-again-is-a-new-directory") { t in
    try t.dir("dir")
    let old = try t.open("dir", O_RDONLY | O_DIRECTORY)
    try t.ok(rmdir("dir"))
    try t.dir("dir")
    try t.make("dir/file")
    try t.fails(ENOENT, clx_openat(old, "file", O_RDONLY, 0))
    try t.equal(try t.names("dir"), ["file"], "names")
  }
  check("chdir.needs-search-permission", .user) { t in
    try t.dir("dir", mode: 0o600)
    try t.make("file")
    try t.fails(EACCES, chdir("dir"))
    try t.fails(ENOTDIR, chdir("file"))
    let fd = try t.open("dir", O_RDONLY | O_DIRECTORY)
    try t.fails(EACCES, fchdir(fd))
    try t.ok(chmod("dir", 0o100))
    try t.ok(chdir("dir"))
  }
  check("getcwd.follows-a-rename") { t in
    try t.dir("old")
    try t.ok(chdir("old"))
    try t.ok(rename("../old", "../new"))
    var buffer = [CChar](repeating: 0, count: 4096)
    guard getcwd(&buffer, 4096) != nil else { throw Failure(text: "getcwd: \(errnoName(errno))") }
    let path = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    try t.expect(path.hasSuffix("/new"), "a path that ends in /new")
  }
}
