// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

/// `renameat2(2)` between paths.
private func move(_ from: String, _ to: String, _ flags: Int32) -> Int32 {
  clx_renameat2(AT_FDCWD, from, AT_FDCWD, to, UInt32(flags))
}

func renameFlags(_ check: inout Checks) {
  check("rename.noreplace.existing-target-is-EEXIST") { t in
    try t.make("a", "a")
    try t.make("b", "b")
    try t.dir("d")
    try t.ok(symlink("missing", "link"))
    for target in ["b", "d", "link", "a"] { try t.fails(EEXIST, move("a", target, CLX_RENAME_NOREPLACE)) }
    try t.equal(try t.text("b"), "b", "content")
  }
  check("rename.noreplace.new-target") { t in
    try t.make("a", "a")
    try t.ok(move("a", "b", CLX_RENAME_NOREPLACE))
    try t.missing("a")
    try t.equal(try t.text("b"), "a", "content")
    try t.dir("d")
    try t.ok(move("d", "e", CLX_RENAME_NOREPLACE))
    try t.equal(try t.info("e").kind, S_IFDIR, "type")
  }
  check("rename.exchange.files") { t in
    try t.make("a", "a")
    try t.make("b", "b")
    try t.ok(move("a", "b", CLX_RENAME_EXCHANGE))
    try t.equal(try t.text("a"), "b", "content of a")
    try t.equal(try t.text("b"), "a", "content of b")
  }
  check("rename.exchange.file-and-directory") { t in
    try t.make("file", "text")
    try t.dir("dir")
    try t.dir("dir/sub")
    try t.dir("elsewhere")
    try t.make("elsewhere/x", "x")
    try t.ok(move("dir", "elsewhere/x", CLX_RENAME_EXCHANGE))
    try t.equal(try t.text("dir"), "x", "content")
    try t.equal(try t.names("elsewhere/x"), ["sub"], "names")
    try t.equal(try t.info("elsewhere/x/..").st_ino, try t.info("elsewhere").st_ino, "inode of ..")
    try t.equal(try t.info("elsewhere").st_nlink, 3, "links of the new parent")
    try t.equal(try t.info(".").st_nlink, 3, "links of the old parent")
  }
  check("rename.exchange.non-empty-directories") { t in
    try t.dir("a")
    try t.make("a/in-a")
    try t.dir("b")
    try t.make("b/in-b")
    try t.ok(move("a", "b", CLX_RENAME_EXCHANGE))
    try t.equal(try t.names("a"), ["in-b"], "names")
    try t.equal(try t.names("b"), ["in-a"], "names")
  }
  check("rename.exchange.missing-target-is-ENOENT") { t in
    try t.make("a")
    try t.fails(ENOENT, move("a", "missing", CLX_RENAME_EXCHANGE))
    try t.fails(ENOENT, move("missing", "a", CLX_RENAME_EXCHANGE))
  }
  check("rename.exchange.with-an-ancestor-is-EINVAL") { t in
    try t.dir("a")
    try t.dir("a/b")
    try t.fails(EINVAL, move("a", "a/b", CLX_RENAME_EXCHANGE))
    try t.fails(EINVAL, move("a/b", "a", CLX_RENAME_EXCHANGE))
  }
  check("rename.flags.exchange-and-noreplace-is-EINVAL") { t in
    try t.make("a")
    try t.make("b")
    try t.fails(EINVAL, move("a", "b", CLX_RENAME_EXCHANGE | CLX_RENAME_NOREPLACE))
    try t.fails(EINVAL, move("a", "b", 0x100))
  }
  check("rename.whiteout.leaves-a-device", .root) { t in
    try t.make("a", "text")
    try t.ok(move("a", "b", CLX_RENAME_WHITEOUT))
    try t.equal(try t.text("b"), "text", "content")
    try t.equal(try t.info("a").kind, S_IFCHR, "type of what is left")
  }
  check("rename.flags.exchange-and-whiteout-is-EINVAL") { t in
    try t.make("a")
    try t.make("b")
    try t.fails(EINVAL, move("a", "b", CLX_RENAME_EXCHANGE | CLX_RENAME_WHITEOUT))
  }
}

func directoryRenames(_ check: inout Checks) {
  check("rename.dotdot-of-a-moved-directory") { t in
    try t.dir("a")
    try t.dir("a/moving")
    try t.dir("b")
    let fd = try t.open("a/moving", O_RDONLY | O_DIRECTORY)
    try t.ok(rename("a/moving", "b/moved"))
    try t.equal(try t.info("b/moved/..").st_ino, try t.info("b").st_ino, "inode of ..")
    var up = stat()
    try t.ok(fstatat(fd, "..", &up, 0))
    try t.equal(up.st_ino, try t.info("b").st_ino, "inode of .. by descriptor")
    let dots = try t.entries("b/moved").filter { $0.text == ".." }
    try t.equal(dots.map(\.inode), [try t.info("b").st_ino], "inode of .. as listed")
    try t.equal(try t.info("a").st_nlink, 2, "links of the old parent")
    try t.equal(try t.info("b").st_nlink, 3, "links of the new parent")
  }
  check("rename.of-an-open-directory-keeps-it-open") { t in
    try t.dir("a")
    try t.make("a/one")
    let fd = try t.open("a", O_RDONLY | O_DIRECTORY)
    try t.ok(rename("a", "b"))
    try t.ok(clx_openat(fd, "two", O_RDWR | O_CREAT, 0o644))
    try t.equal(try t.names("b"), ["one", "two"], "names")
    try t.fails(ENOENT, clx_open("a/one", O_RDONLY, 0))
  }
  check("rename.of-an-ancestor-moves-all-below") { t in
    try t.dir("a")
    try t.dir("a/b")
    try t.dir("a/b/c")
    try t.make("a/b/c/file", "text")
    let fd = try t.open("a/b/c/file", O_RDWR)
    try t.equal(try t.info("a/b/c/file").st_ino, try t.info(fd).st_ino, "inode")
    try t.ok(rename("a", "z"))
    try t.equal(try t.text("z/b/c/file"), "text", "content")
    try t.missing("a/b/c/file")
    try t.dir("a")
    try t.missing("a/b")
    try t.put(fd, "T")
    try t.equal(try t.text("z/b/c/file"), "Text", "content")
  }
  check("rename.over-an-open-empty-directory") { t in
    try t.dir("a")
    try t.dir("b")
    let old = try t.open("b", O_RDONLY | O_DIRECTORY)
    try t.ok(rename("a", "b"))
    try t.equal(try t.info(old).st_nlink, 0, "links")
    try t.fails(ENOENT, clx_openat(old, "new", O_RDWR | O_CREAT, 0o644))
  }
  check("rename.back-and-forth") { t in
    try t.dir("a")
    try t.dir("b")
    try t.make("a/file", "text")
    for _ in 0..<50 {
      try t.ok(rename("a/file", "b/file"))
      try t.missing("a/file")
      try t.ok(rename("b/file", "a/file"))
      try t.missing("b/file")
    }
    try t.equal(try t.text("a/file"), "text", "content")
  }
  check("rename.needs-write-permission-on-both-directories", .user) { t in
    try t.dir("a")
    try t.dir("b")
    try t.make("a/file")
    try t.ok(chmod("a", 0o555))
    try t.fails(EACCES, rename("a/file", "b/file"))
    try t.ok(chmod("a", 0o755))
    try t.ok(chmod("b", 0o555))
    try t.fails(EACCES, rename("a/file", "b/file"))
    try t.ok(chmod("b", 0o755))
    try t.ok(rename("a/file", "b/file"))
  }
  check("rename.of-a-directory-to-another-parent-needs-write-permission-on-it", .user) { t in
    // Its .. changes, so it counts as written; within one parent it does not.
    try t.dir("a")
    try t.dir("a/dir", mode: 0o555)
    try t.dir("b")
    try t.ok(rename("a/dir", "a/moved"))
    try t.fails(EACCES, rename("a/moved", "b/moved"))
    try t.equal(try t.names("a"), ["moved"], "names")
  }
  check("rename.by-directory-descriptors") { t in
    try t.dir("a")
    try t.dir("b")
    try t.make("a/file", "text")
    let (a, b) = (try t.open("a", CLX_O_PATH), try t.open("b", CLX_O_PATH))
    try t.ok(renameat(a, "file", b, "moved"))
    try t.equal(try t.text("b/moved"), "text", "content")
    try t.fails(EBADF, renameat(999, "moved", b, "x"))
  }
}
