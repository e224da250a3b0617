// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

private let keepSize = Int32(CLX_FALLOC_KEEP_SIZE)
private let punch = Int32(CLX_FALLOC_PUNCH_HOLE | CLX_FALLOC_KEEP_SIZE)

extension Trial {
  /// A file of `pages` pages of pattern, opened, once `fallocate(2)` with this mode is known to work here.
  fileprivate func pages(_ pages: Int, for mode: Int32) throws -> (fd: Int32, data: [UInt8]) {
    let fd = try open("file", O_RDWR | O_CREAT)
    let data = pattern(pages * 4096)
    try ok(write(fd, data, data.count))
    let scratch = try open("scratch", O_RDWR | O_CREAT)
    try ok(ftruncate(scratch, 65536))
    try probe("this mode of fallocate", clx_fallocate(scratch, mode, 0, 4096))
    return (fd, data)
  }
}

func allocation(_ check: inout Checks) {
  check("fallocate.grows-with-zeros-and-takes-blocks") { t in
    let (fd, _) = try t.pages(1, for: 0)
    try t.ok(clx_fallocate(fd, 0, 4096, 1 << 20))
    let info = try t.info(fd)
    try t.equal(info.st_size, 4096 + 1 << 20, "size")
    try t.expect(info.st_blocks * 512 >= 1 << 20, "the blocks of a megabyte")
    try t.equal(try t.bytes(fd, 4096, at: 500_000), [UInt8](repeating: 0, count: 4096), "bytes")
  }
  check("fallocate.leaves-data-alone") { t in
    let (fd, data) = try t.pages(3, for: 0)
    try t.ok(clx_fallocate(fd, 0, 0, 12288))
    try t.expect(try t.contents("file") == data, "the same bytes")
  }
  check("fallocate.keep-size") { t in
    let (fd, data) = try t.pages(1, for: keepSize)
    try t.ok(clx_fallocate(fd, keepSize, 0, 1 << 20))
    try t.equal(try t.info(fd).st_size, 4096, "size")
    try t.expect(try t.info(fd).st_blocks * 512 >= 1 << 20, "the blocks of a megabyte")
    try t.expect(try t.contents("file") == data, "the same bytes")
  }
  check("fallocate.punch-hole") { t in
    var (fd, data) = try t.pages(8, for: punch)
    try t.ok(fsync(fd))
    let before = try t.info(fd).st_blocks
    try t.ok(clx_fallocate(fd, punch, 4096, 16384))
    data.replaceSubrange(4096..<20480, with: [UInt8](repeating: 0, count: 16384))
    try t.expect(try t.contents("file") == data, "zeros in the hole alone")
    try t.equal(try t.info(fd).st_size, 32768, "size")
    try t.expect(try t.info(fd).st_blocks < before, "fewer blocks")
  }
  check("fallocate.punch-hole-off-the-page-borders") { t in
    var (fd, data) = try t.pages(4, for: punch)
    try t.ok(clx_fallocate(fd, punch, 100, 9000))
    data.replaceSubrange(100..<9100, with: [UInt8](repeating: 0, count: 9000))
    try t.expect(try t.contents("file") == data, "zeros in the hole alone")
  }
  check("fallocate.zero-range") { t in
    let mode = Int32(CLX_FALLOC_ZERO_RANGE)
    var (fd, data) = try t.pages(4, for: mode)
    try t.ok(clx_fallocate(fd, mode, 50, 5000))
    data.replaceSubrange(50..<5050, with: [UInt8](repeating: 0, count: 5000))
    try t.expect(try t.contents("file") == data, "zeros in the range alone")
    try t.ok(clx_fallocate(fd, mode, 16384, 4096))
    try t.equal(try t.info(fd).st_size, 20480, "size")
    try t.ok(clx_fallocate(fd, mode | keepSize, 20480, 4096))
    try t.equal(try t.info(fd).st_size, 20480, "size kept")
  }
  check("fallocate.collapse-range") { t in
    let mode = Int32(CLX_FALLOC_COLLAPSE_RANGE)
    let (fd, data) = try t.pages(4, for: mode)
    try t.ok(clx_fallocate(fd, mode, 4096, 4096))
    try t.expect(try t.contents("file") == Array(data[..<4096] + data[8192...]), "the rest moved up")
    try t.fails(EINVAL, clx_fallocate(fd, mode, 100, 4096))
    try t.fails(EINVAL, clx_fallocate(fd, mode, 8192, 4096))
  }
  check("fallocate.insert-range") { t in
    let mode = Int32(CLX_FALLOC_INSERT_RANGE)
    let (fd, data) = try t.pages(2, for: mode)
    try t.ok(clx_fallocate(fd, mode, 4096, 8192))
    let zeros = [UInt8](repeating: 0, count: 8192)
    try t.expect(
      try t.contents("file") == Array(data[..<4096] + zeros + data[4096...]), "the rest moved down")
    try t.fails(EINVAL, clx_fallocate(fd, mode, 1 << 20, 4096))
  }
  check("fallocate.errors") { t in
    let (fd, _) = try t.pages(1, for: 0)
    try t.fails(EBADF, clx_fallocate(try t.open("file", O_RDONLY), 0, 0, 100))
    try t.fails(EBADF, clx_fallocate(999, 0, 0, 100))
    try t.fails(EINVAL, clx_fallocate(fd, 0, -1, 100))
    try t.fails(EINVAL, clx_fallocate(fd, 0, 0, 0))
    try t.fails(EFBIG, clx_fallocate(fd, 0, off_t.max - 10, 100))
    try t.fails(EOPNOTSUPP, clx_fallocate(fd, Int32(CLX_FALLOC_PUNCH_HOLE), 0, 100))
    try t.fails(EBADF, clx_fallocate(try t.open(".", O_RDONLY), 0, 0, 100))
    try t.ok(mkfifo("fifo", 0o644))
    try t.fails(ESPIPE, clx_fallocate(try t.open("fifo", O_RDWR), 0, 0, 100))
  }
  check("fallocate.on-an-append-descriptor") { t in
    let fd = try t.open("file", O_WRONLY | O_CREAT | O_APPEND)
    try t.probe("fallocate", clx_fallocate(fd, 0, 0, 100))
    try t.equal(try t.info(fd).st_size, 100, "size")
    try t.put(fd, "end")
    try t.equal(try t.info(fd).st_size, 103, "size")
  }
  check("fallocate.over-the-file-size-limit-is-EFBIG") { t in
    let (fd, _) = try t.pages(1, for: 0)
    signal(SIGXFSZ, SIG_IGN)
    var limit = rlimit(rlim_cur: 8192, rlim_max: 8192)
    try t.ok(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit))
    try t.fails(EFBIG, clx_fallocate(fd, 0, 0, 8193))
    try t.ok(clx_fallocate(fd, 0, 0, 8192))
  }
  check("fallocate.posix-fallocate") { t in
    let fd = try t.open("file", O_RDWR | O_CREAT)
    try t.equal(posix_fallocate(fd, 10, 90), 0, "result")
    try t.equal(try t.info(fd).st_size, 100, "size")
  }
}

func seeking(_ check: inout Checks) {
  check("seek.data-and-hole") { t in
    let fd = try t.open("file", O_RDWR | O_CREAT)
    try t.ok(ftruncate(fd, 4 << 20))
    let data = pattern(65536)
    try t.ok(pwrite(fd, data, data.count, 1 << 20))
    try t.ok(fsync(fd))
    try t.equal(try t.ok(lseek(fd, 0, CLX_SEEK_HOLE)), 0, "the first hole")
    try t.equal(try t.ok(lseek(fd, 0, CLX_SEEK_DATA)), 1 << 20, "the data")
    try t.equal(try t.ok(lseek(fd, 1 << 20, CLX_SEEK_HOLE)), 1 << 20 + 65536, "the hole after it")
    try t.fails(ENXIO, lseek(fd, 2 << 20, CLX_SEEK_DATA))
  }
  check("seek.past-the-end-is-ENXIO") { t in
    try t.make("file", "text")
    let fd = try t.open("file", O_RDONLY)
    try t.fails(ENXIO, lseek(fd, 4, CLX_SEEK_DATA))
    try t.fails(ENXIO, lseek(fd, 4, CLX_SEEK_HOLE))
    try t.fails(ENXIO, lseek(fd, 1000, CLX_SEEK_DATA))
    try t.fails(ENXIO, lseek(fd, -1, CLX_SEEK_DATA))
  }
  check("seek.the-end-counts-as-a-hole") { t in
    try t.make("file", "text")
    let fd = try t.open("file", O_RDONLY)
    try t.equal(try t.ok(lseek(fd, 0, CLX_SEEK_HOLE)), 4, "the hole")
    try t.equal(try t.ok(lseek(fd, 2, CLX_SEEK_DATA)), 2, "the data")
    try t.equal(try t.ok(lseek(fd, 0, SEEK_CUR)), 2, "offset")
  }
  check("seek.finds-a-punched-hole") { t in
    let fd = try t.open("file", O_RDWR | O_CREAT)
    let data = pattern(262_144)
    try t.ok(write(fd, data, data.count))
    try t.ok(fsync(fd))
    try t.probe("punching holes", clx_fallocate(fd, punch, 65536, 65536))
    try t.equal(try t.ok(lseek(fd, 0, CLX_SEEK_HOLE)), 65536, "the hole")
    try t.equal(try t.ok(lseek(fd, 65536, CLX_SEEK_DATA)), 131_072, "the data after it")
  }
  check("seek.of-an-empty-file") { t in
    let fd = try t.open("file", O_RDWR | O_CREAT)
    try t.fails(ENXIO, lseek(fd, 0, CLX_SEEK_DATA))
    try t.fails(ENXIO, lseek(fd, 0, CLX_SEEK_HOLE))
  }
  check("seek.sees-data-not-yet-synced") { t in
    let fd = try t.open("file", O_RDWR | O_CREAT)
    try t.ok(ftruncate(fd, 1 << 20))
    try t.ok(pwrite(fd, pattern(4096), 4096, 524_288))
    try t.equal(try t.ok(lseek(fd, 0, CLX_SEEK_DATA)), 524_288, "the data")
  }
}
