// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

private func counts(_ entries: [Entry]) -> [String: Int] {
  entries.reduce(into: [:]) { $0[$1.text, default: 0] += 1 }
}

func listings(_ check: inout Checks) {
  check("readdir.dot-and-dotdot-once-each-and-types") { t in
    try t.make("file")
    try t.dir("dir")
    try t.ok(symlink("x", "link"))
    try t.ok(mkfifo("fifo", 0o644))
    try t.ok(mknod("socket", S_IFSOCK | 0o644, 0))
    let entries = try t.entries(".")
    let types = entries.reduce(into: [String: Int]()) { $0[$1.text] = Int($1.type) }
    let expected = [
      ".": DT_DIR, "..": DT_DIR, "file": DT_REG, "dir": DT_DIR, "link": DT_LNK, "fifo": DT_FIFO,
      "socket": DT_SOCK,
    ].mapValues { Int($0) }
    try t.equal(types, expected, "types")
    try t.equal(entries.count, 7, "entries")
  }
  check("readdir.inodes-are-those-of-stat") { t in
    try t.make("file")
    try t.dir("dir")
    try t.ok(symlink("x", "link"))
    for entry in try t.entries(".") where entry.text != ".." {
      try t.equal(entry.inode, try t.info(entry.text).st_ino, "inode of \(entry.text)")
    }
  }
  check("readdir.empty-directory") { t in
    try t.dir("dir")
    try t.equal(try t.entries("dir").map(\.text).sorted(), [".", ".."], "entries")
  }
  check("readdir.five-thousand-entries-each-once") { t in
    try t.dir("dir")
    for index in 0..<5000 { try t.ok(close(clx_open("dir/entry-\(index)", O_WRONLY | O_CREAT, 0o644))) }
    let seen = counts(try t.entries("dir"))
    try t.equal(seen.count, 5002, "names")
    try t.expect(seen.values.allSatisfy { $0 == 1 }, "each name once")
    let small = counts(try t.entries("dir", buffer: 300))
    try t.expect(small == seen, "the same through a small buffer")
  }
  check("readdir.buffer-too-small-is-EINVAL") { t in
    try t.make(String(repeating: "n", count: 200))
    let fd = try t.open(".", O_RDONLY)
    var buffer = [UInt8](repeating: 0, count: 8)
    try t.fails(EINVAL, clx_getdents64(fd, &buffer, 8))
  }
  check("readdir.of-a-file-is-ENOTDIR") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDONLY)
    var buffer = [UInt8](repeating: 0, count: 1024)
    try t.fails(ENOTDIR, clx_getdents64(fd, &buffer, 1024))
    try t.fails(EBADF, clx_getdents64(999, &buffer, 1024))
  }
  check("readdir.seekdir-comes-back-to-each-telldir") { t in
    try t.dir("dir")
    for index in 0..<500 { try t.make("dir/entry-\(index)") }
    guard let dir = opendir("dir") else { throw Failure(text: "opendir: \(errnoName(errno))") }
    var places: [(at: Int, next: ino_t)] = []
    while true {
      let at = telldir(dir)
      guard let entry = readdir(dir) else { break }
      places.append((at, entry.pointee.d_ino))
    }
    try t.equal(places.count, 502, "entries")
    for index in stride(from: places.count - 1, through: 0, by: -7) {
      seekdir(dir, places[index].at)
      guard let entry = readdir(dir) else {
        throw Failure(text: "expected an entry after seekdir, saw the end")
      }
      try t.equal(entry.pointee.d_ino, places[index].next, "inode after seekdir")
    }
    closedir(dir)
  }
  check("readdir.rewinddir-sees-new-and-not-removed") { t in
    try t.make("old")
    guard let dir = opendir(".") else { throw Failure(text: "opendir: \(errnoName(errno))") }
    var first = 0
    while readdir(dir) != nil { first += 1 }
    try t.equal(first, 3, "entries")
    try t.make("new-1")
    try t.make("new-2")
    try t.ok(unlink("old"))
    rewinddir(dir)
    var inodes: Set<ino_t> = []
    while let entry = readdir(dir) { inodes.insert(entry.pointee.d_ino) }
    try t.equal(inodes.count, 4, "entries")
    try t.expect(inodes.contains(try t.info("new-1").st_ino), "the new file")
    closedir(dir)
  }
  check("readdir.survivors-once-while-others-go") { t in
    try t.dir("dir")
    for index in 0..<1000 { try t.make("dir/entry-\(index)") }
    let fd = try t.open("dir", O_RDONLY)
    var seen: [Entry] = []
    var removed = 0
    while true {
      let part = try t.someEntries(fd, buffer: 2048)
      guard !part.isEmpty else { break }
      seen += part
      for _ in 0..<20 where removed < 1000 {
        try t.ok(unlink("dir/entry-\(removed)"))
        removed += 2
      }
    }
    let names = counts(seen)
    try t.expect(names.values.allSatisfy { $0 == 1 }, "each name at most once")
    for index in stride(from: 1, to: 1000, by: 2) {
      try t.equal(names["entry-\(index)"], 1, "times that survivor \(index) was seen")
    }
  }
  check("readdir.survivors-once-while-others-come") { t in
    try t.dir("dir")
    for index in 0..<600 { try t.make("dir/entry-\(index)") }
    let fd = try t.open("dir", O_RDONLY)
    var seen: [Entry] = []
    var made = 0
    while true {
      let part = try t.someEntries(fd, buffer: 2048)
      guard !part.isEmpty else { break }
      seen += part
      // An end is put to it, since a listing may show all that is made meanwhile.
      for _ in 0..<20 where made < 600 {
        try t.make("dir/new-\(made)")
        made += 1
      }
    }
    let names = counts(seen)
    try t.expect(names.values.allSatisfy { $0 == 1 }, "each name at most once")
    for index in 0..<600 { try t.equal(names["entry-\(index)"], 1, "times that entry \(index) was seen") }
  }
  check("readdir.removing-each-entry-as-it-is-read-empties-the-directory") { t in
    try t.dir("dir")
    for index in 0..<1500 { try t.make("dir/entry-\(index)") }
    let fd = try t.open("dir", O_RDONLY)
    while true {
      let part = try t.someEntries(fd, buffer: 1024)
      guard !part.isEmpty else { break }
      for entry in part where entry.text != "." && entry.text != ".." {
        try t.ok(unlinkat(fd, entry.text, 0))
      }
    }
    try t.ok(rmdir("dir"))
  }
  check("readdir.directory-removed-while-it-is-read") { t in
    try t.dir("dir")
    for index in 0..<300 { try t.make("dir/entry-\(index)") }
    let fd = try t.open("dir", O_RDONLY)
    try t.expect(try t.someEntries(fd, buffer: 1024).count > 1, "entries")
    for index in 0..<300 { try t.ok(unlink("dir/entry-\(index)")) }
    try t.ok(rmdir("dir"))
    var buffer = [UInt8](repeating: 0, count: 1024)
    try t.fails(ENOENT, clx_getdents64(fd, &buffer, 1024))
    try t.equal(try t.info(fd).st_nlink, 0, "links")
  }
  check("readdir.rename-while-reading-shows-others-once") { t in
    try t.dir("dir")
    for index in 0..<500 { try t.make("dir/entry-\(index)") }
    let fd = try t.open("dir", O_RDONLY)
    var seen = try t.someEntries(fd, buffer: 1024)
    try t.ok(rename("dir/entry-0", "dir/renamed"))
    while true {
      let part = try t.someEntries(fd, buffer: 1024)
      guard !part.isEmpty else { break }
      seen += part
    }
    let names = counts(seen)
    for index in 1..<500 { try t.equal(names["entry-\(index)"], 1, "times that entry \(index) was seen") }
  }
  check("readdir.a-listing-after-each-change-is-true") { t in
    try t.dir("dir")
    for index in 0..<30 {
      try t.make("dir/\(index)")
      try t.equal(try t.names("dir").count, index + 1, "names")
    }
    for index in 0..<30 {
      try t.ok(unlink("dir/\(index)"))
      try t.equal(try t.names("dir").count, 29 - index, "names")
    }
  }
  check("readdir.dotdot-of-the-listing-is-the-parent") { t in
    try t.dir("a")
    try t.dir("a/b")
    let inodes = try t.entries("a/b").filter { $0.text == ".." }.map(\.inode)
    try t.equal(inodes, [try t.info("a").st_ino], "inode of ..")
  }
  check("readdir.two-descriptors-have-two-places") { t in
    for index in 0..<100 { try t.make("entry-\(index)") }
    let (one, two) = (try t.open(".", O_RDONLY), try t.open(".", O_RDONLY))
    let first = try t.someEntries(one, buffer: 1024).map(\.text)
    try t.equal(try t.someEntries(two, buffer: 1024).map(\.text), first, "the same start")
    try t.ok(lseek(one, 0, SEEK_SET))
    try t.equal(try t.someEntries(one, buffer: 1024).map(\.text), first, "the same start after lseek")
  }
  check("readdir.needs-read-permission-only-to-open", .user) { t in
    try t.dir("dir")
    try t.make("dir/file")
    let fd = try t.open("dir", O_RDONLY)
    try t.ok(chmod("dir", 0))
    try t.fails(EACCES, clx_open("dir", O_RDONLY, 0))
    try t.equal(try t.someEntries(fd, buffer: 4096).count, 3, "entries")
  }
  check("readdir.many-files-two-thousand-and-stat-each") { t in
    try t.dir("dir")
    for index in 0..<2000 { try t.make("dir/f\(index)", "\(index)") }
    for entry in try t.entries("dir") where entry.text.first == "f" {
      let info = try t.info("dir/\(entry.text)")
      try t.equal(info.st_size, off_t(entry.text.utf8.count - 1), "size of \(entry.text)")
      try t.equal(info.st_ino, entry.inode, "inode of \(entry.text)")
    }
  }
}
