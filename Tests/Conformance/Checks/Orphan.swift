// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

extension Trial {
  /// A file without a name.
  fileprivate func orphan(_ text: String = "text", _ flags: Int32 = O_RDWR) throws -> Int32 {
    try make("file", text)
    let fd = try open("file", flags)
    try ok(unlink("file"))
    try missing("file")
    return fd
  }
}

func orphans(_ check: inout Checks) {
  check("orphan.fstat-shows-no-links") { t in
    let fd = try t.orphan()
    let info = try t.info(fd)
    try t.equal(info.st_nlink, 0, "links")
    try t.equal(info.st_size, 4, "size")
    try t.equal(info.kind, S_IFREG, "type")
    try t.equal(try t.names("."), [], "names")
  }
  check("orphan.read-and-write") { t in
    let fd = try t.orphan()
    try t.equal(try t.get(fd, 10), "text", "content")
    try t.put(fd, " and more")
    try t.equal(try t.bytes(fd, 20, at: 0), Array("text and more".utf8), "content")
    try t.equal(try t.info(fd).st_size, 13, "size")
    try t.ok(fsync(fd))
  }
  check("orphan.ftruncate") { t in
    let fd = try t.orphan()
    try t.ok(ftruncate(fd, 2))
    try t.equal(try t.info(fd).st_size, 2, "size")
    try t.ok(ftruncate(fd, 1000))
    try t.equal(try t.info(fd).st_size, 1000, "size")
  }
  check("orphan.fchmod") { t in
    let fd = try t.orphan()
    try t.ok(fchmod(fd, 0o600))
    try t.equal(try t.info(fd).bits, 0o600, "mode")
  }
  check("orphan.fchown", .root) { t in
    let fd = try t.orphan()
    try t.ok(fchown(fd, 12, 13))
    try t.equal(try t.info(fd).st_uid, 12, "owner")
    try t.equal(try t.info(fd).st_gid, 13, "group")
  }
  check("orphan.fchown-to-oneself", .user) { t in
    let fd = try t.orphan()
    try t.ok(fchown(fd, geteuid(), getegid()))
  }
  check("orphan.futimens") { t in
    let fd = try t.orphan()
    try t.ok(futimens(fd, [timespec(tv_sec: 1, tv_nsec: 0), timespec(tv_sec: 2, tv_nsec: 3)]))
    try t.equal(try t.info(fd).modified, 2_000_000_003, "modification time")
  }
  check("orphan.fallocate-and-seek") { t in
    let fd = try t.orphan()
    try t.probe("fallocate", clx_fallocate(fd, 0, 0, 8192))
    try t.equal(try t.info(fd).st_size, 8192, "size")
    try t.equal(try t.ok(lseek(fd, 0, CLX_SEEK_DATA)), 0, "data")
  }
  check("orphan.mmap") { t in
    let fd = try t.orphan()
    guard let map = mmap(nil, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), map != MAP_FAILED
    else { throw Failure(text: "expected a mapping, saw \(errnoName(errno))") }
    map.storeBytes(of: UInt8(ascii: "T"), as: UInt8.self)
    try t.equal(try t.get(fd, 4), "Text", "content")
  }
  check("orphan.xattrs") { t in
    let fd = try t.orphan()
    try t.probe("user xattrs", fsetxattr(fd, "user.x", "value", 5, 0))
    var buffer = [UInt8](repeating: 0, count: 10)
    try t.equal(try t.ok(fgetxattr(fd, "user.x", &buffer, 10)), 5, "size")
    try t.equal(try t.ok(flistxattr(fd, nil, 0)) >= 7, true, "a name in the list:")
    try t.ok(fremovexattr(fd, "user.x"))
    try t.fails(ENODATA, fgetxattr(fd, "user.x", &buffer, 10))
  }
  check("orphan.locks") { t in
    let fd = try t.orphan()
    try t.ok(flock(fd, LOCK_EX | LOCK_NB))
    var lock = Glibc.flock()
    lock.l_type = Int16(F_WRLCK)
    try t.ok(clx_fcntl_lock(fd, F_SETLK, &lock))
  }
  check("orphan.link-is-ENOENT") { t in
    let fd = try t.orphan()
    let path = "/proc/self/fd/\(fd)"
    try t.fails(ENOENT, linkat(AT_FDCWD, path, AT_FDCWD, "again", AT_SYMLINK_FOLLOW))
    try t.missing("again")
  }
  check("orphan.open-through-proc") { t in
    let fd = try t.orphan()
    let again = try t.open("/proc/self/fd/\(fd)", O_RDWR)
    try t.equal(try t.info(again).st_ino, try t.info(fd).st_ino, "inode")
    try t.put(again, "TEXT")
    try t.equal(try t.get(fd, 4), "TEXT", "content")
    try t.ok(clx_open("/proc/self/fd/\(fd)", O_WRONLY | O_TRUNC, 0))
    try t.equal(try t.info(fd).st_size, 0, "size")
  }
  check("orphan.by-path-calls-through-proc") { t in
    let fd = try t.orphan()
    let path = "/proc/self/fd/\(fd)"
    try t.ok(chmod(path, 0o640))
    try t.ok(truncate(path, 1))
    try t.ok(utimensat(AT_FDCWD, path, nil, 0))
    var info = stat()
    try t.ok(stat(path, &info))
    try t.equal(info.bits, 0o640, "mode")
    try t.equal(info.st_size, 1, "size")
    try t.equal(info.st_nlink, 0, "links")
  }
  check("orphan.copy-range-both-ways") { t in
    let fd = try t.orphan()
    let copy = try t.open("copy", O_RDWR | O_CREAT)
    var offset = 0 as off_t
    try t.equal(try t.ok(clx_copy_file_range(fd, &offset, copy, nil, 4, 0)), 4, "bytes")
    try t.equal(try t.text("copy"), "text", "content")
    offset = 0
    try t.equal(try t.ok(clx_copy_file_range(copy, &offset, fd, nil, 4, 0)), 4, "bytes")
  }
  check("orphan.two-descriptors-share-it") { t in
    try t.make("file", "text")
    let (one, two) = (try t.open("file", O_RDWR), try t.open("file", O_RDONLY))
    try t.ok(unlink("file"))
    try t.put(one, "TEXT")
    try t.ok(close(one))
    try t.equal(try t.get(two, 4), "TEXT", "content")
  }
  check("orphan.with-another-name-lives-on") { t in
    try t.make("file", "text")
    try t.ok(link("file", "other"))
    let fd = try t.open("file", O_RDWR)
    try t.ok(unlink("file"))
    try t.equal(try t.info(fd).st_nlink, 1, "links")
    try t.put(fd, "TEXT")
    try t.equal(try t.text("other"), "TEXT", "content")
  }
  check("orphan.replaced-by-rename") { t in
    try t.make("file", "old")
    let fd = try t.open("file", O_RDWR)
    for round in 0..<20 {
      try t.make("next", "new \(round)")
      try t.ok(rename("next", "file"))
    }
    try t.equal(try t.get(fd, 10), "old", "content")
    try t.equal(try t.info(fd).st_nlink, 0, "links")
    try t.equal(try t.text("file"), "new 19", "content of the name")
  }
  check("orphan.removed-in-a-removed-directory") { t in
    try t.dir("dir")
    try t.make("dir/file", "text")
    let fd = try t.open("dir/file", O_RDWR)
    try t.ok(unlink("dir/file"))
    try t.ok(rmdir("dir"))
    try t.equal(try t.get(fd, 10), "text", "content")
    try t.put(fd, "s")
    try t.equal(try t.info(fd).st_size, 5, "size")
  }
  check("orphan.leaves-no-hidden-file") { t in
    try t.dir("dir")
    try t.make("dir/file", "text")
    let fd = try t.open("dir/file", O_RDWR)
    try t.ok(unlink("dir/file"))
    try t.equal(try t.entries("dir").map(\.text).sorted(), [".", ".."], "entries")
    try t.ok(rmdir("dir"))
    try t.put(fd, "x")
  }
}
