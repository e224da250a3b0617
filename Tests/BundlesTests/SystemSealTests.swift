// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

@Suite struct SystemSealTests {
  private static let example = """
    insula-system-seal 1
    version 26.1%20beta
    team TEAM
    d 755 0 0 - - - .
    d 755 0 0 - - \(String(repeating: "0a", count: 32)) Library
    f 4711 1 2 18446744073709 \(String(repeating: "9f", count: 32)) - Library/a%20b%0a%25%ff
    l 777 0 0 8 ../near%20 - Library/link

    """

  private func read(_ text: String) throws(MalformedSystemSeal) -> SystemSeal {
    try SystemSeal(reading: Array(text.utf8))
  }

  @Test func formHasOneSpelling() throws {
    let seal = try read(Self.example)
    #expect(seal.version == "26.1 beta" && seal.team == "TEAM" && seal.entries.count == 4)
    #expect(seal.bytes == Array(Self.example.utf8))
    let file = try #require(seal.entry(at: Array("Library/a b\n%".utf8) + [0xff]))
    #expect(file.mode == 0o4711 && file.uid == 1 && file.gid == 2 && file.attributes == nil)
    #expect(file.kind == .file(size: 18_446_744_073_709, digest: Array(repeating: 0x9f, count: 32)))
    #expect(seal.entry(at: Array("Library".utf8))?.attributes == Array(repeating: 10, count: 32))
    #expect(seal.entry(at: Array("Library/link".utf8))?.kind == .link(target: Array("../near ".utf8)))
    #expect(seal.entry(at: []) != nil && seal.entry(at: Array("Library/b".utf8)) == nil)
    #expect(try seal.rootHash().count == 32)
  }

  @Test(arguments: [
    ("insula-system-seal 1", "insula-system-seal 2"), ("version ", "versions "), ("team TEAM\n", ""),
    ("d 755 0 0 - - - .\n", ""), ("d 755 0 0 - - - .\n", "f 755 0 0 - - - .\n"), ("d 755", "d 0755"),
    ("d 755", "d 10755"), ("d 755 0", "d 755 00"), ("d 755 0", "d 755 -0"), ("755 0 0 -", "755  0 0 -"),
    ("4711 1", "4711 4294967295"), ("4711 1", "4711 4294967296"), (" Library\n", " Library/\n"),
    (" Library\n", " /Library\n"), (" Library\n", " Library%00\n"), ("Library/link", "Library/../link"),
    ("Library/link", "Library/./link"), ("Library/link", "Library//link"), ("Library/link", "Other/link"),
    ("Library/link", "_CodeSignature/link"), ("Library/link", "A"),
    ("Library/link", "Library/a%20b%0a%25%ff"),
    ("a%20b", "a b"), ("a%20b", "%6120b"), ("%0a", "%0A"), ("%0a", "%0"), ("%0a", "\t"),
    (" 8 ../near%20", " 9 ../near%20"), (" 8 ../near%20", " 0 "), ("9f9f", "9F9f"), ("9f9f", "9f"),
    ("18446744073709 ", "99999999999999999999 "), ("18446744073709", "+8446744073709"), ("f 4711", "c 4711"),
    ("link\n", "link"), ("link\n", "link\n\n"), ("link\n", "link x\n"), ("%20beta", "%ff"),
  ])
  func otherSpellingsAreRefused(old: String, new: String) {
    let text = Self.example.replacing(old, with: new, maxReplacements: 1)
    #expect(text != Self.example)
    #expect(throws: MalformedSystemSeal.self) { try read(text) }
  }

  @Test func damagedSealsAreRefusedOrMeanWhatTheySay() {
    var random = SeededRandom(seed: 26)
    let bytes = Array(Self.example.utf8)
    for _ in 0..<20_000 {
      var damaged = bytes
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let index = Int.random(in: 0..<damaged.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: damaged[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 1: damaged.remove(at: index)
        default: damaged.insert(UInt8.random(in: 0...255, using: &random), at: index)
        }
      }
      guard let seal = try? SystemSeal(reading: damaged) else { continue }
      #expect(seal.bytes == damaged)
    }
  }

  @Test func everyBitCounts() throws {
    let temporary = try TemporaryDirectory()
    var random = SeededRandom(seed: 4)
    var files: [(path: String, bytes: [UInt8])] = []
    for directory in 0..<5 {
      try temporary.makeDirectory("\(directory)")
      for number in 0..<8 {
        let bytes = (0..<(40 + number * 700)).map { _ in UInt8.random(in: 32...126, using: &random) }
        let path = try temporary.write(String(decoding: bytes, as: UTF8.self), to: "\(directory)/\(number)")
        files.append((path, bytes))
      }
    }
    let top = try temporary.open()
    let seal = try SystemSeal(of: top.fd, version: "1", team: "T", keepingOwners: false)
    #expect(try seal.findings(in: top.fd, .notYet).isEmpty)
    func write(_ bytes: [UInt8], to path: String) throws {
      let file = try path.withName { (name) throws(Errno) in
        try FD.cwd.openFollowing(name, O_WRONLY | O_TRUNC)
      }
      try file.fd.writeAll(bytes)
    }
    for round in 0..<2000 {
      let (path, bytes) = files[Int.random(in: 0..<files.count, using: &random)]
      let (other, others) = files[Int.random(in: 0..<files.count, using: &random)]
      let kind = Int.random(in: 0..<7, using: &random)
      if kind == 6, path == other { continue }
      var changed = bytes
      let index = Int.random(in: 0..<bytes.count, using: &random)
      switch kind {
      case 0, 1, 2: changed[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      case 3: changed.removeSubrange(index...)
      case 4: changed.append(0)
      case 5: chmod(path, 0o644 ^ (1 << UInt32.random(in: 0..<8, using: &random)))
      default: rename(path, path + ".away"); rename(other, path); rename(path + ".away", other)
      }
      if kind < 5 { try write(changed, to: path) }
      let found = try seal.findings(in: top.fd, .notYet)
      #expect(!found.isEmpty, "damage \(kind) of \(path) in round \(round)")
      chmod(path, 0o644)
      try write(bytes, to: path)
      try write(others, to: other)
    }
    #expect(try seal.findings(in: top.fd, .notYet).isEmpty)
  }
}
