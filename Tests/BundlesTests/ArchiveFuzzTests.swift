// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Bytes that were archives or programs before something happened to them.
@Suite struct ArchiveFuzzTests {
  /// All inputs of a run; `make fuzz` asks for a million.
  static let inputs = fuzzInputs(usually: 10_000)

  private static var samples: [[UInt8]] {
    let kinds = TarHeader.Kind.self
    var plain = ArchiveSample.begun()
    plain.add("A.app/Contents/", kinds.directory)
    plain.add("A.app/Contents/file", kinds.file, String(repeating: "text", count: 200), mode: 0o755)
    plain.add("A.app/Contents/link", kinds.symlink, target: "file")
    var long = ArchiveSample.begun()
    long.add("A.app/" + String(repeating: "a", count: 120), kinds.file, "text")
    long.add("././@LongLink", kinds.longName, "A.app/" + String(repeating: "b", count: 130) + "\u{0}")
    long.add("cut", kinds.file, "text")
    long.add("PaxHeader", kinds.records, "mtime=1.5".record + "path=A.app/other".record + "size=100".record)
    long.add("A.app/short", kinds.file, String(repeating: "x", count: 100))
    return [plain.ended, long.ended]
  }

  private static func damaged(_ random: inout SeededRandom) -> [UInt8] {
    var bytes = samples.randomElement(using: &random) ?? []
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      if Bool.random(using: &random) {
        ByteDamage.act(&bytes, samples, &random)
      } else if bytes.count >= 512 {
        // Where a header says something, and with the right sum.
        let block = Int.random(in: 0..<(bytes.count / 512), using: &random) * 512
        let field =
          [0, 5, 100, 124, 130, 135, 136, 156, 157, 257, 263, 345].randomElement(using: &random) ?? 0
        bytes[block + field] =
          [
            UInt8.random(in: 0...255, using: &random), 0, 0x2f, 0x2e, 0x80, 0xff, 0x37, 0x35, 0x32,
          ].randomElement(using: &random) ?? 0
      }
    }
    if Bool.random(using: &random) {
      for block in stride(from: 0, to: bytes.count, by: 512) { ArchiveSample.mend(&bytes, at: block) }
    }
    return bytes
  }

  /// Whatever is read: names that go down from the bundle, and no more bytes than there are.
  @Test(arguments: [1, 2] as [UInt64])
  func noArchiveStopsTheReader(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var accepted = 0
    for _ in 0..<(Self.inputs / 2) {
      let bytes = Self.damaged(&random)
      var rest = bytes[...]
      var reader = TarReader { limit in
        let part = rest.prefix(min(limit, 300))
        rest = rest.dropFirst(part.count)
        return part.isEmpty ? nil : Array(part)
      }
      var read = 0
      do throws(ArchiveFailure) {
        while let header = try reader.next() {
          let entry = try ArchiveEntry(header)
          #expect(!entry.names.isEmpty && entry.size >= 0)
          for name in entry.names {
            #expect(!name.isEmpty && name != [0x2e] && name != [0x2e, 0x2e] && !name.contains(0x2f))
            #expect(!name.contains(0) && name.count <= 255)
          }
          while let part = try reader.contents() { read += part.count }
        }
        accepted += 1
      } catch {
        #expect(!error.description.isEmpty)
      }
      #expect(read <= bytes.count)
    }
    #expect(accepted > Self.inputs / 200)
  }

  /// With the disk: whatever comes out lies in the one directory.
  @Test func noArchiveReachesOut() throws {
    let temporary = try TemporaryDirectory()
    try temporary.write("mine", to: "decoy")
    var random = SeededRandom(seed: 3)
    for _ in 0..<(Self.inputs / 40) {
      try temporary.makeDirectory("in")
      let directory = try TemporaryDirectory.open(temporary.appending("in"))
      _ = try? unpack(Self.damaged(&random), into: directory.fd)
      let names = try directory.fd.entries().count
      #expect(names <= 1)
      let parent = try temporary.open()
      try parent.fd.removeTree("in")
    }
    #expect(try temporary.names() == ["decoy"] && temporary.text(of: "decoy") == "mine")
  }

  // MARK: Programs

  private static func read(_ bytes: [UInt8]) -> Result<ELFFile, ELFFile.Refusal> {
    Result { () throws(ELFFile.Refusal) in
      try ELFFile { offset, count in
        guard let start = Int(exactly: offset), start < bytes.count else { return [] }
        return Array(bytes[start...].prefix(count))
      }
    }
  }

  @Test(arguments: [4, 5] as [UInt64])
  func noProgramStopsTheReader(seed: UInt64) throws {
    let samples = [ELFSample.program.bytes, ELFSample(libraries: ["a"], runPath: "/x").bytes]
    var random = SeededRandom(seed: seed)
    var accepted = 0
    for _ in 0..<(Self.inputs / 2) {
      var bytes = samples.randomElement(using: &random) ?? []
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        if Bool.random(using: &random), !bytes.isEmpty {
          bytes[Int.random(in: 0..<bytes.count, using: &random)] =
            [0, 1, 0x7f, 0x80, 0xff].randomElement(using: &random) ?? 0
        } else {
          ByteDamage.act(&bytes, samples, &random)
        }
      }
      if case .success(let file) = Self.read(bytes) {
        accepted += 1
        #expect(file.libraries.count <= 1001)
      }
    }
    #expect(accepted > Self.inputs / 200)
  }

  @Test func noCacheOrFirstLineStopsTheReader() throws {
    let samples = [LoaderCacheSample.new, LoaderCacheSample.old, Array("#!/usr/bin/env python3 -x\n".utf8)]
    var random = SeededRandom(seed: 6)
    for _ in 0..<(Self.inputs / 4) {
      var bytes = samples.randomElement(using: &random) ?? []
      for _ in 0..<Int.random(in: 1...4, using: &random) { ByteDamage.act(&bytes, samples, &random) }
      for path in LoaderCache(bytes).paths(of: "libx.so.1") { #expect(path.hasPrefix("/")) }
      if let line = ScriptLine(bytes) { #expect(!line.interpreter.isEmpty) }
    }
  }
}
