// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

func stats(_ check: inout Checks) {
  check("stat.path-descriptor-and-at-agree") { t in
    try t.make("file", "text")
    let fd = try t.open("file", O_RDONLY)
    var (path, at, empty) = (stat(), stat(), stat())
    try t.ok(stat("file", &path))
    try t.ok(fstatat(AT_FDCWD, "file", &at, 0))
    try t.ok(fstatat(fd, "", &empty, CLX_AT_EMPTY_PATH))
    let byFd = try t.info(fd)
    for info in [path, at, empty] {
      try t.equal(info.st_ino, byFd.st_ino, "inode")
      try t.equal(info.st_dev, byFd.st_dev, "device")
      try t.equal(info.st_size, 4, "size")
      try t.equal(info.changed, byFd.changed, "change time")
    }
  }
  check("stat.errors") { t in
    try t.make("file")
    var info = stat()
    try t.fails(ENOENT, stat("missing", &info))
    try t.fails(ENOENT, stat("", &info))
    try t.fails(ENOTDIR, stat("file/below", &info))
    try t.fails(ENOTDIR, stat("file/", &info))
    try t.fails(ENAMETOOLONG, stat(String(repeating: "n", count: 256), &info))
    try t.fails(EBADF, fstat(999, &info))
    try t.fails(EINVAL, fstatat(AT_FDCWD, "file", &info, 0x8000_000))
  }
  check("stat.all-objects-are-on-one-device") { t in
    try t.make("file")
    try t.dir("dir")
    try t.ok(symlink("x", "link"))
    let device = try t.info(".").st_dev
    for name in ["file", "dir", "link"] { try t.equal(try t.info(name).st_dev, device, "device") }
  }
  check("stat.inodes-are-distinct-and-stable") { t in
    var seen: Set<UInt> = []
    for index in 0..<200 { try t.make("f\(index)") }
    for index in 0..<200 { seen.insert(try t.info("f\(index)").st_ino) }
    try t.equal(seen.count, 200, "distinct inodes")
    for index in 0..<200 { try t.expect(seen.contains(try t.info("f\(index)").st_ino), "a stable inode") }
  }
  check("stat.search-permission-is-needed-on-the-way", .user) { t in
    try t.dir("dir")
    try t.make("dir/file")
    try t.ok(chmod("dir", 0o600))
    var info = stat()
    try t.fails(EACCES, stat("dir/file", &info))
    try t.fails(EACCES, stat("dir/missing", &info))
    try t.equal(try t.info("dir").bits, 0o600, "mode")
  }
  check("stat.needs-no-permission-on-the-object", .user) { t in
    try t.make("file", "text", mode: 0)
    try t.equal(try t.info("file").st_size, 4, "size")
  }
  check("stat.size-follows-writing-by-another-descriptor") { t in
    try t.make("file")
    let (one, two) = (try t.open("file", O_WRONLY), try t.open("file", O_WRONLY))
    for size in 1...50 {
      try t.ok(pwrite(size.isMultiple(of: 2) ? one : two, "x", 1, off_t(size - 1)))
      try t.equal(try t.info("file").st_size, off_t(size), "size")
    }
  }
  check("stat.blocks-of-a-hole") { t in
    let fd = try t.open("file", O_RDWR | O_CREAT)
    try t.ok(ftruncate(fd, 10 << 20))
    try t.equal(try t.info(fd).st_size, 10 << 20, "size")
    try t.expect(try t.info(fd).st_blocks < 64, "next to no blocks")
    let data = [UInt8](repeating: 1, count: 65536)
    try t.ok(pwrite(fd, data, data.count, 5 << 20))
    try t.ok(fsync(fd))
    let blocks = try t.info(fd).st_blocks
    try t.expect(blocks >= 128 && blocks < 512, "about 128 blocks, saw \(blocks)")
  }
  check("stat.blksize-is-a-power-of-two") { t in
    try t.make("file")
    let size = Int(try t.info("file").st_blksize)
    try t.expect(size >= 512 && size & (size - 1) == 0, "a sound block size, saw \(size)")
  }
  check("stat.nlink-of-directories-counts-subdirectories") { t in
    try t.dir("dir")
    for index in 0..<5 { try t.dir("dir/\(index)") }
    try t.make("dir/file")
    try t.equal(try t.info("dir").st_nlink, 7, "links")
    try t.ok(rmdir("dir/3"))
    try t.equal(try t.info("dir").st_nlink, 6, "links")
  }
  check("statx.agrees-with-stat") { t in
    try t.make("file", "text", mode: 0o640)
    let (old, new) = (try t.info("file"), try t.statx("file"))
    try t.equal(new.stx_ino, UInt64(old.st_ino), "inode")
    try t.equal(mode_t(new.stx_mode), old.st_mode, "mode")
    try t.equal(new.stx_nlink, 1, "links")
    try t.equal(new.stx_uid, old.st_uid, "owner")
    try t.equal(new.stx_gid, old.st_gid, "group")
    try t.equal(new.stx_size, 4, "size")
    try t.equal(new.stx_mtime.tv_sec, Int64(old.st_mtim.tv_sec), "seconds")
    try t.equal(Int(new.stx_mtime.tv_nsec), old.st_mtim.tv_nsec, "nanoseconds")
    try t.equal(clx_makedev(new.stx_dev_major, new.stx_dev_minor), UInt64(old.st_dev), "device")
  }
  check("statx.creation-time-is-there-and-does-not-move") { t in
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    try t.make("file")
    let first = try t.statx("file")
    guard first.stx_mask & CLX_STATX_BTIME != 0 else { throw t.lacking("no creation times here") }
    try t.expect(abs(Int(first.stx_btime.tv_sec) - now.tv_sec) <= 2, "a time close to now")
    usleep(20_000)
    try t.ok(chmod("file", 0o600))
    let fd = try t.open("file", O_RDWR)
    try t.put(fd, "text")
    try t.ok(rename("file", "moved"))
    let second = try t.statx("moved")
    try t.equal(second.stx_btime.tv_sec, first.stx_btime.tv_sec, "seconds")
    try t.equal(second.stx_btime.tv_nsec, first.stx_btime.tv_nsec, "nanoseconds")
  }
  check("statx.errors") { t in
    var info = clx_statx()
    try t.fails(ENOENT, clx_statx(AT_FDCWD, "missing", 0, CLX_STATX_BASIC_STATS, &info))
    try t.fails(EINVAL, clx_statx(AT_FDCWD, ".", 0, 0x8000_0000, &info))
    try t.fails(EINVAL, clx_statx(AT_FDCWD, ".", 0x6000, CLX_STATX_BASIC_STATS, &info))
  }
  check("statx.sync-flags-are-taken") { t in
    try t.make("file", "text")
    var info = clx_statx()
    for flag in [0x2000, 0x4000] as [Int32] {
      try t.ok(clx_statx(AT_FDCWD, "file", flag, CLX_STATX_BASIC_STATS, &info))
      try t.equal(info.stx_size, 4, "size")
    }
  }
  check("statfs.is-sane") { t in
    var info = statvfs()
    try t.ok(statvfs(".", &info))
    try t.equal(info.f_namemax, 255, "longest name")
    try t.expect(info.f_bsize >= 512 && info.f_frsize >= 512, "sound block sizes")
    try t.expect(info.f_blocks >= info.f_bfree && info.f_bfree >= info.f_bavail, "sound block counts")
    try t.expect(info.f_blocks > 0, "blocks")
  }
  check("statfs.by-descriptor-agrees") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDONLY)
    var (path, byFd) = (statvfs(), statvfs())
    try t.ok(statvfs("file", &path))
    try t.ok(fstatvfs(fd, &byFd))
    try t.equal(byFd.f_blocks, path.f_blocks, "blocks")
    try t.equal(byFd.f_bsize, path.f_bsize, "block size")
    try t.equal(byFd.f_namemax, path.f_namemax, "longest name")
    try t.equal(byFd.f_fsid, path.f_fsid, "id")
  }
  check("statfs.errors") { t in
    var info = statvfs()
    try t.fails(ENOENT, statvfs("missing", &info))
    try t.fails(EBADF, fstatvfs(999, &info))
  }
  check("pathconf.limits") { t in
    try t.equal(pathconf(".", Int32(_PC_NAME_MAX)), 255, "NAME_MAX")
    try t.equal(pathconf(".", Int32(_PC_PATH_MAX)), 4096, "PATH_MAX")
  }
}
