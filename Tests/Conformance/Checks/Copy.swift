// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

func copying(_ check: inout Checks) {
  check("copy-range.between-files") { t in
    let data = pattern(300_000)
    let from = try t.open("from", O_RDWR | O_CREAT)
    try t.ok(write(from, data, data.count))
    let to = try t.open("to", O_RDWR | O_CREAT)
    var (source, target) = (0 as off_t, 0 as off_t)
    while true {
      let count = try t.ok(clx_copy_file_range(from, &source, to, &target, 1 << 20, 0))
      if count == 0 { break }
    }
    try t.equal(source, 300_000, "offset in the source")
    try t.expect(try t.contents("to") == data, "the same bytes")
    try t.equal(try t.ok(lseek(from, 0, SEEK_CUR)), 300_000, "the descriptor's own offset")
  }
  check("copy-range.moves-the-descriptors-offsets") { t in
    try t.make("from", "0123456789")
    let (from, to) = (try t.open("from", O_RDONLY), try t.open("to", O_RDWR | O_CREAT))
    try t.equal(try t.ok(clx_copy_file_range(from, nil, to, nil, 4, 0)), 4, "bytes")
    try t.equal(try t.ok(clx_copy_file_range(from, nil, to, nil, 4, 0)), 4, "bytes")
    try t.equal(try t.ok(lseek(to, 0, SEEK_CUR)), 8, "offset")
    try t.equal(try t.text("to"), "01234567", "content")
  }
  check("copy-range.within-a-file") { t in
    try t.make("file", "0123456789")
    let fd = try t.open("file", O_RDWR)
    var (source, target) = (0 as off_t, 6 as off_t)
    try t.equal(try t.ok(clx_copy_file_range(fd, &source, fd, &target, 4, 0)), 4, "bytes")
    try t.equal(try t.text("file"), "0123450123", "content")
  }
  check("copy-range.over-itself-is-EINVAL") { t in
    try t.make("file", "0123456789")
    let fd = try t.open("file", O_RDWR)
    var (source, target) = (0 as off_t, 2 as off_t)
    try t.fails(EINVAL, clx_copy_file_range(fd, &source, fd, &target, 4, 0))
    try t.equal(try t.text("file"), "0123456789", "content")
  }
  check("copy-range.from-past-the-end-is-nothing") { t in
    try t.make("from", "text")
    let (from, to) = (try t.open("from", O_RDONLY), try t.open("to", O_RDWR | O_CREAT))
    var source = 4 as off_t
    try t.equal(try t.ok(clx_copy_file_range(from, &source, to, nil, 10, 0)), 0, "bytes")
    source = 2
    try t.equal(try t.ok(clx_copy_file_range(from, &source, to, nil, 10, 0)), 2, "bytes")
  }
  check("copy-range.to-past-the-end-leaves-a-hole") { t in
    try t.make("from", "text")
    let (from, to) = (try t.open("from", O_RDONLY), try t.open("to", O_RDWR | O_CREAT))
    var target = 10000 as off_t
    try t.equal(try t.ok(clx_copy_file_range(from, nil, to, &target, 4, 0)), 4, "bytes")
    let content = try t.contents("to")
    try t.equal(content.count, 10004, "size")
    try t.expect(content[..<10000].allSatisfy { $0 == 0 }, "zeros before")
  }
  check("copy-range.errors") { t in
    try t.make("from", "text")
    try t.make("to")
    try t.dir("dir")
    let (from, to) = (try t.open("from", O_RDONLY), try t.open("to", O_WRONLY))
    let (dir, reader) = (try t.open("dir", O_RDONLY), try t.open("to", O_RDONLY))
    try t.fails(EBADF, clx_copy_file_range(from, nil, reader, nil, 4, 0))
    try t.fails(EBADF, clx_copy_file_range(to, nil, to, nil, 4, 0))
    try t.fails(EBADF, clx_copy_file_range(from, nil, try t.open("to", O_WRONLY | O_APPEND), nil, 4, 0))
    try t.fails(EBADF, clx_copy_file_range(999, nil, to, nil, 4, 0))
    try t.fails(EISDIR, clx_copy_file_range(dir, nil, to, nil, 4, 0))
    try t.fails(EINVAL, clx_copy_file_range(from, nil, to, nil, 4, 1))
  }
  check("copy-range.over-the-file-size-limit-is-EFBIG") { t in
    let data = pattern(9000)
    let from = try t.open("from", O_RDWR | O_CREAT)
    try t.ok(write(from, data, data.count))
    signal(SIGXFSZ, SIG_IGN)
    var limit = rlimit(rlim_cur: 8192, rlim_max: 8192)
    try t.ok(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit))
    let to = try t.open("to", O_RDWR | O_CREAT)
    var (source, target) = (0 as off_t, 8192 as off_t)
    try t.fails(EFBIG, clx_copy_file_range(from, &source, to, &target, 100, 0))
  }
  check("sendfile.from-file-to-file-and-socket") { t in
    let data = pattern(100_000)
    let from = try t.open("from", O_RDWR | O_CREAT)
    try t.ok(write(from, data, data.count))
    let to = try t.open("to", O_RDWR | O_CREAT)
    var offset = 0 as off_t
    while offset < 100_000 { try t.ok(sendfile(to, from, &offset, 100_000)) }
    try t.expect(try t.contents("to") == data, "the same bytes")
    var ends: [Int32] = [0, 0]
    try t.ok(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends))
    offset = 50_000
    try t.equal(try t.ok(sendfile(ends[0], from, &offset, 1000)), 1000, "bytes")
    try t.expect(try t.bytes(ends[1], 1000) == Array(data[50_000..<51_000]), "the bytes in the socket")
  }
  check("splice.out-of-a-file-and-into-one") { t in
    let data = pattern(40_000)
    let from = try t.open("from", O_RDWR | O_CREAT)
    try t.ok(write(from, data, data.count))
    let to = try t.open("to", O_RDWR | O_CREAT)
    var ends: [Int32] = [0, 0]
    try t.ok(clx_pipe2(&ends, 0))
    var offset = 0 as off_t
    while true {
      let count = try t.ok(clx_splice(from, &offset, ends[1], nil, 16384, 0))
      if count == 0 { break }
      var left = count
      while left > 0 { left -= try t.ok(clx_splice(ends[0], nil, to, nil, left, 0)) }
    }
    try t.expect(try t.contents("to") == data, "the same bytes")
  }
  check("splice.to-an-append-descriptor-is-EINVAL") { t in
    var ends: [Int32] = [0, 0]
    try t.ok(clx_pipe2(&ends, 0))
    try t.put(ends[1], "x")
    let fd = try t.open("file", O_WRONLY | O_CREAT | O_APPEND)
    try t.fails(EINVAL, clx_splice(ends[0], nil, fd, nil, 1, 0))
  }
}
