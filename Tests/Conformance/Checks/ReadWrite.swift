// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

/// Bytes that differ from place to place, so that a shift or a swap shows.
func pattern(_ count: Int, seed: Int = 0) -> [UInt8] {
  var state = UInt64(truncatingIfNeeded: seed &* 7919 &+ 12345)
  return (0..<count).map { _ in
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return UInt8(truncatingIfNeeded: state >> 33)
  }
}

func readingAndWriting(_ check: inout Checks) {
  check("io.sizes-around-pages-come-back-whole") { t in
    for size in [0, 1, 511, 4095, 4096, 4097, 65535, 131072, 131073, 1_048_577, 5_000_000] {
      let data = pattern(size, seed: size)
      let fd = try t.open("f\(size)", O_RDWR | O_CREAT)
      try t.equal(try t.ok(write(fd, data, size)), size, "bytes written")
      try t.ok(close(fd))
      try t.expect(try t.contents("f\(size)") == data, "the bytes of a file of \(size)")
    }
  }
  check("io.offsets-move-as-they-should") { t in
    let fd = try t.open("file", O_RDWR | O_CREAT)
    try t.put(fd, "0123456789")
    try t.equal(try t.ok(lseek(fd, 0, SEEK_CUR)), 10, "offset after writing")
    try t.equal(try t.ok(lseek(fd, -4, SEEK_END)), 6, "offset from the end")
    try t.equal(try t.get(fd, 2), "67", "bytes")
    try t.ok(pwrite(fd, "AB", 2, 0))
    try t.equal(try t.bytes(fd, 2, at: 0), Array("AB".utf8), "bytes")
    try t.equal(try t.ok(lseek(fd, 0, SEEK_CUR)), 8, "offset after pread and pwrite")
    try t.equal(try t.get(fd, 100), "89", "bytes up to the end")
    try t.equal(try t.get(fd, 100), "", "bytes at the end")
  }
  check("io.lseek-errors") { t in
    let fd = try t.open("file", O_RDWR | O_CREAT)
    try t.fails(EINVAL, lseek(fd, -1, SEEK_SET))
    try t.fails(EINVAL, lseek(fd, 0, 99))
    try t.fails(EBADF, lseek(999, 0, SEEK_SET))
    try t.ok(lseek(fd, 1 << 40, SEEK_SET))
    try t.equal(try t.get(fd, 10), "", "bytes far past the end")
  }
  check("io.bad-arguments") { t in
    let fd = try t.open("file", O_RDWR | O_CREAT)
    var byte: UInt8 = 0
    try t.fails(EINVAL, pread(fd, &byte, 1, -1))
    try t.fails(EINVAL, pwrite(fd, &byte, 1, -1))
    try t.fails(EBADF, read(999, &byte, 1))
    try t.fails(EFAULT, write(fd, UnsafeRawPointer(bitPattern: 8), 4096))
    try t.equal(try t.info(fd).st_size, 0, "size")
  }
  check("io.writing-past-the-end-leaves-zeros") { t in
    let fd = try t.open("file", O_RDWR | O_CREAT)
    try t.put(fd, "a")
    try t.ok(pwrite(fd, "z", 1, 10000))
    let content = try t.contents("file")
    try t.equal(content.count, 10001, "size")
    try t.expect(content[1..<10000].allSatisfy { $0 == 0 }, "zeros between")
  }
  check("io.vectors") { t in
    let fd = try t.open("file", O_RDWR | O_CREAT)
    var data = pattern(9000)
    try data.withUnsafeMutableBytes { bytes in
      let parts = [
        iovec(iov_base: bytes.baseAddress, iov_len: 1), iovec(iov_base: bytes.baseAddress, iov_len: 0),
        iovec(iov_base: bytes.baseAddress?.advanced(by: 1), iov_len: 4999),
        iovec(iov_base: bytes.baseAddress?.advanced(by: 5000), iov_len: 4000),
      ]
      try t.equal(try t.ok(writev(fd, parts, 4)), 9000, "bytes written")
    }
    try t.expect(try t.contents("file") == data, "the bytes")
    var back = [UInt8](repeating: 0, count: 9000)
    try t.ok(lseek(fd, 0, SEEK_SET))
    try back.withUnsafeMutableBytes { bytes in
      let parts = [
        iovec(iov_base: bytes.baseAddress, iov_len: 4096),
        iovec(iov_base: bytes.baseAddress?.advanced(by: 4096), iov_len: 4904),
      ]
      try t.equal(try t.ok(readv(fd, parts, 2)), 9000, "bytes read")
    }
    try t.expect(back == data, "the bytes read back")
    try t.fails(EINVAL, writev(fd, [], 5000))
  }
  check("io.two-descriptors-see-each-other") { t in
    let (one, two) = (try t.open("file", O_RDWR | O_CREAT), try t.open("file", O_RDWR))
    try t.put(one, "first")
    try t.equal(try t.get(two, 10), "first", "bytes")
    try t.put(two, " second")
    try t.equal(try t.get(one, 10), " second", "bytes")
  }
  check("io.two-processes-see-each-other") { t in
    let (there, back) = (try Gate(), try Gate())
    let fd = try t.open("file", O_RDWR | O_CREAT)
    let other = try Actor.start {
      let fd = try t.open("file", O_RDWR)
      for round in 0..<100 {
        there.wait()
        try t.equal(try t.bytes(fd, 8, at: 0), pattern(8, seed: round), "bytes")
        try t.ok(pwrite(fd, pattern(8, seed: -round), 8, 8))
        back.pass()
      }
    }
    for round in 0..<100 {
      try t.ok(pwrite(fd, pattern(8, seed: round), 8, 0))
      there.pass()
      try back.wait(for: other)
      try t.equal(try t.bytes(fd, 8, at: 8), pattern(8, seed: -round), "bytes of the other")
    }
    try other.finish()
  }
  check("io.dup-shares-the-offset") { t in
    try t.make("file", "0123456789")
    let one = try t.open("file", O_RDONLY)
    let two = try t.ok(dup(one))
    _ = try t.get(one, 3)
    try t.equal(try t.get(two, 3), "345", "bytes")
    try t.inChild { try t.equal(try t.get(one, 2), "67", "bytes in a child") }
    try t.equal(try t.get(one, 5), "89", "bytes after the child")
  }
  check("io.append-from-two-descriptors-loses-nothing") { t in
    let (one, two) = (
      try t.open("file", O_WRONLY | O_CREAT | O_APPEND), try t.open("file", O_WRONLY | O_APPEND)
    )
    for _ in 0..<100 {
      try t.put(one, "a")
      try t.put(two, "b")
    }
    try t.equal(try t.text("file"), String(repeating: "ab", count: 100), "content")
  }
  check("io.overwriting-in-the-middle") { t in
    var data = pattern(300_000)
    let fd = try t.open("file", O_RDWR | O_CREAT)
    try t.ok(write(fd, data, data.count))
    for at in [0, 1, 4095, 4096, 100_000, 131_071, 299_990] {
      let patch = pattern(10, seed: at)
      try t.ok(pwrite(fd, patch, 10, off_t(at)))
      data.replaceSubrange(at..<(at + 10), with: patch)
    }
    try t.expect(try t.contents("file") == data, "the bytes")
  }
  check("io.random-writes-agree-with-memory") { t in
    var model: [UInt8] = []
    let fd = try t.open("file", O_RDWR | O_CREAT)
    for step in 0..<300 {
      let at = (step &* 7_919 &+ step &* step &* 31) % 200_000
      let length = (step &* 613) % 9_000
      if step % 17 == 16 {
        try t.ok(ftruncate(fd, off_t(at)))
        model = Array(model.prefix(at)) + [UInt8](repeating: 0, count: max(0, at - model.count))
      } else if length > 0 {
        let data = pattern(length, seed: step)
        try t.equal(try t.ok(pwrite(fd, data, length, off_t(at))), length, "bytes written")
        if model.count < at + length { model += [UInt8](repeating: 0, count: at + length - model.count) }
        model.replaceSubrange(at..<(at + length), with: data)
      }
    }
    try t.expect(try t.contents("file") == model, "the same bytes as in memory")
  }
  check("io.reading-a-directory-is-EISDIR") { t in
    try t.dir("dir")
    let fd = try t.open("dir", O_RDONLY)
    var byte: UInt8 = 0
    try t.fails(EISDIR, read(fd, &byte, 1))
    try t.fails(EBADF, write(fd, &byte, 1))
  }
  check("io.fadvise-and-readahead-are-taken") { t in
    try t.make("file", "text")
    let fd = try t.open("file", O_RDONLY)
    for advice in 0...5 as ClosedRange<Int32> { try t.equal(posix_fadvise(fd, 0, 0, advice), 0, "result") }
    try t.equal(try t.get(fd, 4), "text", "content")
  }
  check("sync.files-and-directories") { t in
    try t.make("file", "text")
    try t.dir("dir")
    let (file, dir) = (try t.open("file", O_RDWR), try t.open("dir", O_RDONLY))
    let reader = try t.open("file", O_RDONLY)
    for fd in [file, dir, reader] {
      try t.ok(fsync(fd))
      try t.ok(fdatasync(fd))
    }
    try t.fails(EBADF, fsync(999))
    try t.fails(EBADF, fsync(try t.open("file", CLX_O_PATH)))
  }
  check("sync.of-a-fifo-is-EINVAL") { t in
    try t.ok(mkfifo("fifo", 0o644))
    let fd = try t.open("fifo", O_RDWR)
    try t.fails(EINVAL, fsync(fd))
  }
  check("sync.syncfs") { t in
    try t.ok(clx_syncfs(try t.open(".", O_RDONLY)))
    try t.fails(EBADF, clx_syncfs(999))
  }
}
