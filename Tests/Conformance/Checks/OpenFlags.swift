// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

func openFlags(_ check: inout Checks) {
  check("open.read-only-descriptor-does-not-write") { t in
    try t.make("file", "text")
    let fd = try t.open("file", O_RDONLY)
    try t.fails(EBADF, write(fd, "x", 1))
    try t.fails(EBADF, pwrite(fd, "x", 1, 0))
  }
  check("open.write-only-descriptor-does-not-read") { t in
    try t.make("file", "text")
    let fd = try t.open("file", O_WRONLY)
    var byte: UInt8 = 0
    try t.fails(EBADF, read(fd, &byte, 1))
    try t.fails(EBADF, pread(fd, &byte, 1, 0))
  }
  check("open.access-mode-3-gives-neither-reading-nor-writing") { t in
    // Linux takes mode 3 to mean "for ioctl only", and asks for both read and write permission.
    try t.make("file", "text")
    let fd = try t.open("file", 3)
    var byte: UInt8 = 0
    try t.fails(EBADF, read(fd, &byte, 1))
    try t.fails(EBADF, write(fd, "x", 1))
    try t.equal(try t.info(fd).st_size, 4, "size")
  }
  check("open.access-mode-3-needs-both-permissions", .user) { t in
    try t.make("readable", mode: 0o400)
    try t.make("writable", mode: 0o200)
    try t.fails(EACCES, clx_open("readable", 3, 0))
    try t.fails(EACCES, clx_open("writable", 3, 0))
  }
  check("open.getfl-tells-mode-and-append") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDWR | O_APPEND)
    let flags = try t.ok(clx_fcntl(fd, F_GETFL, 0))
    try t.equal(flags & O_ACCMODE, O_RDWR, "access mode")
    try t.expect(flags & O_APPEND != 0, "O_APPEND")
  }
  check("open.append-can-be-switched-by-fcntl") { t in
    try t.make("file", "abc")
    let fd = try t.open("file", O_WRONLY)
    try t.ok(clx_fcntl(fd, F_SETFL, Int(O_APPEND)))
    try t.put(fd, "d")
    try t.equal(try t.text("file"), "abcd", "content")
    try t.ok(clx_fcntl(fd, F_SETFL, 0))
    try t.ok(lseek(fd, 0, SEEK_SET))
    try t.put(fd, "A")
    try t.equal(try t.text("file"), "Abcd", "content")
  }
  check("open.append-writes-at-the-end-whatever-the-offset") { t in
    try t.make("file", "abc")
    let fd = try t.open("file", O_RDWR | O_APPEND)
    try t.ok(lseek(fd, 0, SEEK_SET))
    try t.put(fd, "def")
    try t.equal(try t.ok(lseek(fd, 0, SEEK_CUR)), 6, "offset")
    try t.equal(try t.text("file"), "abcdef", "content")
  }
  check("open.path-descriptor-stats-but-does-no-io") { t in
    try t.make("file", "text")
    let fd = try t.open("file", CLX_O_PATH)
    var byte: UInt8 = 0
    try t.fails(EBADF, read(fd, &byte, 1))
    try t.fails(EBADF, fchmod(fd, 0o600))
    try t.fails(EBADF, ftruncate(fd, 0))
    try t.fails(EBADF, fsetxattr(fd, "user.x", "1", 1, 0))
    try t.equal(try t.info(fd).st_size, 4, "size")
  }
  check("open.path-descriptor-of-a-symlink") { t in
    try t.ok(symlink("missing", "link"))
    let fd = try t.open("link", CLX_O_PATH | O_NOFOLLOW)
    try t.equal(try t.info(fd).kind, S_IFLNK, "type")
    var buffer = [CChar](repeating: 0, count: 100)
    try t.equal(try t.ok(readlinkat(fd, "", &buffer, 100)), 7, "length of the target")
  }
  check("open.path-descriptor-needs-no-read-permission", .user) { t in
    try t.make("file", mode: 0)
    let fd = try t.open("file", CLX_O_PATH)
    try t.fails(EACCES, clx_open("/proc/self/fd/\(fd)", O_RDONLY, 0))
  }
  check("open.path-descriptor-anchors-openat") { t in
    try t.dir("dir")
    try t.make("dir/file", "text")
    let dir = try t.open("dir", CLX_O_PATH | O_DIRECTORY)
    try t.ok(rename("dir", "moved"))
    let fd = try t.ok(clx_openat(dir, "file", O_RDONLY, 0))
    try t.equal(try t.get(fd, 10), "text", "content")
    var buffer = [UInt8](repeating: 0, count: 4096)
    try t.fails(EBADF, clx_getdents64(dir, &buffer, 4096))
  }
  check("open.sync-flags-write-as-usual") { t in
    for (name, flag) in [("sync", O_SYNC), ("dsync", O_DSYNC)] {
      let fd = try t.open(name, O_RDWR | O_CREAT | flag)
      try t.put(fd, "text")
      try t.equal(try t.text(name), "text", "content")
      let flags = try t.ok(clx_fcntl(fd, F_GETFL, 0))
      try t.equal(flags & flag, flag, "flags")
    }
  }
  check("open.direct-reads-what-was-written-direct") { t in
    let fd = clx_open("file", O_RDWR | O_CREAT | CLX_O_DIRECT, 0o644)
    if fd == -1 && errno == EINVAL { throw t.lacking("O_DIRECT is not supported here") }
    try t.ok(fd)
    let block = UnsafeMutableRawBufferPointer.allocate(byteCount: 8192, alignment: 4096)
    _ = block.initializeMemory(as: UInt8.self, repeating: 7)
    try t.equal(try t.ok(pwrite(fd, block.baseAddress, 8192, 4096)), 8192, "bytes written")
    _ = block.initializeMemory(as: UInt8.self, repeating: 0)
    try t.equal(try t.ok(pread(fd, block.baseAddress, 8192, 4096)), 8192, "bytes read")
    try t.expect(block.allSatisfy { $0 == 7 }, "the bytes written")
    let content = try t.contents("file")
    try t.equal(content.count, 12288, "size")
    try t.expect(content[4096...].allSatisfy { $0 == 7 }, "the same bytes through the cache")
  }
  check("open.noatime-by-the-owner-keeps-the-access-time", .user) { t in
    try t.make("file", "text")
    try t.ok(
      utimensat(
        AT_FDCWD, "file", [timespec(tv_sec: 1000, tv_nsec: 0), timespec(tv_sec: 2000, tv_nsec: 0)], 0))
    let fd = try t.open("file", O_RDONLY | CLX_O_NOATIME)
    _ = try t.get(fd, 4)
    try t.equal(try t.info("file").st_atim.tv_sec, 1000, "access time")
  }
  check("open.noatime-by-a-stranger-is-EPERM", .several) { t in
    try t.make("file", "text")
    try t.as(t.peer) {
      try t.fails(EPERM, clx_open("file", O_RDONLY | CLX_O_NOATIME, 0))
      try t.ok(clx_open("file", O_RDONLY, 0))
    }
  }
  check("open.unknown-flags-are-ignored") { t in
    try t.make("file", "text")
    try t.ok(clx_open("file", O_RDONLY | O_NONBLOCK | O_NOCTTY | 0o40000000, 0))
  }
  check("open.openat2-resolve-rules") { t in
    try t.dir("dir")
    try t.make("dir/file")
    try t.ok(symlink("file", "dir/link"))
    let dir = try t.open("dir", O_RDONLY | O_DIRECTORY)
    try t.ok(clx_openat2(dir, "file", 0, 0, UInt64(CLX_RESOLVE_BENEATH | CLX_RESOLVE_NO_SYMLINKS)))
    try t.fails(ELOOP, clx_openat2(dir, "link", 0, 0, UInt64(CLX_RESOLVE_NO_SYMLINKS)))
    try t.fails(EXDEV, clx_openat2(dir, "../dir/file", 0, 0, UInt64(CLX_RESOLVE_BENEATH)))
    try t.ok(clx_openat2(dir, "link", 0, 0, UInt64(CLX_RESOLVE_BENEATH)))
  }
  check("open.bad-directory-descriptor") { t in
    try t.make("file")
    let file = try t.open("file", O_RDONLY)
    try t.fails(EBADF, clx_openat(999, "file", O_RDONLY, 0))
    try t.fails(ENOTDIR, clx_openat(file, "below", O_RDONLY, 0))
  }
}
