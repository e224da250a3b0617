// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

func symlinks(_ check: inout Checks) {
  check("symlink.keeps-its-target-to-the-byte") { t in
    for (index, target) in ["x", "/abs/o/lute", "../up", "with space\nand newline", "ünï", "a//b/./c"]
      .enumerated()
    {
      try t.ok(symlink(target, "link\(index)"))
      try t.equal(try t.target("link\(index)"), Array(target.utf8), "target")
      try t.equal(try t.info("link\(index)").st_size, target.utf8.count, "size")
    }
  }
  check("symlink.long-targets") { t in
    try t.needsFullBlocks()
    let longest = String(repeating: "t", count: 4095)
    try t.ok(symlink(longest, "link"))
    try t.equal(try t.target("link").count, 4095, "length")
    try t.equal(try t.info("link").st_size, 4095, "size")
    try t.fails(ENAMETOOLONG, symlink(longest + "t", "more"))
    let short = String(repeating: "t", count: 60)
    try t.ok(symlink(short, "short"))
    try t.equal(try t.target("short").count, 60, "length")
  }
  check("symlink.readlink-cuts-without-a-word") { t in
    try t.ok(symlink("0123456789", "link"))
    var buffer = [CChar](repeating: 0, count: 16)
    try t.equal(try t.ok(readlink("link", &buffer, 4)), 4, "length")
    try t.fails(EINVAL, readlink("link", &buffer, 0))
  }
  check("symlink.errors") { t in
    try t.make("file")
    try t.fails(ENOENT, symlink("", "link"))
    try t.fails(ENOENT, symlink("x", "missing/link"))
    try t.fails(ENOTDIR, symlink("x", "file/link"))
    try t.fails(EEXIST, symlink("x", "file"))
    try t.fails(ENAMETOOLONG, symlink("x", String(repeating: "n", count: 256)))
  }
  check("symlink.readlink-errors") { t in
    try t.make("file")
    try t.dir("dir")
    var buffer = [CChar](repeating: 0, count: 16)
    try t.fails(EINVAL, readlink("file", &buffer, 16))
    try t.fails(EINVAL, readlink("dir", &buffer, 16))
    try t.fails(ENOENT, readlink("missing", &buffer, 16))
    try t.fails(ENOTDIR, readlink("file/below", &buffer, 16))
  }
  check("symlink.dangling") { t in
    try t.ok(symlink("missing", "link"))
    var info = stat()
    try t.fails(ENOENT, stat("link", &info))
    try t.fails(ENOENT, clx_open("link", O_RDONLY, 0))
    try t.equal(try t.info("link").kind, S_IFLNK, "type")
    try t.make("missing", "here now")
    try t.equal(try t.text("link"), "here now", "content")
  }
  check("symlink.loops-are-ELOOP") { t in
    try t.ok(symlink("a", "b"))
    try t.ok(symlink("b", "a"))
    try t.ok(symlink("self", "self"))
    var info = stat()
    try t.fails(ELOOP, clx_open("a", O_RDONLY, 0))
    try t.fails(ELOOP, stat("self", &info))
    try t.fails(ELOOP, clx_open("self/x", O_RDWR | O_CREAT, 0o644))
    try t.fails(ELOOP, mkdir("a/x", 0o755))
    try t.fails(ELOOP, chmod("a", 0o644))
    try t.fails(ELOOP, truncate("a", 0))
  }
  check("symlink.forty-in-a-row-and-no-more") { t in
    try t.make("l0", "text")
    for index in 1...41 { try t.ok(symlink("l\(index - 1)", "l\(index)")) }
    try t.equal(try t.text("l40"), "text", "content")
    try t.fails(ELOOP, clx_open("l41", O_RDONLY, 0))
  }
  check("symlink.in-the-middle-of-a-path") { t in
    try t.dir("dir")
    try t.dir("dir/sub")
    try t.make("dir/sub/file", "text")
    try t.ok(symlink("dir", "link"))
    try t.ok(symlink("../dir/sub", "dir/again"))
    try t.equal(try t.text("link/again/file"), "text", "content")
    // .. of a followed link is the target's parent.
    try t.equal(try t.info("dir/again/..").st_ino, try t.info("dir").st_ino, "inode")
  }
  check("symlink.is-always-777") { t in
    umask(0o077)
    try t.ok(symlink("x", "link"))
    try t.equal(try t.info("link").bits, 0o777, "mode")
  }
  check("symlink.trailing-slash-follows") { t in
    try t.dir("dir")
    try t.ok(symlink("dir", "link"))
    try t.equal(try t.info("link/").kind, S_IFDIR, "type")
    try t.fails(ENOTDIR, unlink("link/"))
  }
  check("symlink.a-new-link-of-the-same-name-leads-elsewhere") { t in
    try t.make("one", "1")
    try t.make("two", "2")
    try t.ok(symlink("one", "link"))
    try t.equal(try t.text("link"), "1", "content")
    try t.ok(unlink("link"))
    try t.ok(symlink("two", "link"))
    try t.equal(try t.text("link"), "2", "content")
    try t.ok(symlink("one", "fresh"))
    try t.ok(rename("fresh", "link"))
    try t.equal(try t.target("link"), Array("one".utf8), "target after a rename over it")
  }
}

extension Trial {
  /// The target of a symlink, as bytes.
  func target(_ path: String, file: StaticString = #fileID, line: UInt = #line) throws -> [UInt8] {
    var buffer = [CChar](repeating: 0, count: 8192)
    let length = try ok(readlink(path, &buffer, buffer.count), file: file, line: line)
    return buffer.prefix(length).map { UInt8(bitPattern: $0) }
  }
}
