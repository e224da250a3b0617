// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

extension Trial {
  /// Runs `body` in `count` processes that are let go at the same moment.
  fileprivate func race(_ count: Int, _ body: (Int) throws -> Void) throws {
    let start = try Gate()
    let actors = try (0..<count).map { index in
      try Actor.start {
        start.wait()
        try body(index)
      }
    }
    start.pass(count)
    for actor in actors { try actor.finish() }
  }
}

func races(_ check: inout Checks) {
  check("race.exclusive-create-has-one-winner") { t in
    for round in 0..<30 {
      try t.race(4) { index in
        let fd = clx_open("file-\(round)", O_WRONLY | O_CREAT | O_EXCL, 0o644)
        if fd == -1 { return try t.expect(errno == EEXIST, "EEXIST for a loser, saw \(errnoName(errno)):") }
        try t.make("winner-\(round)-\(index)")
      }
    }
    try t.equal(try t.names(".").filter { $0.hasPrefix("winner") }.count, 30, "winners")
  }
  check("race.mkdir-has-one-winner") { t in
    for round in 0..<30 {
      try t.race(4) { index in
        if mkdir("dir-\(round)", 0o755) == -1 {
          return try t.expect(errno == EEXIST, "EEXIST for a loser, saw \(errnoName(errno)):")
        }
        try t.make("winner-\(round)-\(index)")
      }
    }
    try t.equal(try t.names(".").filter { $0.hasPrefix("winner") }.count, 30, "winners")
  }
  check("race.link-has-one-winner") { t in
    for index in 0..<4 { try t.make("own-\(index)") }
    for round in 0..<30 {
      try t.race(4) { index in
        if link("own-\(index)", "lock-\(round)") == -1 {
          return try t.expect(errno == EEXIST, "EEXIST for a loser, saw \(errnoName(errno)):")
        }
        try t.make("winner-\(round)-\(index)")
      }
    }
    try t.equal(try t.names(".").filter { $0.hasPrefix("winner") }.count, 30, "winners")
  }
  check("race.unlink-has-one-winner") { t in
    for round in 0..<30 {
      try t.make("file-\(round)")
      try t.race(4) { index in
        if unlink("file-\(round)") == -1 {
          return try t.expect(errno == ENOENT, "ENOENT for a loser, saw \(errnoName(errno)):")
        }
        try t.make("winner-\(round)-\(index)")
      }
    }
    try t.equal(try t.names(".").filter { $0.hasPrefix("winner") }.count, 30, "winners")
  }
  check("race.rename-of-one-source-has-one-winner") { t in
    for round in 0..<30 {
      try t.make("file-\(round)")
      try t.race(4) { index in
        if rename("file-\(round)", "to-\(round)-\(index)") == -1 {
          try t.expect(errno == ENOENT, "ENOENT for a loser, saw \(errnoName(errno)):")
        }
      }
    }
    try t.equal(try t.names(".").count, 30, "files left")
  }
  check("race.append-loses-no-byte") { t in
    try t.make("file")
    try t.race(4) { index in
      let fd = try t.open("file", O_WRONLY | O_APPEND)
      for line in 0..<200 { try t.put(fd, "writer \(index) line \(line)\n") }
    }
    let lines = try t.text("file").split(separator: "\n")
    try t.equal(lines.count, 800, "lines")
    try t.equal(Set(lines).count, 800, "different lines")
    for index in 0..<4 {
      let own = lines.filter { $0.hasPrefix("writer \(index) ") }
      try t.expect(
        own == (0..<200).map { "writer \(index) line \($0)" }, "the lines of writer \(index) in order")
    }
  }
  check("race.a-name-replaced-by-rename-is-never-missing") { t in
    try t.make("file", "0")
    let writer = try Actor.start {
      for round in 0..<500 {
        try t.make("next", "\(round)")
        try t.ok(rename("next", "file"))
      }
    }
    for _ in 0..<1000 {
      let text = try t.text("file")
      try t.expect(Int(text) != nil, "a whole number, saw <\(text)>:")
      _ = try t.info("file")
    }
    try writer.finish()
  }
  check("race.exchange-never-loses-a-name") { t in
    try t.make("a", "1")
    try t.make("b", "2")
    let writer = try Actor.start {
      for _ in 0..<500 { try t.ok(clx_renameat2(AT_FDCWD, "a", AT_FDCWD, "b", UInt32(CLX_RENAME_EXCHANGE))) }
    }
    for _ in 0..<500 { try t.equal(try t.text("a").count + t.text("b").count, 2, "bytes of both") }
    try writer.finish()
  }
  check("race.create-and-remove-in-one-directory") { t in
    try t.dir("dir")
    try t.race(4) { index in
      for round in 0..<100 {
        try t.make("dir/\(index)-\(round)", "x")
        if round.isMultiple(of: 2) { try t.ok(unlink("dir/\(index)-\(round)")) }
      }
    }
    try t.equal(try t.names("dir").count, 200, "names")
  }
  check("race.directories-moved-about") { t in
    // Two directories are moved into each other's way; the tree must stay a tree.
    try t.dir("a")
    try t.dir("b")
    try t.dir("a/x")
    try t.dir("b/y")
    try t.race(4) { index in
      for _ in 0..<100 {
        let moves = [("a/x", "b/y/x"), ("b/y", "a/x/y"), ("b/y/x", "a/x"), ("a/x/y", "b/y")]
        let (from, to) = moves[index]
        if rename(from, to) == -1 {
          let fine = [ENOENT, EINVAL, ENOTEMPTY, EEXIST].contains(errno)
          try t.expect(fine, "a plain refusal, saw \(errnoName(errno)):")
        }
      }
    }
    let found = try t.sh("find . -mindepth 1 -name '[xy]' | sed 's,.*/,,' | sort | tr -d '\\n'")
    try t.equal(found, "xy", "directories left")
  }
  check("race.readers-and-a-truncating-writer") { t in
    let block = [UInt8](repeating: 7, count: 65536)
    let fd = try t.open("file", O_RDWR | O_CREAT)
    let writer = try Actor.start {
      for _ in 0..<200 {
        try t.ok(pwrite(fd, block, block.count, 0))
        try t.ok(ftruncate(fd, 0))
      }
    }
    try t.race(2) { _ in
      for _ in 0..<200 {
        let bytes = try t.contents("file")
        // What is there is the writer's byte or, where a cut and a write met, zero.
        try t.expect(bytes.allSatisfy { $0 == 7 || $0 == 0 }, "only bytes that were written")
      }
    }
    try writer.finish()
  }
}

func notifications(_ check: inout Checks) {
  check("inotify.sees-what-this-machine-does") { t in
    try t.dir("dir")
    let watcher = try t.ok(inotify_init1(Int32(IN_NONBLOCK)))
    try t.ok(inotify_add_watch(watcher, "dir", 0xfff))
    try t.make("dir/file", "text")
    try t.ok(chmod("dir/file", 0o600))
    try t.ok(rename("dir/file", "dir/moved"))
    try t.ok(unlink("dir/moved"))
    let seen = try t.events(watcher)
    let expected: [(UInt32, String)] = [
      (UInt32(IN_CREATE), "file"), (UInt32(IN_OPEN), "file"), (UInt32(IN_MODIFY), "file"),
      (UInt32(IN_CLOSE_WRITE), "file"), (UInt32(IN_ATTRIB), "file"), (UInt32(IN_MOVED_FROM), "file"),
      (UInt32(IN_MOVED_TO), "moved"), (UInt32(IN_DELETE), "moved"),
    ]
    for (mask, name) in expected {
      try t.expect(seen.contains { $0.mask & mask != 0 && $0.name == name }, "an event \(mask) of \(name)")
    }
  }
  check("inotify.sees-another-process") { t in
    try t.dir("dir")
    let watcher = try t.ok(inotify_init1(Int32(IN_NONBLOCK)))
    try t.ok(inotify_add_watch(watcher, "dir", UInt32(IN_CREATE) | UInt32(IN_DELETE_SELF)))
    try t.inChild { try t.make("dir/file") }
    try t.equal(try t.events(watcher).map(\.name), ["file"], "names")
  }
  check("inotify.of-a-file-that-goes") { t in
    try t.make("file")
    let watcher = try t.ok(inotify_init1(Int32(IN_NONBLOCK)))
    try t.ok(inotify_add_watch(watcher, "file", UInt32(IN_DELETE_SELF)))
    try t.ok(unlink("file"))
    let seen = try t.events(watcher)
    try t.expect(seen.contains { $0.mask & UInt32(IN_DELETE_SELF) != 0 }, "the end of the file")
  }
}

extension Trial {
  /// The events that are there to be read: mask and name.
  fileprivate func events(_ watcher: Int32) throws -> [(mask: UInt32, name: String)] {
    let bytes = try self.bytes(watcher, 65536)
    var all: [(mask: UInt32, name: String)] = []
    var at = 0
    func word(_ offset: Int) -> UInt32 {
      (0..<4).reduce(0) { $0 | UInt32(bytes[at + offset + $1]) << (8 * UInt32($1)) }
    }
    while at + 16 <= bytes.count {
      // struct inotify_event: wd, mask, cookie, len, then a name padded with NULs.
      let length = Int(word(12))
      let name = bytes[(at + 16)..<min(at + 16 + length, bytes.count)].prefix { $0 != 0 }
      all.append((word(4), String(decoding: name, as: UTF8.self)))
      at += 16 + length
    }
    return all
  }
}
