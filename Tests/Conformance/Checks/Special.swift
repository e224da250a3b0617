// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

func specialFiles(_ check: inout Checks) {
  check("mknod.types-and-modes") { t in
    let types: [(String, mode_t)] = [("fifo", S_IFIFO), ("socket", S_IFSOCK), ("file", S_IFREG)]
    for (name, type) in types {
      try t.ok(mknod(name, type | 0o640, 0))
      let info = try t.info(name)
      try t.equal(info.kind, type, "type")
      try t.equal(info.bits, 0o640, "mode")
      try t.equal(info.st_nlink, 1, "links")
      try t.equal(info.st_rdev, 0, "device number")
    }
    try t.ok(mknod("plain", 0o600, 0))
    try t.equal(try t.info("plain").kind, S_IFREG, "type without a type bit")
  }
  check("mknod.errors") { t in
    try t.make("file")
    try t.fails(EEXIST, mknod("file", S_IFIFO | 0o644, 0))
    try t.fails(ENOENT, mknod("missing/fifo", S_IFIFO | 0o644, 0))
    try t.fails(ENOTDIR, mknod("file/fifo", S_IFIFO | 0o644, 0))
    try t.fails(ENAMETOOLONG, mknod(String(repeating: "n", count: 256), S_IFIFO | 0o644, 0))
    try t.fails(EPERM, mknod("dir", S_IFDIR | 0o755, 0))
    try t.fails(EINVAL, mknod("link", S_IFLNK | 0o777, 0))
  }
  check("mknod.device-by-a-user-is-EPERM", .user) { t in
    try t.fails(EPERM, mknod("null", S_IFCHR | 0o666, dev_t(clx_makedev(1, 3))))
    try t.fails(EPERM, mknod("block", S_IFBLK | 0o666, dev_t(clx_makedev(7, 0))))
    try t.missing("null")
  }
  check("mknod.device-by-root", .root) { t in
    try t.ok(mknod("null", S_IFCHR | 0o666, dev_t(clx_makedev(1, 3))))
    try t.equal(try t.info("null").st_rdev, dev_t(clx_makedev(1, 3)), "device number")
    for (type, major, minor) in [(S_IFCHR, 5, 70000), (S_IFBLK, 259, 3)] as [(mode_t, UInt32, UInt32)] {
      try t.ok(mknod("node", type | 0o640, dev_t(clx_makedev(major, minor))))
      let info = try t.info("node")
      try t.equal(info.kind, type, "type")
      try t.equal(info.bits, 0o640, "mode")
      try t.equal(info.st_rdev, dev_t(clx_makedev(major, minor)), "device number")
      try t.equal(info.st_size, 0, "size")
      try t.ok(link("node", "second"))
      try t.ok(rename("node", "moved"))
      try t.ok(chown("moved", t.user.uid, t.user.gid))
      try t.ok(chmod("moved", 0o600))
      try t.equal(try t.info("second").st_nlink, 2, "links")
      try t.equal(try t.info("second").bits, 0o600, "mode by the other name")
      try t.as(t.peer) { try t.equal(try t.info("moved").st_uid, t.user.uid, "owner") }
      try t.ok(unlink("second"))
      try t.ok(unlink("moved"))
    }
  }
  check("fifo.carries-bytes-between-processes") { t in
    try t.ok(mkfifo("fifo", 0o644))
    let writer = try Actor.start {
      let fd = try t.open("fifo", O_WRONLY)
      try t.put(fd, "through the pipe")
    }
    let fd = try t.open("fifo", O_RDONLY)
    try t.equal(try t.get(fd, 100), "through the pipe", "bytes")
    try writer.finish()
    try t.equal(try t.get(fd, 100), "", "bytes after the writer closed")
    try t.equal(try t.info("fifo").st_size, 0, "size")
  }
  check("fifo.two-names-are-one-pipe") { t in
    try t.ok(mkfifo("fifo", 0o644))
    try t.ok(link("fifo", "other"))
    let reader = try t.open("fifo", O_RDONLY | O_NONBLOCK)
    let writer = try t.open("other", O_WRONLY | O_NONBLOCK)
    try t.put(writer, "x")
    try t.equal(try t.get(reader, 10), "x", "bytes")
  }
  check("fifo.lseek-is-ESPIPE") { t in
    try t.ok(mkfifo("fifo", 0o644))
    let fd = try t.open("fifo", O_RDWR)
    try t.fails(ESPIPE, lseek(fd, 0, SEEK_SET))
    try t.fails(EINVAL, ftruncate(fd, 0))
    try t.fails(EINVAL, truncate("fifo", 0))
  }
  check("fifo.permissions", .several) { t in
    try t.as(t.user) { try t.ok(mkfifo("fifo", 0o600)) }
    try t.as(t.peer) { try t.fails(EACCES, clx_open("fifo", O_RDONLY | O_NONBLOCK, 0)) }
  }
  check("socket.bind-connect-and-talk") { t in
    let server = try t.ok(socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0))
    try t.ok(clx_unix_bind(server, "socket"))
    try t.equal(try t.info("socket").kind, S_IFSOCK, "type")
    try t.ok(listen(server, 1))
    let client = try t.ok(socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0))
    try t.ok(clx_unix_connect(client, "socket"))
    let accepted = try t.ok(clx_accept4(server, 0))
    try t.put(client, "hello")
    try t.equal(try t.get(accepted, 10), "hello", "bytes")
    try t.ok(rename("socket", "moved"))
    let second = try t.ok(socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0))
    try t.ok(clx_unix_connect(second, "moved"))
    try t.fails(ENOENT, clx_unix_connect(second, "socket"))
  }
  check("socket.bind-to-an-existing-name-is-EADDRINUSE") { t in
    try t.make("file")
    let fd = try t.ok(socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0))
    try t.fails(EADDRINUSE, clx_unix_bind(fd, "file"))
  }
  check("socket.connect-without-a-server-is-ECONNREFUSED") { t in
    let server = try t.ok(socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0))
    try t.ok(clx_unix_bind(server, "socket"))
    try t.ok(close(server))
    let client = try t.ok(socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0))
    try t.fails(ECONNREFUSED, clx_unix_connect(client, "socket"))
    try t.make("file")
    try t.fails(ECONNREFUSED, clx_unix_connect(client, "file"))
  }
  check("socket.connect-needs-write-permission", .several) { t in
    try t.as(t.user) {
      let server = try t.ok(socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0))
      try t.ok(clx_unix_bind(server, "socket"))
      try t.ok(chmod("socket", 0o600))
      try t.ok(listen(server, 1))
      let client = try t.ok(socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0))
      try t.ok(clx_unix_connect(client, "socket"))
    }
    try t.as(t.peer) {
      let client = try t.ok(socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0))
      try t.fails(EACCES, clx_unix_connect(client, "socket"))
    }
  }
}
