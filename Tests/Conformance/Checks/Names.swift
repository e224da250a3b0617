// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

/// C strings of any bytes, which Swift's String can't hold.
private func name(_ bytes: [UInt8]) -> [CChar] { bytes.map { CChar(bitPattern: $0) } + [0] }

func oddNames(_ check: inout Checks) {
  check("name.every-byte-but-slash") { t in
    var expected: Set<[UInt8]> = []
    for byte in 1...255 as ClosedRange<UInt8> where byte != UInt8(ascii: "/") {
      let bytes = [UInt8(ascii: "n"), byte]
      try t.ok(close(clx_open(name(bytes), O_WRONLY | O_CREAT | O_EXCL, 0o644)))
      expected.insert(bytes)
    }
    let seen = Set(try t.entries(".").map(\.name).filter { $0.first == UInt8(ascii: "n") })
    try t.expect(seen == expected, "all 254 names as they were made")
    var info = stat()
    for bytes in expected { try t.ok(lstat(name(bytes), &info)) }
    for bytes in expected { try t.ok(unlink(name(bytes))) }
  }
  check("name.one-byte-each-but-slash-and-dot") { t in
    for byte in 1...255 as ClosedRange<UInt8> where byte != UInt8(ascii: "/") && byte != UInt8(ascii: ".") {
      try t.ok(mkdir(name([byte]), 0o755))
    }
    try t.equal(try t.entries(".").count, 255, "entries")
  }
  check("name.not-utf8-and-odd-utf8") { t in
    let odd: [[UInt8]] = [
      [0xff, 0xfe], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0x80],
      Array("e\u{301}".utf8),
      Array("\u{e9}".utf8), Array("\u{202e}txt".utf8), Array("👩‍👩‍👧".utf8),
    ]
    for bytes in odd { try t.ok(close(clx_open(name(bytes), O_WRONLY | O_CREAT | O_EXCL, 0o644))) }
    let seen = Set(try t.entries(".").map(\.name))
    try t.expect(odd.allSatisfy { seen.contains($0) }, "each name byte for byte")
    for bytes in odd {
      try t.ok(rename(name(bytes), name(bytes + [0xff])))
      try t.ok(unlink(name(bytes + [0xff])))
    }
  }
  check("name.case-counts") { t in
    try t.make("name", "lower")
    try t.make("NAME", "upper")
    try t.equal(try t.text("name"), "lower", "content")
    try t.equal(try t.text("NAME"), "upper", "content")
    try t.missing("Name")
  }
  check("name.awkward-for-shells") { t in
    let awkward = [
      " ", "-rf", "--", "*", "a\nb", "a\tb", "'", "\"", "$(x)", "\\", "...", ". ", "~", "#", ";", "CON",
      "a:b",
    ]
    for text in awkward { try t.make(text, text) }
    for text in awkward { try t.equal(try t.text(text), text, "content") }
    try t.equal(try t.names(".").count, awkward.count, "names")
  }
  check("name.of-255-bytes-in-every-call") { t in
    let long = String(repeating: "x", count: 254)
    try t.make(long + "a", "text")
    try t.dir(long + "b")
    try t.ok(symlink(long + "a", long + "c"))
    try t.ok(link(long + "a", long + "d"))
    try t.ok(mkfifo(long + "e", 0o644))
    try t.ok(rename(long + "d", long + "f"))
    try t.make(long + "b/" + long + "g")
    try t.equal(try t.text(long + "c"), "text", "content")
    try t.equal(try t.names(".").count, 5, "names")
    try t.equal(try t.names(long + "b"), [long + "g"], "names")
  }
  check("name.255-bytes-of-utf8") { t in
    let long = String(repeating: "ü", count: 127) + "x"
    try t.make(long)
    try t.equal(try t.names("."), [long], "names")
    try t.fails(ENAMETOOLONG, clx_open(String(repeating: "ü", count: 128), O_RDWR | O_CREAT, 0o644))
  }
  check("name.256-bytes-is-ENAMETOOLONG-in-every-call") { t in
    let long = String(repeating: "x", count: 256)
    try t.make("file")
    var info = stat()
    try t.fails(ENAMETOOLONG, lstat(long, &info))
    try t.fails(ENAMETOOLONG, lstat(long + "/below", &info))
    try t.fails(ENAMETOOLONG, mkdir(long, 0o755))
    try t.fails(ENAMETOOLONG, link("file", long))
    try t.fails(ENAMETOOLONG, utimensat(AT_FDCWD, long, nil, 0))
    try t.fails(ENAMETOOLONG, chdir(long))
  }
}

func deepTrees(_ check: inout Checks) {
  check("path.longer-than-PATH_MAX-is-ENAMETOOLONG") { t in
    let step = "./"
    let longest = String(repeating: step, count: 2046) + "f"
    try t.make(longest, "text")
    try t.equal(try t.text("f"), "text", "content")
    try t.fails(ENAMETOOLONG, clx_open(String(repeating: step, count: 2048) + "f", O_RDONLY, 0))
  }
  check("path.sixty-levels") { t in
    var path = "d"
    try t.dir(path)
    for _ in 1..<60 {
      path += "/d"
      try t.dir(path)
    }
    try t.make(path + "/file", "deep")
    try t.equal(try t.text(path + "/file"), "deep", "content")
    let up = path + "/" + String(repeating: "../", count: 60)
    try t.equal(try t.info(up).st_ino, try t.info(".").st_ino, "inode sixty levels up")
    try t.ok(rename("d", "e"))
    try t.missing(path + "/file")
    try t.equal(try t.text("e" + path.dropFirst() + "/file"), "deep", "content after a rename at the top")
  }
  check("path.deeper-than-any-path-can-name") { t in
    let part = String(repeating: "p", count: 200)
    for _ in 0..<25 {
      try t.dir(part)
      try t.ok(chdir(part))
    }
    try t.make("file", "text")
    try t.equal(try t.text("file"), "text", "content")
    for _ in 0..<25 { try t.ok(chdir("..")) }
    try t.equal(try t.names("."), [part], "names")
  }
  check("path.slashes-and-dots") { t in
    try t.dir("dir")
    try t.make("dir/file", "text")
    for path in ["dir//file", "./dir/./file", "dir/../dir/file", "dir/.//file"] {
      try t.equal(try t.text(path), "text", "content of \(path)")
    }
    try t.fails(ENOTDIR, clx_open("dir/file/.", O_RDONLY, 0))
    try t.fails(ENOENT, clx_open("missing/../dir/file", O_RDONLY, 0))
  }
}
