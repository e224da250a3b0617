// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Names of every kind.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct NameTests {
  @Test(arguments: [nil, "nohandles,nopassthrough"])
  func anyBytesButSlashAndZeroAreAName(options: String?) throws {
    let mounted = try MountedStore.mounted(options: options)
    let made = mkdir(mounted.path("Users/Shared/dir"), 0o755)
    #expect(made == 0)
    let directory = try TemporaryDirectory.open(mounted.path("Users/Shared/dir"))
    let backing = try TemporaryDirectory.open(mounted.backing("Users/Shared/dir"))
    var names = (UInt8(1)...255).filter { $0 != UInt8(ascii: "/") }.map { [UInt8(ascii: "x"), $0] }
    names += [
      Array("a\nb".utf8), [0xff, 0xfe], [0xc3, 0x28], Array("é".utf8), Array("e\u{301}".utf8),
      Array(" ".utf8),
    ]
    names += [Array("...".utf8), Array("-rf".utf8), Array("*".utf8), .init(repeating: 0xf0, count: 255)]
    names += [.init(repeating: UInt8(ascii: "n"), count: 255)]
    for name in names {
      try name.withName { (name) throws(Errno) in
        let file = try directory.fd.open(name, O_WRONLY | O_CREAT | O_EXCL, mode: 0o644)
        try file.fd.writeAll([UInt8](name.buffer))
      }
    }
    let all = Set(names)
    #expect(Set(try directory.fd.entries().map(\.name)) == all && all.count == names.count)
    #expect(Set(try backing.fd.entries().map(\.name)) == all)
    for name in names {
      let contents = try name.withName { (name) throws(Errno) in
        let file = try directory.fd.open(name, O_RDONLY)
        return try file.fd.readToEnd(limit: 1000)
      }
      #expect(contents == name)
      var moved = name
      moved[0] ^= 0x20
      if all.contains(moved) || moved[0] == 0 || moved[0] == UInt8(ascii: "/") || moved == [UInt8(ascii: ".")]
      {
        continue
      }
      try name.withName { (name) throws(Errno) in
        try moved.withName { (moved) throws(Errno) in
          try directory.fd.rename(name, to: directory.fd, moved, flags: UInt32(CLX_RENAME_NOREPLACE))
          #expect(throws: Errno.ENOENT) { try directory.fd.status(of: name) }
          try directory.fd.rename(moved, to: directory.fd, name, flags: 0)
        }
      }
    }
    for name in names {
      try name.withName { (name) throws(Errno) in try directory.fd.remove(name, directory: false) }
    }
    #expect(try directory.fd.entries().isEmpty)
  }

  @Test func longerNamesAreRefused() throws {
    let mounted = try MountedStore.mounted()
    let base = mounted.path("Users/Shared/")
    for length in [256, 257, 1000, 4000] {
      let long = base + String(repeating: "n", count: length)
      #expect(creat(long, 0o644) == -1 && Errno.last == .ENAMETOOLONG)
      #expect(access(long, F_OK) == -1 && Errno.last == .ENAMETOOLONG)
      #expect(mkdir(long, 0o755) == -1 && Errno.last == .ENAMETOOLONG)
      #expect(rename(base, long) == -1 && [.ENAMETOOLONG, .EPERM].contains(Errno.last))
    }
    #expect(try mounted.daemon() != nil)
  }
}
