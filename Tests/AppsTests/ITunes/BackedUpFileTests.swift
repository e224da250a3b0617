// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
internal import Glibc
internal import LinuxIO
internal import PropertyLists
internal import Store
internal import TestSupport
internal import Testing

/// The descriptions of files in backups: objects in keyed archives.
struct BackedUpFileTests {
  private func sample() throws -> BackedUpFile {
    var file = BackedUpFile(mode: 0o120755, size: 7, modified: -5, changed: 9, inode: 3, uid: 4, gid: 5)
    file.target = "../\u{e9}"
    file.attributes = try #require(
      PropertyList.Dictionary([("com.example.tag", .data([0, 1])), ("org.insula.flags", .data([2]))]))
    return file
  }

  @Test func isReadAsItWasWritten() throws {
    let file = try sample()
    let found = try BackedUpFile(archive: file.archive(of: "Documents/a"))
    #expect((found.mode, found.size, found.modified) == (0o120755, 7, -5))
    #expect(found.target == "../\u{e9}")
    #expect(PropertyList.dictionary(found.attributes) == .dictionary(file.attributes))
  }

  /// Python's own reader of property lists sees the same.
  @Test func isAKeyedArchiveToOthers() throws {
    let temporary = try TemporaryDirectory()
    let archive = try sample().archive(of: "Documents/a").map { String(UInt32($0), radix: 16) }
    try temporary.write(archive.joined(separator: " "), to: "archive")
    let result = try Program.run([
      "python3", "-c",
      """
      import plistlib, sys
      a = plistlib.loads(bytes(int(x, 16) for x in open(sys.argv[1]).read().split()))
      o = a["$objects"]; f = o[a["$top"]["root"].data]
      print(a["$version"], a["$archiver"], o[0], o[f["$class"].data]["$classname"])
      print(o[f["RelativePath"].data], f["Mode"], f["Size"], f["LastModified"], f["UserID"], f["GroupID"])
      print(plistlib.loads(o[f["ExtendedAttributes"].data]["NS.data"]))
      """, temporary.appending("archive"),
    ])
    #expect(
      result.output == """
        100000 NSKeyedArchiver $null MBFile
        Documents/a 41453 7 -5 4 5
        {'com.example.tag': b'\\x00\\x01', 'org.insula.flags': b'\\x02'}

        """, "\(result.output)\(result.errors)")
  }

  private static let classes = PropertyList(entries: [("$classname", .string("MBFile"))])
  private static let fields: [(key: String, value: PropertyList)] = [
    ("$class", .uid(2)), ("Mode", .integer(0o100644)), ("Size", .integer(1)), ("LastModified", .integer(1)),
  ]

  private static func archive(
    _ fields: [(key: String, value: PropertyList)], root: PropertyList = .uid(1),
    objects more: [PropertyList] = []
  ) -> PropertyList {
    PropertyList(entries: [
      ("$archiver", .string("NSKeyedArchiver")), ("$top", PropertyList(entries: [("root", root)])),
      ("$objects", .array([.string("$null"), PropertyList(entries: fields), classes] + more)),
    ])
  }

  private static let lists: [(list: PropertyList, words: String)] = [
    (archive(fields), ""),
    (.array([]), "not a keyed archive"), (PropertyList(entries: []), "not a keyed archive"),
    (PropertyList(entries: [("$archiver", .string("NSKeyedArchiver"))]), "not a keyed archive"),
    (archive(fields, root: .uid(3)), "not an MBFile"),
    (archive(fields, root: .uid(.max)), "not a keyed archive"),
    (archive(fields, root: .integer(1)), "not an MBFile"), (archive(fields, root: .uid(0)), "not an MBFile"),
    // Circles: its own class, and objects that are each other's.
    (archive(fields.dropFirst() + [("$class", .uid(1))]), "not an MBFile"),
    (archive(fields + [("Target", .uid(1))]), "its target is no text"),
    (archive(fields + [("Target", .uid(77))]), "its target is no text"),
    (
      archive(
        fields + [("ExtendedAttributes", .uid(3))], objects: [PropertyList(entries: [("NS.data", .uid(3))])]),
      "extended attributes can't be read"
    ),
    (
      archive(fields + [("ExtendedAttributes", .uid(3))], objects: [.data(Array("bplist00".utf8))]),
      "extended attributes can't be read"
    ),
    (archive(fields + [("ExtendedAttributes", .uid(0))]), ""),
    (archive(fields.filter { $0.key != "Mode" }), "lacks a mode"),
    (archive(fields.filter { $0.key != "Size" }), "lacks a mode"),
    (archive(fields.filter { $0.key != "LastModified" }), "lacks a mode"),
    (archive(fields.filter { $0.key != "$class" }), "not an MBFile"),
    (archive(fields.filter { $0.key != "Mode" } + [("Mode", .integer(-1))]), "lacks a mode"),
    (archive(fields.filter { $0.key != "Mode" } + [("Mode", .string("1"))]), "lacks a mode"),
    (archive(fields.filter { $0.key != "Size" } + [("Size", .integer(.min))]), "lacks a mode"),
    (archive(fields.filter { $0.key != "Size" } + [("Size", .real(.nan))]), "lacks a mode"),
  ]

  @Test(arguments: lists.indices) func archivesAreRefused(index: Int) throws {
    let (list, words) = Self.lists[index]
    do throws(BackupFlaw) {
      let bytes = try? list.binary()
      _ = try BackedUpFile(archive: bytes ?? [])
      #expect(words.isEmpty)
    } catch {
      #expect(!words.isEmpty && error.reason.contains(words), "\(index): \(error.reason)")
    }
  }

  /// A short list that stands for very many values, and one in itself.
  @Test func archivesThatGrowAreRefused() throws {
    var value = PropertyList.array([])
    for _ in 0..<20 { value = .array([value, value]) }
    #expect(throws: BackupFlaw.self) { try BackedUpFile(archive: [UInt8]("bplist00".utf8)) }
    let start = monotonicNanoseconds()
    #expect(throws: BackupFlaw.self) {
      try BackedUpFile(archive: Self.archive(Self.fields + [("x", value)]).binary())
    }
    #expect(monotonicNanoseconds() - start < 60_000_000_000)
    let circle =
      Array("bplist00".utf8) + [0xa1, 0, 8] + [0, 0, 0, 0, 0, 0, 1, 1] + Self.number(1)
      + Self.number(0) + Self.number(10)
    #expect(throws: BackupFlaw.self) { try BackedUpFile(archive: circle) }
  }

  private static func number(_ number: UInt8) -> [UInt8] { [0, 0, 0, 0, 0, 0, 0, number] }

  @Test func noArchiveStopsTheReader() throws {
    let whole = try sample().archive(of: "Documents/a")
    var random = SeededRandom(seed: 7)
    var accepted = 0
    let count = fuzzInputs(usually: 20_000)
    for _ in 0..<count {
      var bytes = whole
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        bytes[Int.random(in: 8..<bytes.count, using: &random)] = UInt8.random(in: 0 ... .max, using: &random)
      }
      if Bool.random(using: &random) { bytes.remove(at: Int.random(in: 8..<bytes.count, using: &random)) }
      if (try? BackedUpFile(archive: bytes)) != nil { accepted += 1 }
    }
    #expect(accepted > count / 200 && accepted < count)
  }
}
