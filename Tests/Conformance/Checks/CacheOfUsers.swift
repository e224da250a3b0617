// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

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
    try ready.wait(for: peer)
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
    try ready.wait(for: peer)
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
