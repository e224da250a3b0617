// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

func renames(_ check: inout Checks) {
  check("rename.moves-a-file-with-its-identity") { t in
    try t.make("a", "text")
    let before = try t.info("a")
    try t.ok(rename("a", "b"))
    try t.missing("a")
    try t.equal(try t.info("b").st_ino, before.st_ino, "inode")
    try t.equal(try t.info("b").modified, before.modified, "modification time")
    try t.equal(try t.text("b"), "text", "content")
  }
  for kind in ["file", "symlink", "fifo", "socket"] {
    for over in ["file", "symlink", "fifo", "socket"] {
      check("rename.\(kind)-over-\(over)") { t in
        try t.make(kind, as: "a")
        try t.make(over, as: "b")
        let inode = try t.info("a").st_ino
        try t.ok(rename("a", "b"))
        try t.missing("a")
        try t.equal(try t.info("b").st_ino, inode, "inode")
      }
    }
    check("rename.\(kind)-over-directory-is-EISDIR") { t in
      try t.make(kind, as: "a")
      try t.dir("b")
      try t.fails(EISDIR, rename("a", "b"))
      try t.equal(try t.names("."), ["a", "b"], "names")
    }
    check("rename.directory-over-\(kind)-is-ENOTDIR") { t in
      try t.dir("a")
      try t.make(kind, as: "b")
      try t.fails(ENOTDIR, rename("a", "b"))
      try t.equal(try t.names("."), ["a", "b"], "names")
    }
  }
  check("rename.directory-over-empty-directory") { t in
    try t.dir("a")
    try t.make("a/file")
    try t.dir("b")
    let (inode, links) = (try t.info("a").st_ino, try t.info(".").st_nlink)
    try t.ok(rename("a", "b"))
    try t.equal(try t.info("b").st_ino, inode, "inode")
    try t.equal(try t.names("b"), ["file"], "names")
    try t.equal(try t.info(".").st_nlink, links - 1, "links of the parent")
  }
  check("rename.directory-over-non-empty-is-ENOTEMPTY") { t in
    try t.dir("a")
    try t.dir("b")
    try t.make("b/file")
    try t.fails(oneOf: [ENOTEMPTY], rename("a", "b"))
    try t.equal(try t.names("b"), ["file"], "names")
  }
  check("rename.over-its-own-parent-is-ENOTEMPTY") { t in
    try t.dir("a")
    try t.dir("a/b")
    try t.fails(ENOTEMPTY, rename("a/b", "a"))
  }
  check("rename.into-itself-is-EINVAL") { t in
    try t.dir("a")
    try t.dir("a/b")
    try t.fails(EINVAL, rename("a", "a/b/c"))
    try t.fails(EINVAL, rename("a", "a/new"))
    try t.fails(EINVAL, rename("a", "a/b"))
  }
  check("rename.errors") { t in
    try t.make("file")
    try t.dir("dir")
    try t.fails(ENOENT, rename("missing", "new"))
    try t.fails(ENOENT, rename("file", "missing/new"))
    try t.fails(ENOENT, rename("", "new"))
    try t.fails(ENOENT, rename("file", ""))
    try t.fails(ENOTDIR, rename("file/below", "new"))
    try t.fails(ENOTDIR, rename("dir", "file/below"))
    try t.fails(ENOTDIR, rename("file", "new/"))
    try t.fails(ENAMETOOLONG, rename("file", String(repeating: "n", count: 256)))
    try t.fails(ENAMETOOLONG, rename(String(repeating: "n", count: 256), "new"))
    try t.fails(oneOf: [EBUSY, EINVAL], rename("dir/.", "new"))
    try t.fails(oneOf: [EBUSY, EINVAL], rename("dir/..", "new"))
    try t.fails(EXDEV, rename("file", "/proc/new"))
  }
  check("rename.onto-itself-does-nothing") { t in
    try t.make("file", "text")
    let before = try t.info("file")
    try t.ok(rename("file", "file"))
    try t.equal(try t.info("file").changed, before.changed, "change time")
  }
  check("rename.of-two-names-of-one-inode-does-nothing") { t in
    try t.make("a", "text")
    try t.ok(link("a", "b"))
    try t.ok(rename("a", "b"))
    try t.equal(try t.names("."), ["a", "b"], "names")
    try t.equal(try t.info("a").st_nlink, 2, "links")
  }
  check("rename.over-a-hard-linked-file-drops-one-link") { t in
    try t.make("a", "a")
    try t.make("b", "b")
    try t.ok(link("b", "keeper"))
    try t.ok(rename("a", "b"))
    try t.equal(try t.info("keeper").st_nlink, 1, "links")
    try t.equal(try t.text("keeper"), "b", "content")
    try t.equal(try t.text("b"), "a", "content")
  }
  check("rename.over-an-open-file-leaves-it-readable") { t in
    try t.make("a", "new")
    try t.make("b", "old")
    let fd = try t.open("b", O_RDWR)
    try t.ok(rename("a", "b"))
    try t.equal(try t.get(fd, 10), "old", "content of the open file")
    try t.equal(try t.info(fd).st_nlink, 0, "links")
    try t.put(fd, "er")
    try t.equal(try t.text("b"), "new", "content of the name")
  }
  check("rename.of-an-open-file-keeps-it-open") { t in
    try t.make("a", "text")
    let fd = try t.open("a", O_RDWR | O_APPEND)
    try t.ok(rename("a", "b"))
    try t.put(fd, "s")
    try t.equal(try t.text("b"), "texts", "content")
  }
  check("rename.of-a-symlink-moves-the-link") { t in
    try t.make("file", "text")
    try t.ok(symlink("file", "link"))
    try t.ok(rename("link", "moved"))
    try t.equal(try t.target("moved"), Array("file".utf8), "target")
    try t.equal(try t.text("file"), "text", "content")
  }
  check("rename.touches-times-of-both-directories") { t in
    try t.dir("a")
    try t.dir("b")
    try t.make("a/file")
    let before = (try t.info("a").modified, try t.info("b").modified, try t.info("a/file").changed)
    usleep(20_000)
    try t.ok(rename("a/file", "b/file"))
    try t.expect(try t.info("a").modified > before.0, "a newer time of the old directory")
    try t.expect(try t.info("b").modified > before.1, "a newer time of the new directory")
    try t.expect(try t.info("b/file").changed > before.2, "a newer change time of the file")
  }
}

extension Trial {
  /// An object of a type that is not a directory.
  fileprivate func make(_ kind: String, as name: String) throws {
    switch kind {
    case "symlink": try ok(symlink("target", name))
    case "fifo": try ok(mkfifo(name, 0o644))
    case "socket": try ok(mknod(name, S_IFSOCK | 0o644, 0))
    default: try make(name, "text")
    }
  }
}
