// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

extension Trial {
  /// Maps the start of a file.
  fileprivate func map(
    _ fd: Int32, _ length: Int, _ protection: Int32 = PROT_READ | PROT_WRITE, _ flags: Int32 = MAP_SHARED,
    file: StaticString = #fileID, line: UInt = #line
  ) throws -> UnsafeMutablePointer<UInt8> {
    guard let start = mmap(nil, length, protection, flags, fd, 0), start != MAP_FAILED
    else { throw Failure(text: "expected a mapping, saw \(errnoName(errno)) (\(file):\(line))") }
    return start.assumingMemoryBound(to: UInt8.self)
  }

  fileprivate func mapFails(_ expected: Int32, _ fd: Int32, _ protection: Int32, _ flags: Int32) throws {
    try fails(expected, mmap(nil, 4096, protection, flags, fd, 0) == MAP_FAILED ? Int32(-1) : Int32(0))
  }
}

func mappings(_ check: inout Checks) {
  check("mmap.shared-store-is-seen-by-read") { t in
    try t.make("file", "0123456789")
    let fd = try t.open("file", O_RDWR)
    let map = try t.map(fd, 10)
    map[3] = UInt8(ascii: "X")
    try t.equal(try t.text("file"), "012X456789", "content")
    try t.ok(pwrite(fd, "Y", 1, 5))
    try t.equal(map[5], UInt8(ascii: "Y"), "byte in the mapping after a write")
  }
  check("mmap.store-is-seen-by-another-process") { t in
    try t.make("file", String(repeating: "a", count: 4096))
    let (there, back) = (try Gate(), try Gate())
    let other = try Actor.start {
      let map = try t.map(try t.open("file", O_RDWR), 4096)
      there.wait()
      try t.equal(map[100], 200, "byte")
      map[101] = 201
      back.pass()
    }
    let map = try t.map(try t.open("file", O_RDWR), 4096)
    map[100] = 200
    there.pass()
    try back.wait(for: other)
    try other.finish()
    try t.equal(map[101], 201, "byte of the other process")
  }
  check("mmap.shared-store-moves-mtime-by-msync") { t in
    try t.make("file", "text")
    try t.ok(
      utimensat(AT_FDCWD, "file", [timespec(tv_sec: 1, tv_nsec: 0), timespec(tv_sec: 2, tv_nsec: 0)], 0))
    let map = try t.map(try t.open("file", O_RDWR), 4)
    map[0] = 65
    try t.ok(msync(map, 4, Int32(MS_SYNC)))
    try t.expect(try t.info("file").st_mtim.tv_sec > 1000, "a modification time of now")
    try t.equal(try t.text("file"), "Aext", "content")
  }
  check("mmap.private-store-stays-private") { t in
    try t.make("file", "text")
    let map = try t.map(try t.open("file", O_RDONLY), 4, PROT_READ | PROT_WRITE, MAP_PRIVATE)
    map[0] = 65
    try t.equal(try t.text("file"), "text", "content")
  }
  check("mmap.store-then-fsync-then-read-again") { t in
    let fd = try t.open("file", O_RDWR | O_CREAT)
    let size = 1 << 20
    try t.ok(ftruncate(fd, off_t(size)))
    let map = try t.map(fd, size)
    let data = pattern(size)
    for index in 0..<size { map[index] = data[index] }
    try t.ok(fsync(fd))
    try t.ok(munmap(map, size))
    try t.ok(close(fd))
    try t.expect(try t.contents("file") == data, "the bytes stored")
  }
  check("mmap.outlives-close-unlink-and-rename") { t in
    try t.make("file", "text")
    let fd = try t.open("file", O_RDWR)
    let map = try t.map(fd, 4)
    try t.ok(close(fd))
    map[0] = UInt8(ascii: "T")
    try t.equal(try t.text("file"), "Text", "content")
    try t.ok(rename("file", "moved"))
    map[1] = UInt8(ascii: "E")
    try t.equal(try t.text("moved"), "TExt", "content")
    try t.ok(unlink("moved"))
    map[2] = UInt8(ascii: "X")
    try t.equal(map[1], UInt8(ascii: "E"), "byte")
    try t.ok(msync(map, 4, Int32(MS_SYNC)))
  }
  check("mmap.past-the-end-is-SIGBUS") { t in
    try t.make("file", "text")
    let fd = try t.open("file", O_RDWR)
    let child = try Actor.start {
      signal(SIGBUS, SIG_DFL)
      let map = try t.map(fd, 8192)
      map[5000] = 1
    }
    try t.equal(clx_term_signal(child.reap()), SIGBUS, "signal")
  }
  check("mmap.then-truncate-is-SIGBUS") { t in
    let fd = try t.open("file", O_RDWR | O_CREAT)
    try t.ok(ftruncate(fd, 8192))
    let child = try Actor.start {
      signal(SIGBUS, SIG_DFL)
      let map = try t.map(fd, 8192)
      map[5000] = 1
      try t.ok(ftruncate(fd, 4096))
      map[100] = 1
      map[5000] = 2
    }
    try t.equal(clx_term_signal(child.reap()), SIGBUS, "signal")
    try t.equal(try t.bytes(fd, 1, at: 100), [1], "byte below the cut")
  }
  check("mmap.bytes-after-the-end-of-the-last-page-are-zero") { t in
    try t.make("file", "text")
    let fd = try t.open("file", O_RDWR)
    let map = try t.map(fd, 4096)
    try t.equal(map[4], 0, "byte after the end")
    try t.ok(ftruncate(fd, 2))
    try t.equal(map[2], 0, "byte after a cut")
    try t.ok(ftruncate(fd, 4))
    try t.equal(map[2], 0, "byte after growing again")
    try t.equal(try t.contents("file"), Array("te".utf8) + [0, 0], "content")
  }
  check("mmap.of-a-growing-file") { t in
    let fd = try t.open("file", O_RDWR | O_CREAT)
    try t.ok(ftruncate(fd, 4096))
    let map = try t.map(fd, 8192)
    try t.ok(ftruncate(fd, 8192))
    map[8000] = 9
    try t.equal(try t.bytes(fd, 1, at: 8000), [9], "byte")
  }
  check("mmap.errors") { t in
    try t.make("file", "text")
    try t.dir("dir")
    try t.mapFails(EACCES, try t.open("file", O_WRONLY), PROT_READ, MAP_SHARED)
    try t.mapFails(EACCES, try t.open("file", O_RDONLY), PROT_READ | PROT_WRITE, MAP_SHARED)
    try t.mapFails(ENODEV, try t.open("dir", O_RDONLY), PROT_READ, MAP_SHARED)
    try t.mapFails(EBADF, 999, PROT_READ, MAP_SHARED)
    try t.mapFails(EBADF, try t.open("file", CLX_O_PATH), PROT_READ, MAP_SHARED)
  }
  check("mmap.executable-mapping") { t in
    try t.make("file", "text", mode: 0o755)
    let map = try t.map(try t.open("file", O_RDONLY), 4, PROT_READ | PROT_EXEC, MAP_PRIVATE)
    try t.equal(map[0], UInt8(ascii: "t"), "byte")
  }
  check("mmap.read-of-a-hole-is-zeros") { t in
    let fd = try t.open("file", O_RDWR | O_CREAT)
    try t.ok(ftruncate(fd, 1 << 20))
    let map = try t.map(fd, 1 << 20, PROT_READ)
    try t.expect((0..<256).allSatisfy { map[$0 * 4096] == 0 }, "zeros")
  }
  check("mmap.write-into-a-file-from-its-own-mapping") { t in
    // The page that write(2) has to fault in is one it holds the lock of.
    let fd = try t.open("file", O_RDWR | O_CREAT)
    let data = pattern(8192)
    try t.ok(write(fd, data, 8192))
    let map = try t.map(fd, 8192)
    try t.equal(try t.ok(pwrite(fd, map, 4096, 4096)), 4096, "bytes written")
    try t.expect(
      Array(try t.contents("file")[4096...]) == Array(data[..<4096]), "the bytes of the first page")
  }
}
