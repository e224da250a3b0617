// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

private func time(_ seconds: Int, _ nanoseconds: Int = 0) -> timespec {
  timespec(tv_sec: seconds, tv_nsec: nanoseconds)
}
private let now = timespec(tv_sec: 0, tv_nsec: Int(CLX_UTIME_NOW))
private let omit = timespec(tv_sec: 0, tv_nsec: Int(CLX_UTIME_OMIT))

func times(_ check: inout Checks) {
  check("utimens.sets-both-to-the-nanosecond") { t in
    try t.make("file")
    try t.ok(
      utimensat(AT_FDCWD, "file", [time(1_000_000_000, 123_456_789), time(1_500_000_000, 987_654_321)], 0))
    let info = try t.info("file")
    try t.equal(info.accessed, 1_000_000_000_123_456_789, "access time")
    try t.equal(info.modified, 1_500_000_000_987_654_321, "modification time")
  }
  check("utimens.before-the-epoch") { t in
    try t.make("file")
    try t.ok(utimensat(AT_FDCWD, "file", [time(-1, 999_999_999), time(-86400, 500_000_000)], 0))
    let info = try t.info("file")
    try t.equal(info.st_atim.tv_sec, -1, "seconds of the access time")
    try t.equal(info.st_atim.tv_nsec, 999_999_999, "nanoseconds of the access time")
    try t.equal(info.st_mtim.tv_sec, -86400, "seconds of the modification time")
    try t.equal(info.st_mtim.tv_nsec, 500_000_000, "nanoseconds of the modification time")
  }
  check("utimens.the-epoch-and-after-2038") { t in
    try t.make("file")
    try t.ok(utimensat(AT_FDCWD, "file", [time(0), time(5_000_000_000)], 0))
    let info = try t.info("file")
    try t.equal(info.st_atim.tv_sec, 0, "access time")
    try t.equal(info.st_mtim.tv_sec, 5_000_000_000, "modification time")
  }
  check("utimens.now") { t in
    try t.make("file")
    try t.ok(utimensat(AT_FDCWD, "file", [time(1), time(2)], 0))
    try t.ok(utimensat(AT_FDCWD, "file", [now, now], 0))
    var clock = timespec()
    clock_gettime(CLOCK_REALTIME, &clock)
    let info = try t.info("file")
    try t.expect(abs(info.st_atim.tv_sec - clock.tv_sec) <= 2, "an access time close to now")
    try t.expect(abs(info.st_mtim.tv_sec - clock.tv_sec) <= 2, "a modification time close to now")
    try t.ok(utimensat(AT_FDCWD, "file", [time(1), time(2)], 0))
    try t.ok(utimensat(AT_FDCWD, "file", nil, 0))
    try t.expect(try t.info("file").st_mtim.tv_sec > 1000, "now without times")
  }
  check("utimens.omit-leaves-each-alone") { t in
    try t.make("file")
    try t.ok(utimensat(AT_FDCWD, "file", [time(1000), time(2000)], 0))
    try t.ok(utimensat(AT_FDCWD, "file", [omit, time(3000, 5)], 0))
    try t.equal(try t.info("file").st_atim.tv_sec, 1000, "access time")
    try t.equal(try t.info("file").modified, 3_000_000_000_005, "modification time")
    try t.ok(utimensat(AT_FDCWD, "file", [time(4000), omit], 0))
    try t.equal(try t.info("file").st_atim.tv_sec, 4000, "access time")
    try t.equal(try t.info("file").st_mtim.tv_sec, 3000, "modification time")
    let before = try t.info("file").changed
    usleep(20_000)
    try t.ok(utimensat(AT_FDCWD, "file", [omit, omit], 0))
    try t.equal(try t.info("file").changed, before, "change time")
  }
  check("utimens.now-for-one-only") { t in
    try t.make("file")
    try t.ok(utimensat(AT_FDCWD, "file", [time(1000), time(2000)], 0))
    try t.ok(utimensat(AT_FDCWD, "file", [now, omit], 0))
    try t.expect(try t.info("file").st_atim.tv_sec > 1_000_000, "an access time of now")
    try t.equal(try t.info("file").st_mtim.tv_sec, 2000, "modification time")
  }
  check("utimens.of-a-symlink-itself") { t in
    try t.make("file")
    try t.ok(symlink("file", "link"))
    try t.ok(utimensat(AT_FDCWD, "file", [time(5), time(6)], 0))
    try t.ok(utimensat(AT_FDCWD, "link", [time(1000, 7), time(2000, 8)], AT_SYMLINK_NOFOLLOW))
    try t.equal(try t.info("link").modified, 2_000_000_000_008, "time of the link")
    try t.equal(try t.info("file").st_mtim.tv_sec, 6, "time of the file")
    try t.ok(utimensat(AT_FDCWD, "link", [time(9), time(10)], 0))
    try t.equal(try t.info("file").st_mtim.tv_sec, 10, "time of the file through the link")
  }
  check("utimens.of-directories-and-fifos") { t in
    try t.dir("dir")
    try t.ok(mkfifo("fifo", 0o644))
    for name in ["dir", "fifo"] {
      try t.ok(utimensat(AT_FDCWD, name, [time(1000), time(2000, 3)], 0))
      try t.equal(try t.info(name).modified, 2_000_000_000_003, "modification time")
    }
  }
  check("utimens.by-descriptor") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDONLY)
    try t.ok(futimens(fd, [time(1), time(2, 3)]))
    try t.equal(try t.info(fd).modified, 2_000_000_003, "modification time")
  }
  check("utimens.errors") { t in
    try t.make("file")
    try t.fails(ENOENT, utimensat(AT_FDCWD, "missing", nil, 0))
    try t.fails(ENOTDIR, utimensat(AT_FDCWD, "file/below", nil, 0))
    try t.fails(EINVAL, utimensat(AT_FDCWD, "file", [time(0, 1_000_000_000), time(0)], 0))
    try t.fails(EINVAL, utimensat(AT_FDCWD, "file", [time(0), time(0, -1)], 0))
    try t.fails(EINVAL, utimensat(AT_FDCWD, "file", nil, 0x8000))
    try t.fails(EBADF, futimens(999, nil))
  }
  check("utimens.by-the-owner-of-a-read-only-file", .user) { t in
    try t.make("file", mode: 0o444)
    try t.ok(utimensat(AT_FDCWD, "file", [time(1), time(2)], 0))
    try t.ok(utimensat(AT_FDCWD, "file", nil, 0))
  }
  check("utimens.by-a-writer-only-to-now", .several) { t in
    try t.as(t.user) {
      try t.make("file")
      try t.ok(chmod("file", 0o666))
    }
    try t.as(t.peer) {
      try t.ok(utimensat(AT_FDCWD, "file", nil, 0))
      try t.ok(utimensat(AT_FDCWD, "file", [now, now], 0))
      try t.fails(EPERM, utimensat(AT_FDCWD, "file", [time(1), time(2)], 0))
      try t.fails(EPERM, utimensat(AT_FDCWD, "file", [now, omit], 0))
      try t.ok(utimensat(AT_FDCWD, "file", [omit, omit], 0))
    }
  }
  check("utimens.by-a-stranger", .several) { t in
    try t.as(t.user) { try t.make("file") }
    try t.as(t.peer) {
      try t.fails(EACCES, utimensat(AT_FDCWD, "file", nil, 0))
      try t.fails(EACCES, utimensat(AT_FDCWD, "file", [now, now], 0))
      try t.fails(EPERM, utimensat(AT_FDCWD, "file", [time(1), time(2)], 0))
    }
    try t.ok(utimensat(AT_FDCWD, "file", [time(1), time(2)], 0))
    try t.equal(try t.info("file").st_mtim.tv_sec, 2, "time set by root")
  }
  check("utimens.touches-the-change-time") { t in
    try t.make("file")
    let before = try t.info("file").changed
    usleep(20_000)
    try t.ok(utimensat(AT_FDCWD, "file", [time(1), time(2)], 0))
    try t.expect(try t.info("file").changed > before, "a newer change time")
  }
  check("times.writing-moves-mtime-and-ctime") { t in
    try t.make("file", "text")
    try t.ok(utimensat(AT_FDCWD, "file", [time(1), time(2)], 0))
    let before = try t.info("file").changed
    usleep(20_000)
    let fd = try t.open("file", O_WRONLY)
    try t.equal(try t.info("file").st_mtim.tv_sec, 2, "modification time after open")
    try t.put(fd, "x")
    let after = try t.info("file")
    try t.expect(after.st_mtim.tv_sec > 1000, "a modification time of now")
    try t.expect(after.changed > before, "a newer change time")
  }
  check("times.set-after-writing-survive-the-close") { t in
    // A cache that flushes late must not bring its own time along.
    let fd = try t.open("file", O_RDWR | O_CREAT)
    try t.put(fd, "text")
    try t.ok(futimens(fd, [time(1000), time(2000)]))
    try t.ok(close(fd))
    try t.equal(try t.info("file").st_mtim.tv_sec, 2000, "modification time")
    usleep(50_000)
    try t.equal(try t.info("file").st_mtim.tv_sec, 2000, "modification time a little later")
  }
  check("times.truncate-to-the-same-size-moves-mtime") { t in
    try t.make("file", "text")
    try t.ok(utimensat(AT_FDCWD, "file", [time(1), time(2)], 0))
    try t.ok(truncate("file", 4))
    try t.expect(try t.info("file").st_mtim.tv_sec > 1000, "a modification time of now")
  }
  check("times.reading-nothing-and-writing-nothing") { t in
    try t.make("file", "text")
    try t.ok(utimensat(AT_FDCWD, "file", [now, time(2)], 0))
    let fd = try t.open("file", O_RDWR)
    try t.equal(try t.ok(write(fd, "", 0)), 0, "bytes")
    try t.equal(try t.info("file").st_mtim.tv_sec, 2, "modification time")
  }
}
