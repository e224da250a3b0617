// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

func truncation(_ check: inout Checks) {
  check("truncate.shrinks-and-grows-with-zeros") { t in
    try t.make("file", "0123456789")
    try t.ok(truncate("file", 4))
    try t.equal(try t.text("file"), "0123", "content")
    try t.ok(truncate("file", 8))
    try t.equal(try t.contents("file"), Array("0123".utf8) + [0, 0, 0, 0], "content")
    let fd = try t.open("file", O_RDWR)
    try t.ok(ftruncate(fd, 2))
    try t.ok(ftruncate(fd, 5000))
    let content = try t.contents("file")
    try t.equal(content.count, 5000, "size")
    try t.expect(content[2...].allSatisfy { $0 == 0 }, "zeros after the cut")
  }
  check("truncate.does-not-move-the-offset") { t in
    try t.make("file", "0123456789")
    let fd = try t.open("file", O_RDWR)
    try t.ok(lseek(fd, 8, SEEK_SET))
    try t.ok(ftruncate(fd, 3))
    try t.equal(try t.get(fd, 10), "", "bytes past the end")
    try t.put(fd, "x")
    try t.equal(try t.contents("file"), Array("012".utf8) + [0, 0, 0, 0, 0, 120], "content")
  }
  check("truncate.read-only-descriptor-is-EINVAL") { t in
    try t.make("file", "text")
    try t.fails(EINVAL, ftruncate(try t.open("file", O_RDONLY), 0))
    try t.equal(try t.info("file").st_size, 4, "size")
  }
  check("truncate.of-a-directory-is-EISDIR") { t in
    try t.dir("dir")
    try t.fails(EISDIR, truncate("dir", 0))
    try t.fails(EINVAL, ftruncate(try t.open("dir", O_RDONLY), 0))
  }
  check("truncate.errors") { t in
    try t.make("file")
    try t.fails(ENOENT, truncate("missing", 0))
    try t.fails(ENOTDIR, truncate("file/below", 0))
    try t.fails(EINVAL, truncate("file", -1))
    try t.fails(EINVAL, ftruncate(try t.open("file", O_RDWR), -1))
    try t.fails(EBADF, ftruncate(999, 0))
    try t.fails(ENAMETOOLONG, truncate(String(repeating: "n", count: 256), 0))
  }
  check("truncate.past-every-limit-is-EFBIG") { t in
    try t.make("file", "text")
    try t.fails(oneOf: [EFBIG], truncate("file", off_t.max))
    try t.equal(try t.info("file").st_size, 4, "size")
  }
  check("truncate.without-write-permission-is-EACCES", .user) { t in
    try t.make("file", "text", mode: 0o444)
    try t.fails(EACCES, truncate("file", 0))
    try t.equal(try t.info("file").st_size, 4, "size")
  }
  check("truncate.over-the-file-size-limit-is-EFBIG") { t in
    try t.make("file", "text")
    signal(SIGXFSZ, SIG_IGN)
    var limit = rlimit(rlim_cur: 8192, rlim_max: 8192)
    try t.ok(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit))
    try t.fails(EFBIG, truncate("file", 8193))
    try t.ok(truncate("file", 8192))
  }
  check("truncate.to-a-large-size-costs-nothing") { t in
    let fd = try t.open("file", O_RDWR | O_CREAT)
    try t.ok(ftruncate(fd, 1 << 40))
    try t.equal(try t.info("file").st_size, 1 << 40, "size")
    try t.ok(pwrite(fd, "end", 3, (1 << 40) - 3))
    try t.equal(try t.bytes(fd, 10, at: (1 << 40) - 4), [0] + Array("end".utf8), "bytes at the end")
    try t.expect(try t.info("file").st_blocks < 1000, "few blocks")
  }
  check("truncate.is-seen-by-another-descriptor") { t in
    try t.make("file", "0123456789")
    let (one, two) = (try t.open("file", O_RDWR), try t.open("file", O_RDONLY))
    try t.equal(try t.bytes(two, 10, at: 0).count, 10, "bytes")
    try t.ok(ftruncate(one, 3))
    try t.equal(try t.bytes(two, 10, at: 0).count, 3, "bytes after the cut")
    try t.equal(try t.info(two).st_size, 3, "size")
  }
  check("limit.write-over-the-file-size-limit") { t in
    signal(SIGXFSZ, SIG_IGN)
    var limit = rlimit(rlim_cur: 8192, rlim_max: 8192)
    try t.ok(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit))
    let fd = try t.open("file", O_RDWR | O_CREAT)
    let data = [UInt8](repeating: 1, count: 10000)
    try t.equal(try t.ok(write(fd, data, data.count)), 8192, "bytes written up to the limit")
    try t.fails(EFBIG, write(fd, data, 1))
    try t.fails(EFBIG, pwrite(fd, data, 1, 9000))
    try t.equal(try t.info("file").st_size, 8192, "size")
  }
  check("limit.writing-over-it-raises-SIGXFSZ") { t in
    let writer = try Actor.start {
      var limit = rlimit(rlim_cur: 4096, rlim_max: 4096)
      try t.ok(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit))
      signal(SIGXFSZ, SIG_DFL)
      let fd = try t.open("file", O_RDWR | O_CREAT)
      _ = pwrite(fd, "x", 1, 4096)
    }
    try t.equal(clx_term_signal(writer.reap()), SIGXFSZ, "signal")
  }
}
