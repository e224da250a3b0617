// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

func accessCalls(_ check: inout Checks) {
  check("access.each-bit-of-the-owner", .user) { t in
    try t.make("file")
    for bits in 0...7 as ClosedRange<mode_t> {
      try t.ok(chmod("file", bits << 6))
      for asked in 0...7 as ClosedRange<Int32> {
        if asked & Int32(bits) == asked {
          try t.ok(access("file", asked))
          try t.ok(faccessat(AT_FDCWD, "file", asked, AT_EACCESS))
        } else {
          try t.fails(EACCES, access("file", asked))
          try t.fails(EACCES, faccessat(AT_FDCWD, "file", asked, AT_EACCESS))
        }
      }
    }
  }
  check("access.errors") { t in
    try t.make("file")
    try t.fails(ENOENT, access("missing", F_OK))
    try t.fails(ENOTDIR, access("file/below", F_OK))
    try t.fails(EINVAL, access("file", 8))
    try t.fails(ENAMETOOLONG, access(String(repeating: "n", count: 256), F_OK))
  }
  check("access.uses-the-real-id-and-eaccess-the-effective-one", .several) { t in
    try t.as(t.user) { try t.make("file", mode: 0o600) }
    try t.inChild {
      // Real id the peer's, effective id root's: what a suid program looks like.
      try t.ok(setreuid(t.peer.uid, 0))
      try t.fails(EACCES, access("file", R_OK))
      try t.ok(faccessat(AT_FDCWD, "file", R_OK, AT_EACCESS))
      try t.ok(clx_open("file", O_RDONLY, 0))
    }
  }
  check("access.follows-symlinks") { t in
    try t.make("file")
    try t.ok(symlink("file", "link"))
    try t.ok(symlink("missing", "dangling"))
    try t.ok(access("link", R_OK))
    try t.fails(ENOENT, access("dangling", F_OK))
    try t.ok(faccessat(AT_FDCWD, "dangling", F_OK, AT_SYMLINK_NOFOLLOW))
  }
  check("access.fsuid-alone-counts-for-files", .several) { t in
    // What NFS and Samba servers do.
    try t.as(t.user) { try t.make("file", "text", mode: 0o600) }
    try t.inChild {
      clx_set_fs_ids(t.peer.uid, t.peer.gid)
      try t.fails(EACCES, clx_open("file", O_RDONLY, 0))
      clx_set_fs_ids(t.user.uid, t.user.gid)
      try t.equal(try t.text("file"), "text", "content")
      try t.make("made")
      try t.equal(try t.info("made").st_uid, t.user.uid, "owner")
    }
  }
}
