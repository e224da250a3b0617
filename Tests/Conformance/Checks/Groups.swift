// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

func groups(_ check: inout Checks) {
  check("group.of-new-objects", .several) { t in
    try t.dir("dir")
    try t.ok(chown("dir", t.user.uid, 777))
    let expected = t.inheritsGroup ? 777 : t.user.gid
    try t.as(t.user) {
      try t.make("dir/file")
      try t.dir("dir/sub")
      try t.ok(symlink("x", "dir/link"))
      try t.ok(mkfifo("dir/fifo", 0o644))
      for name in ["file", "sub", "link", "fifo"] {
        try t.equal(try t.info("dir/\(name)").st_gid, expected, "group of \(name)")
      }
      try t.equal(try t.info("dir/sub").bits, 0o755, "mode of the directory")
    }
  }
  check("group.of-new-objects-in-a-setgid-directory", .several) { t in
    try t.dir("dir")
    try t.ok(chown("dir", t.user.uid, 777))
    try t.ok(chmod("dir", 0o2755))
    try t.as(t.user) {
      try t.make("dir/file")
      try t.dir("dir/sub")
      try t.equal(try t.info("dir/file").st_gid, 777, "group of a file")
      try t.equal(try t.info("dir/sub").st_gid, 777, "group of a directory")
      // Where the group is always inherited the bit means nothing, and ext4's grpid does not hand it on.
      if !t.inheritsGroup { try t.equal(try t.info("dir/sub").bits, 0o2755, "mode of the directory") }
      try t.equal(try t.info("dir/file").bits, 0o644, "mode of the file")
    }
  }
  check("group.of-a-temporary-file", .several) { t in
    try t.dir("dir")
    try t.ok(chown("dir", t.user.uid, 777))
    let expected = t.inheritsGroup ? 777 : t.user.gid
    try t.as(t.user) {
      try t.probe("O_TMPFILE", clx_open("dir", O_RDWR | CLX_O_TMPFILE, 0o600))
      let fd = try t.open("dir", O_RDWR | CLX_O_TMPFILE)
      try t.equal(try t.info(fd).st_gid, expected, "group")
    }
  }
  check("group.sgid-is-stripped-from-a-new-file-of-a-foreign-group", .several) { t in
    try t.dir("dir")
    try t.ok(chown("dir", t.user.uid, 777))
    try t.ok(chmod("dir", 0o2755))
    try t.as(t.user) {
      umask(0)
      try t.make("dir/file", mode: 0o2775)
      try t.equal(try t.info("dir/file").bits, 0o775, "mode")
    }
  }
  check("group.rename-and-link-keep-the-group", .several) { t in
    try t.dir("dir")
    try t.ok(chown("dir", t.user.uid, 777))
    try t.as(t.user) {
      try t.make("file")
      try t.ok(link("file", "dir/link"))
      try t.ok(rename("file", "dir/file"))
      try t.equal(try t.info("dir/file").st_gid, t.user.gid, "group")
    }
  }
}
