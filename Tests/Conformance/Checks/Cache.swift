// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

// What a cache of names and attributes must not get wrong. Each check looks before and after a change, so that
// there is something to be stale.
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

// A cache shared by all users must not let one in because another one was there before.
func cachesOfSeveralUsers(_ check: inout Checks) {
  check("cache.users.a-walk-by-one-does-not-open-the-way-to-another", .several) { t in
    try t.as(t.user) {
      try t.dir("private", mode: 0o700)
      try t.make("private/file", "text")
    }
    for _ in 0..<3 {
      _ = try t.text("private/file")
      try t.as(t.user) { _ = try t.text("private/file") }
      try t.as(t.peer) {
        var info = stat()
        try t.fails(EACCES, lstat("private/file", &info))
        try t.fails(EACCES, lstat("private/missing", &info))
        try t.fails(EACCES, clx_open("private/file", O_RDONLY, 0))
        try t.fails(EACCES, clx_open("private", O_RDONLY, 0))
      }
    }
  }
  check("cache.users.content-read-by-one-is-not-given-to-another", .several) { t in
    try t.as(t.user) { try t.make("file", "text", mode: 0o600) }
    _ = try t.text("file")
    try t.as(t.peer) {
      try t.fails(EACCES, clx_open("file", O_RDONLY, 0))
      try t.fails(EACCES, access("file", R_OK))
    }
  }
  check("cache.users.closing-a-directory-shuts-the-way-at-once", .several) { t in
    try t.as(t.user) {
      try t.dir("dir")
      try t.dir("dir/sub")
      try t.make("dir/sub/file", "text")
    }
    let (ready, closed) = (try Gate(), try Gate())
    let peer = try Actor.start {
      try t.peer.assume()
      _ = try t.text("dir/sub/file")
      ready.pass()
      closed.wait()
      var info = stat()
      try t.fails(EACCES, lstat("dir/sub/file", &info))
      try t.fails(EACCES, clx_open("dir/sub/file", O_RDONLY, 0))
      try t.fails(EACCES, clx_open("dir/sub/new", O_RDONLY, 0))
    }
    ready.wait()
    try t.as(t.user) { try t.ok(chmod("dir", 0o700)) }
    closed.pass()
    try peer.finish()
  }
  check("cache.users.opening-a-directory-lets-in-at-once", .several) { t in
    try t.as(t.user) {
      try t.dir("dir", mode: 0o700)
      try t.make("dir/file", "text")
    }
    try t.as(t.peer) { try t.fails(EACCES, clx_open("dir/file", O_RDONLY, 0)) }
    try t.as(t.user) { try t.ok(chmod("dir", 0o711)) }
    try t.as(t.peer) { try t.equal(try t.text("dir/file"), "text", "content") }
  }
  check("cache.users.chown-of-a-directory-moves-the-way", .several) { t in
    try t.dir("dir", mode: 0o700)
    try t.make("dir/file", "text")
    try t.ok(chown("dir", t.user.uid, t.user.gid))
    try t.as(t.user) { _ = try t.text("dir/file") }
    try t.as(t.peer) { try t.fails(EACCES, clx_open("dir/file", O_RDONLY, 0)) }
    try t.ok(chown("dir", t.peer.uid, t.peer.gid))
    try t.as(t.user) { try t.fails(EACCES, clx_open("dir/file", O_RDONLY, 0)) }
    try t.as(t.peer) { try t.equal(try t.text("dir/file"), "text", "content") }
  }
  check("cache.users.chmod-of-a-file-shuts-it-at-once", .several) { t in
    try t.as(t.user) { try t.make("file", "text") }
    try t.as(t.peer) { _ = try t.text("file") }
    try t.as(t.user) { try t.ok(chmod("file", 0o600)) }
    try t.as(t.peer) { try t.fails(EACCES, clx_open("file", O_RDONLY, 0)) }
    try t.as(t.user) { try t.ok(chmod("file", 0o604)) }
    try t.as(t.peer) { try t.equal(try t.text("file"), "text", "content") }
  }
  check("cache.users.moving-a-file-into-a-private-directory-hides-it", .several) { t in
    try t.as(t.user) {
      try t.dir("private", mode: 0o700)
      try t.make("file", "text")
    }
    try t.as(t.peer) { _ = try t.text("file") }
    try t.as(t.user) { try t.ok(rename("file", "private/file")) }
    try t.as(t.peer) {
      try t.missing("file")
      try t.fails(EACCES, clx_open("private/file", O_RDONLY, 0))
    }
  }
  check("cache.users.working-directory-inside-a-closed-one-still-works", .several) { t in
    // A process that is already there walks from there; only the way in is shut.
    try t.as(t.user) {
      try t.dir("dir")
      try t.dir("dir/sub")
      try t.make("dir/sub/file", "text")
    }
    let (ready, closed) = (try Gate(), try Gate())
    let peer = try Actor.start {
      try t.peer.assume()
      try t.ok(chdir("dir/sub"))
      ready.pass()
      closed.wait()
      try t.equal(try t.text("file"), "text", "content")
      try t.fails(EACCES, clx_open("../sub/file", O_RDONLY, 0))
    }
    ready.wait()
    try t.as(t.user) { try t.ok(chmod("dir", 0o700)) }
    closed.pass()
    try peer.finish()
  }
  check("cache.users.a-changed-group-list-counts", .several) { t in
    try t.as(t.user) {
      try t.make("file", "text")
      try t.ok(chmod("file", 0o640))
    }
    for _ in 0..<3 {
      try t.as(t.peer.joining(t.user.gid)) { try t.equal(try t.text("file"), "text", "content") }
      try t.as(t.peer) { try t.fails(EACCES, clx_open("file", O_RDONLY, 0)) }
    }
  }
}
