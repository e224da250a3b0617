// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

func sticky(_ check: inout Checks) {
  check("sticky.strangers-remove-and-rename-nothing", .several) { t in
    try t.dir("tmp")
    try t.ok(chmod("tmp", 0o1777))
    try t.as(t.user) {
      try t.make("tmp/mine")
      try t.dir("tmp/dir")
    }
    try t.as(t.peer) {
      try t.fails(EPERM, unlink("tmp/mine"))
      try t.fails(EPERM, rmdir("tmp/dir"))
      try t.fails(EPERM, rename("tmp/mine", "tmp/yours"))
      try t.make("tmp/yours")
      try t.fails(EPERM, rename("tmp/yours", "tmp/mine"))
      try t.ok(rename("tmp/yours", "tmp/still-yours"))
      try t.ok(unlink("tmp/still-yours"))
    }
    try t.as(t.user) { try t.ok(unlink("tmp/mine")) }
    try t.ok(rmdir("tmp/dir"))
  }
  check("sticky.the-directorys-owner-removes-all", .several) { t in
    try t.as(t.user) {
      try t.dir("tmp")
      try t.ok(chmod("tmp", 0o1777))
    }
    try t.as(t.peer) { try t.make("tmp/theirs") }
    try t.as(t.user) { try t.ok(unlink("tmp/theirs")) }
  }
  check("sticky.exchange-needs-both", .several) { t in
    try t.dir("tmp")
    try t.ok(chmod("tmp", 0o1777))
    try t.as(t.user) { try t.make("tmp/a") }
    try t.as(t.peer) {
      try t.make("tmp/b")
      try t.fails(EPERM, clx_renameat2(AT_FDCWD, "tmp/b", AT_FDCWD, "tmp/a", UInt32(CLX_RENAME_EXCHANGE)))
      try t.fails(EPERM, clx_renameat2(AT_FDCWD, "tmp/a", AT_FDCWD, "tmp/b", UInt32(CLX_RENAME_EXCHANGE)))
    }
  }
  check("sticky.without-it-write-permission-is-enough", .several) { t in
    try t.dir("dir")
    try t.ok(chmod("dir", 0o777))
    try t.as(t.user) { try t.make("dir/mine", mode: 0o600) }
    try t.as(t.peer) { try t.ok(unlink("dir/mine")) }
  }
  check("sticky.write-to-a-file-inside-is-the-files-business", .several) { t in
    try t.dir("tmp")
    try t.ok(chmod("tmp", 0o1777))
    try t.as(t.user) {
      try t.make("tmp/shared")
      try t.ok(chmod("tmp/shared", 0o666))
    }
    try t.as(t.peer) { try t.put(try t.open("tmp/shared", O_WRONLY), "x") }
  }
}
