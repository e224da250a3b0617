// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

// What a cache of names and attributes must not get wrong. Each check looks before and after a change, so
// that there is something to be stale.
func caches(_ check: inout Checks) {
  check("cache.negative-then-created") { t in
    for make in ["open", "mkdir", "symlink", "link", "rename", "mknod"] {
      try t.missing("\(make)-name")
      try t.make("\(make)-source")
      switch make {
      case "open": try t.make("\(make)-name")
      case "mkdir": try t.dir("\(make)-name")
      case "symlink": try t.ok(symlink("x", "\(make)-name"))
      case "link": try t.ok(link("\(make)-source", "\(make)-name"))
      case "rename": try t.ok(rename("\(make)-source", "\(make)-name"))
      default: try t.ok(mkfifo("\(make)-name", 0o644))
      }
      _ = try t.info("\(make)-name")
    }
  }
  check("cache.negative-then-linked-from-a-temporary-file") { t in
    try t.missing("file")
    try t.probe("O_TMPFILE", clx_open(".", O_RDWR | CLX_O_TMPFILE, 0o600))
    let fd = try t.open(".", O_RDWR | CLX_O_TMPFILE)
    try t.missing("file")
    try t.ok(linkat(AT_FDCWD, "/proc/self/fd/\(fd)", AT_FDCWD, "file", AT_SYMLINK_FOLLOW))
    try t.equal(try t.info("file").st_ino, try t.info(fd).st_ino, "inode")
  }
  check("cache.negative-then-created-by-another-process") { t in
    try t.missing("file")
    try t.inChild { try t.make("file", "text") }
    try t.equal(try t.text("file"), "text", "content")
  }
  check("cache.unlinked-then-missing") { t in
    for round in 0..<20 {
      try t.make("file", "round \(round)")
      try t.equal(try t.text("file"), "round \(round)", "content")
      try t.ok(unlink("file"))
      try t.missing("file")
      try t.fails(ENOENT, clx_open("file", O_RDONLY, 0))
    }
  }
  check("cache.removed-by-another-process") { t in
    try t.make("file")
    _ = try t.info("file")
    try t.inChild { try t.ok(unlink("file")) }
    try t.missing("file")
  }
  check("cache.renamed-both-names-are-true") { t in
    try t.make("a", "text")
    _ = try t.info("a")
    try t.missing("b")
    try t.ok(rename("a", "b"))
    try t.missing("a")
    try t.equal(try t.text("b"), "text", "content")
    try t.make("a", "another")
    try t.equal(try t.text("a"), "another", "content")
    try t.ok(rename("a", "b"))
    try t.missing("a")
    try t.equal(try t.text("b"), "another", "content")
  }
  check("cache.type-changes-under-one-name") { t in
    for _ in 0..<5 {
      try t.make("name")
      try t.equal(try t.info("name").kind, S_IFREG, "type")
      try t.ok(unlink("name"))
      try t.dir("name")
      try t.equal(try t.info("name").kind, S_IFDIR, "type")
      try t.ok(rmdir("name"))
      try t.ok(symlink("x", "name"))
      try t.equal(try t.info("name").kind, S_IFLNK, "type")
      try t.ok(unlink("name"))
    }
  }
  check("cache.attributes-through-the-other-hard-link") { t in
    try t.make("a", "text")
    try t.ok(link("a", "b"))
    for round in 0..<10 {
      try t.ok(chmod("a", 0o600 + mode_t(round % 8)))
      try t.equal(try t.info("b").bits, 0o600 + mode_t(round % 8), "mode")
      try t.ok(truncate("b", off_t(round)))
      try t.equal(try t.info("a").st_size, off_t(round), "size")
    }
    try t.ok(unlink("a"))
    try t.equal(try t.info("b").st_nlink, 1, "links")
  }
  check("cache.content-after-replacing-by-rename") { t in
    try t.make("file", "old")
    try t.equal(try t.text("file"), "old", "content")
    for round in 0..<30 {
      try t.make("next", "content \(round)")
      try t.ok(rename("next", "file"))
      try t.equal(try t.text("file"), "content \(round)", "content")
    }
  }
  check("cache.size-and-content-from-another-process") { t in
    try t.make("file", "short")
    try t.equal(try t.text("file"), "short", "content")
    try t.inChild { try t.put(try t.open("file", O_WRONLY | O_APPEND), " and long") }
    try t.equal(try t.info("file").st_size, 14, "size")
    try t.equal(try t.text("file"), "short and long", "content")
    try t.inChild { try t.ok(truncate("file", 3)) }
    try t.equal(try t.text("file"), "sho", "content")
  }
  check("cache.directory-times-and-links-after-changes-inside") { t in
    try t.dir("dir")
    let before = try t.info("dir")
    usleep(20_000)
    try t.inChild { try t.dir("dir/sub") }
    let after = try t.info("dir")
    try t.equal(after.st_nlink, before.st_nlink + 1, "links")
    try t.expect(after.modified > before.modified, "a newer modification time")
  }
  check("cache.removed-directory-takes-its-names-along") { t in
    try t.dir("dir")
    try t.make("dir/file", "old")
    _ = try t.info("dir/file")
    try t.ok(unlink("dir/file"))
    try t.ok(rmdir("dir"))
    try t.missing("dir/file")
    try t.dir("dir")
    try t.missing("dir/file")
    try t.make("dir/file", "new")
    try t.equal(try t.text("dir/file"), "new", "content")
  }
  check("cache.xattr-is-true-after-each-change") { t in
    try t.make("file")
    try t.probe("user xattrs", setxattr("file", "user.x", "0", 1, 0))
    var buffer = [UInt8](repeating: 0, count: 100)
    for round in 1...10 {
      let value = [UInt8](repeating: 65, count: round)
      try t.ok(setxattr("file", "user.x", value, round, 0))
      try t.equal(try t.ok(getxattr("file", "user.x", &buffer, 100)), round, "size")
    }
    try t.ok(removexattr("file", "user.x"))
    try t.fails(ENODATA, getxattr("file", "user.x", &buffer, 100))
  }
}
