// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

func creation(_ check: inout Checks) {
  check("create.mode-passes-through-the-umask") { t in
    let cases: [(mask: mode_t, asked: mode_t, got: mode_t)] = [
      (0o022, 0o666, 0o644), (0o077, 0o777, 0o700), (0, 0o666, 0o666), (0o777, 0o777, 0),
      (0o027, 0o755, 0o750),
    ]
    for (index, (mask, asked, got)) in cases.enumerated() {
      umask(mask)
      let fd = try t.open("f\(index)", O_RDWR | O_CREAT, asked)
      try t.equal(try t.info(fd).bits, got, "mode of a file")
      try t.dir("d\(index)", mode: asked)
      try t.equal(try t.info("d\(index)").bits, got, "mode of a directory")
      try t.ok(mkfifo("p\(index)", asked))
      try t.equal(try t.info("p\(index)").bits, got, "mode of a fifo")
    }
  }
  check("create.suid-and-sticky-bits-of-the-mode-are-kept") { t in
    umask(0)
    try t.make("file", mode: 0o4755)
    try t.equal(try t.info("file").bits, 0o4755, "mode")
    try t.dir("dir", mode: 0o1777)
    try t.equal(try t.info("dir").bits, 0o1777, "mode")
  }
  check("create.the-first-open-is-not-held-to-the-new-mode", .user) { t in
    let fd = try t.open("file", O_RDWR | O_CREAT, 0)
    try t.put(fd, "text")
    try t.fails(EACCES, clx_open("file", O_RDONLY, 0))
    try t.equal(try t.info("file").st_size, 4, "size")
  }
  check("create.belongs-to-the-maker", .several) { t in
    try t.ok(chmod(".", 0o777))
    for person in [t.user, t.peer] {
      try t.as(person) {
        let name = "by-\(person.uid)"
        try t.make(name)
        try t.dir(name + "-dir")
        try t.ok(symlink("x", name + "-link"))
        try t.ok(mkfifo(name + "-fifo", 0o644))
        for suffix in ["", "-dir", "-link", "-fifo"] {
          try t.equal(try t.info(name + suffix).st_uid, person.uid, "owner")
        }
      }
      try t.equal(try t.info("by-\(person.uid)").st_uid, person.uid, "owner as root sees it")
    }
  }
  check("create.umask-of-each-user-is-its-own", .several) { t in
    try t.as(t.user) {
      umask(0o007)
      try t.make("open-to-group", mode: 0o666)
    }
    try t.as(t.user) {
      umask(0o177)
      try t.make("mine-only", mode: 0o666)
    }
    try t.equal(try t.info("open-to-group").bits, 0o660, "mode")
    try t.equal(try t.info("mine-only").bits, 0o600, "mode")
  }
  check("create.in-a-directory-without-write-permission-is-EACCES", .user) { t in
    try t.dir("dir", mode: 0o555)
    try t.fails(EACCES, clx_open("dir/file", O_RDWR | O_CREAT, 0o644))
    try t.fails(EACCES, mkdir("dir/sub", 0o755))
    try t.fails(EACCES, symlink("x", "dir/link"))
    try t.fails(EACCES, mkfifo("dir/fifo", 0o644))
    try t.equal(try t.names("dir"), [], "names")
  }
  check("create.touches-the-directory-times") { t in
    try t.dir("dir")
    let before = try t.info("dir")
    usleep(20_000)
    try t.make("dir/file")
    let after = try t.info("dir")
    try t.expect(after.modified > before.modified, "a newer modification time")
    try t.expect(after.changed > before.changed, "a newer change time")
  }
  check("create.times-of-a-new-file-are-now") { t in
    var start = timespec()
    clock_gettime(CLOCK_REALTIME, &start)
    try t.make("file")
    let info = try t.info("file")
    // The kernel stamps from a coarse clock, which may lag by a few ticks.
    for time in [info.st_atim, info.st_mtim, info.st_ctim] {
      try t.expect(abs(time.tv_sec - start.tv_sec) <= 2, "a time close to now")
    }
  }
  check("create.existing-file-opened-with-creat-needs-no-directory-write", .user) { t in
    try t.dir("dir")
    try t.make("dir/file")
    try t.ok(chmod("dir", 0o555))
    try t.ok(clx_open("dir/file", O_RDWR | O_CREAT, 0o644))
  }
  check("create.reuses-a-name-with-a-new-identity") { t in
    try t.make("file", "old")
    let old = try t.open("file", O_RDONLY)
    try t.ok(unlink("file"))
    try t.make("file", "new one")
    try t.expect(
      try t.info("file").st_ino != t.info(old).st_ino, "another inode number while the old one is open")
    try t.equal(try t.get(old, 10), "old", "content of the old file")
    try t.equal(try t.text("file"), "new one", "content of the new file")
  }
}

func temporaryFiles(_ check: inout Checks) {
  check("tmpfile.has-no-name-and-no-links") { t in
    try t.probe("O_TMPFILE", clx_open(".", O_RDWR | CLX_O_TMPFILE, 0o600))
    let fd = try t.open(".", O_RDWR | CLX_O_TMPFILE, 0o640)
    let info = try t.info(fd)
    try t.equal(info.st_nlink, 0, "links")
    try t.equal(info.bits, 0o640, "mode")
    try t.equal(try t.names("."), [], "names")
    try t.put(fd, "text")
    try t.equal(try t.bytes(fd, 10, at: 0).count, 4, "bytes read back")
  }
  check("tmpfile.linked-through-proc") { t in
    try t.probe("O_TMPFILE", clx_open(".", O_RDWR | CLX_O_TMPFILE, 0o600))
    let fd = try t.open(".", O_RDWR | CLX_O_TMPFILE)
    try t.put(fd, "text")
    try t.ok(linkat(AT_FDCWD, "/proc/self/fd/\(fd)", AT_FDCWD, "file", AT_SYMLINK_FOLLOW))
    try t.equal(try t.text("file"), "text", "content")
    try t.equal(try t.info(fd).st_nlink, 1, "links")
    try t.equal(try t.info("file").st_ino, try t.info(fd).st_ino, "inode")
  }
  check("tmpfile.linked-by-empty-path", .root) { t in
    try t.probe("O_TMPFILE", clx_open(".", O_RDWR | CLX_O_TMPFILE, 0o600))
    let fd = try t.open(".", O_RDWR | CLX_O_TMPFILE)
    try t.put(fd, "text")
    try t.ok(linkat(fd, "", AT_FDCWD, "file", CLX_AT_EMPTY_PATH))
    try t.equal(try t.text("file"), "text", "content")
  }
  check("tmpfile.link-to-an-existing-name-is-EEXIST") { t in
    try t.probe("O_TMPFILE", clx_open(".", O_RDWR | CLX_O_TMPFILE, 0o600))
    try t.make("file")
    let fd = try t.open(".", O_RDWR | CLX_O_TMPFILE)
    let path = "/proc/self/fd/\(fd)"
    try t.fails(EEXIST, linkat(AT_FDCWD, path, AT_FDCWD, "file", AT_SYMLINK_FOLLOW))
    try t.equal(try t.info(fd).st_nlink, 0, "links")
  }
  check("tmpfile.excl-can-never-be-linked") { t in
    try t.probe("O_TMPFILE", clx_open(".", O_RDWR | CLX_O_TMPFILE, 0o600))
    let fd = try t.open(".", O_RDWR | CLX_O_TMPFILE | O_EXCL)
    let path = "/proc/self/fd/\(fd)"
    try t.fails(ENOENT, linkat(AT_FDCWD, path, AT_FDCWD, "file", AT_SYMLINK_FOLLOW))
  }
  check("tmpfile.read-only-is-EINVAL") { t in
    try t.fails(EINVAL, clx_open(".", O_RDONLY | CLX_O_TMPFILE, 0o600))
  }
  check("tmpfile.in-a-file-is-ENOTDIR-and-in-nothing-is-ENOENT") { t in
    try t.make("file")
    try t.fails(ENOTDIR, clx_open("file", O_RDWR | CLX_O_TMPFILE, 0o600))
    try t.fails(ENOENT, clx_open("missing", O_RDWR | CLX_O_TMPFILE, 0o600))
  }
  check("tmpfile.in-a-directory-without-write-permission-is-EACCES", .user) { t in
    try t.dir("dir", mode: 0o555)
    try t.fails(oneOf: [EACCES, EOPNOTSUPP], clx_open("dir", O_RDWR | CLX_O_TMPFILE, 0o600))
  }
}
