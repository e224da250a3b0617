// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Bundles as one file.
@Suite struct ArchiveTests {
  private let temporary: TemporaryDirectory

  init() throws { temporary = try TemporaryDirectory() }

  private func pack(_ name: String = "A.app", as file: String) throws -> [UInt8] {
    let bundle = try TemporaryDirectory.open(temporary.appending(name))
    let parent = try temporary.open()
    let output = try parent.fd.open(file, O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
    try ArchivePacker.pack(bundle.fd, named: name, at: 1_700_000_000, to: output.fd)
    _ = try output.fd.seek(0, SEEK_SET)
    return try output.fd.readToEnd(limit: 1 << 26)
  }

  private func unpack(_ bytes: [UInt8], to name: String = "out", piece: Int = 700) throws -> String {
    try temporary.makeDirectory(name)
    let directory = try TemporaryDirectory.open(temporary.appending(name))
    return try BundlesTests.unpack(bytes, into: directory.fd, piece: piece)
  }

  /// What is in a directory, with modes, targets and sums.
  private func tree(_ name: String) throws -> String {
    let script = """
      cd "$1" && find . -printf '%P %y %m %l\\n' | sort && find . -type f -exec sha256sum {} + | sort -k 2
      """
    let result = try Program.run(["sh", "-c", script, "sh", temporary.appending(name)])
    try #require(result.status == 0, "\(result.errors)")
    return result.output
  }

  private func makeBundle() throws {
    let long = String(repeating: "long-name-", count: 20)
    for place in [
      "A.app", "A.app/Contents", "A.app/Contents/MacOS", "A.app/Contents/empty", "A.app/Contents/\(long)",
      "A.app/Contents/\(long)/\(long)",
    ] { try temporary.makeDirectory(place) }
    try temporary.write("#!/bin/sh\n", to: "A.app/Contents/MacOS/A")
    chmod(temporary.appending("A.app/Contents/MacOS/A"), 0o755)
    try temporary.write(String(repeating: "text ", count: 60_000), to: "A.app/Contents/large")
    try temporary.write("", to: "A.app/Contents/nothing")
    try temporary.write("x", to: "A.app/Contents/\(long)/\(long)/\u{e9} \(long)")
    symlink("MacOS/A", temporary.appending("A.app/Contents/link"))
    symlink("\(long)/\(long)/\u{e9} \(long)", temporary.appending("A.app/Contents/long link"))
  }

  @Test(arguments: [1, 511, 512, 513, 65536])
  func whatIsPackedComesOutAsItWas(piece: Int) throws {
    try makeBundle()
    let bytes = try pack(as: "a.tar")
    #expect(try unpack(bytes, piece: piece) == "A.app")
    #expect(try tree("out/A.app") == tree("A.app"))
    var status = FileStatus()
    #expect(lstat(temporary.appending("out/A.app/Contents/large"), &status) == 0)
    #expect(status.st_mtim.tv_sec == 1_700_000_000)
  }

  /// Whatever times, owners and orders the copy of a bundle has.
  @Test func theSameBundleGivesTheSameBytes() throws {
    try makeBundle()
    let bytes = try pack(as: "a.tar")
    #expect(bytes.count % 512 == 0)
    try temporary.makeDirectory("copy")
    let copied = try Program.run(
      [
        "sh", "-c",
        "cp -R A.app copy/A.app && touch -d 2001-01-01 copy/A.app/Contents/large && mv copy/A.app B.app",
      ],
      in: temporary.path)
    #expect(copied.status == 0, "\(copied.errors)")
    chmod(temporary.appending("B.app/Contents/nothing"), 0o600)
    let other = try TemporaryDirectory.open(temporary.appending("B.app"))
    let parent = try temporary.open()
    let output = try parent.fd.open("b.tar", O_RDWR | O_CREAT, mode: 0o600)
    try ArchivePacker.pack(other.fd, named: "A.app", at: 1_700_000_000, to: output.fd)
    _ = try output.fd.seek(0, SEEK_SET)
    #expect(try output.fd.readToEnd(limit: 1 << 26) == bytes)
  }

  @Test func tarReadsWhatIsPackedAndWritesWhatIsRead() throws {
    try makeBundle()
    _ = try pack(as: "a.tar")
    try temporary.makeDirectory("by-tar")
    let read = try Program.run(["tar", "-xf", "a.tar", "-C", "by-tar"], in: temporary.path)
    #expect(read.status == 0, "\(read.errors)")
    #expect(try tree("by-tar/A.app") == tree("A.app"))
    for form in ["gnu", "pax", "posix"] {
      let written = try Program.run(
        ["tar", "-c", "-H", form, "-f", "\(form).tar", "A.app"], in: temporary.path)
      #expect(written.status == 0, "\(written.errors)")
      let parent = try temporary.open()
      let bytes = try parent.fd.contents(of: "\(form).tar", limit: 1 << 26)
      #expect(try unpack(bytes, to: form) == "A.app")
      #expect(try tree("\(form)/A.app") == tree("A.app"))
    }
  }

  // MARK: Hostile archives

  /// An archive that is refused, and why.
  struct Attempt: CustomTestStringConvertible, Sendable {
    let name: String
    let reason: ArchiveFailure.Reason
    let bytes: [UInt8]
    var testDescription: String { name }

    init(_ name: String, _ reason: ArchiveFailure.Reason, _ make: (inout ArchiveSample) -> Void) {
      self.name = name
      self.reason = reason
      var sample = ArchiveSample.begun()
      make(&sample)
      bytes = sample.ended
    }

    init(_ name: String, _ reason: ArchiveFailure.Reason, bytes: [UInt8]) {
      self.name = name
      self.reason = reason
      self.bytes = bytes
    }
  }

  private static let kinds = TarHeader.Kind.self

  private static var good: [UInt8] {
    var sample = ArchiveSample.begun()
    sample.add("A.app/file", kinds.file, "text")
    return sample.ended
  }

  /// An entry of which a pax record says something.
  private static func record(_ record: String, then path: String = "A.app/x", kind: UInt8 = kinds.file)
    -> [UInt8]
  {
    var sample = ArchiveSample.begun()
    sample.add("PaxHeader", kinds.records, record)
    sample.add(path, kind)
    return sample.ended
  }

  private static func changed(_ at: Int, _ new: [UInt8], mending: Bool = true) -> [UInt8] {
    var bytes = good
    for (index, byte) in new.enumerated() { bytes[at + index] = byte }
    if mending { ArchiveSample.mend(&bytes, at: at / 512 * 512) }
    return bytes
  }

  static var attempts: [Attempt] {
    [
      Attempt("absolute path", .absolutePath) { $0.add("/tmp/x") },
      Attempt("way out", .dots) { $0.add("A.app/../x") },
      Attempt("way out at once", .dots) { $0.add("../A.app/x") },
      Attempt("dot", .dots) { $0.add("A.app/./x") },
      Attempt("empty name", .dots) { $0.add("A.app//x") },
      Attempt("file with a slash at its end", .dots) { $0.add("A.app/x/") },
      Attempt("link that is absolute", .linkLeadsOut("/tmp/x")) {
        $0.add("A.app/x", kinds.symlink, target: "/tmp/x")
      },
      Attempt("link that leads out", .linkLeadsOut("../x")) {
        $0.add("A.app/x", kinds.symlink, target: "../x")
      },
      Attempt("link that leads out and back", .linkLeadsOut("a/../../A.app/x")) {
        $0.add("A.app/x", kinds.symlink, target: "a/../../A.app/x")
      },
      Attempt("link to nothing", .badName("its target can't be one")) { $0.add("A.app/x", kinds.symlink) },
      Attempt("file through a link", .noDirectory) {
        $0.add("A.app/x", kinds.symlink, target: "y")
        $0.add("A.app/y/", kinds.directory)
        $0.add("A.app/x/z", kinds.file, "text")
      },
      Attempt("file below a file", .noDirectory) {
        $0.add("A.app/x", kinds.file, "text")
        $0.add("A.app/x/y")
      },
      Attempt("file without its directory", .noDirectory) { $0.add("A.app/x/y") },
      Attempt("hard link", .hardLink) { $0.add("A.app/x", kinds.hardLink, target: "/etc/passwd") },
      Attempt("character device", .device) { $0.add("A.app/x", kinds.characterDevice) },
      Attempt("block device", .device) { $0.add("A.app/x", kinds.blockDevice) },
      Attempt("fifo", .fifo) { $0.add("A.app/x", kinds.fifo) },
      Attempt("sparse file", .unknownType(UInt8(ascii: "S"))) { $0.add("A.app/x", UInt8(ascii: "S")) },
      Attempt("twice", .twice) {
        $0.add("A.app/x", kinds.file, "one")
        $0.add("A.app/x", kinds.file, "two")
      },
      Attempt("directory twice", .twice) { $0.add("A.app/", kinds.directory) },
      Attempt("file over a link", .twice) {
        $0.add("A.app/x", kinds.symlink, target: "y")
        $0.add("A.app/x", kinds.file, "two")
      },
      Attempt("setuid", .setID) { $0.add("A.app/x", mode: 0o4755) },
      Attempt("setgid", .setID) { $0.add("A.app/x", mode: 0o2755) },
      Attempt("two bundles", .severalBundles("A.app")) { $0.add("B.app/", kinds.directory) },
      Attempt("something beside it", .severalBundles("A.app")) { $0.add("file") },
      Attempt("control character", .badName("it contains a control character")) { $0.add("A.app/\u{1b}[2J") },
      Attempt("control character of two bytes", .badName("it contains a control character")) {
        $0.add("A.app/\u{9b}2J")
      },
      Attempt("long name", .badName("it is longer than 255 bytes")) {
        $0.add("A.app/" + String(repeating: "a", count: 256))
      },
      Attempt("directory with contents", .damaged("something that is not a file has contents")) {
        $0.add("A.app/x/", kinds.directory, "text")
      },
      Attempt(
        "file instead of a bundle", .topIsNoDirectory,
        bytes: {
          var sample = ArchiveSample()
          sample.add("A.app", kinds.file, "text")
          return sample.ended
        }()),
      Attempt(
        "not UTF-8", .badName("it is not valid UTF-8"),
        bytes: changed(512, Array("A.app/\u{0}".utf8).map { $0 == 0 ? 0xff : $0 })),
      // The archive as such.
      Attempt("nothing", .empty, bytes: []),
      Attempt("no entry", .empty, bytes: [UInt8](repeating: 0, count: 1024)),
      Attempt("text", .notTar(""), bytes: Array("this is a text".utf8)),
      Attempt(
        "gzip", .notTar("; it is compressed, so run 'gzip -d' first"),
        bytes: [0x1f, 0x8b] + [UInt8](repeating: 1, count: 600)),
      Attempt("zip", .notTar("; it is a zip archive"), bytes: Array("PK\u{3}\u{4}".utf8)),
      Attempt("no end", .truncated, bytes: Array(good.dropLast(1024))),
      Attempt("half an end", .truncated, bytes: Array(good.dropLast(512))),
      Attempt("cut in a file", .truncated, bytes: Array(good.dropLast(1300))),
      Attempt("cut in a header", .truncated, bytes: Array(good.prefix(600))),
      Attempt("something behind it", .trailing, bytes: good + Array("more".utf8)),
      Attempt("an archive behind it", .trailing, bytes: good + good),
      Attempt("zeros without end", .trailing, bytes: good + [UInt8](repeating: 0, count: 2 << 20)),
      Attempt(
        "wrong sum", .damaged("the sum of a header is wrong"), bytes: changed(518, [0x42], mending: false)),
      Attempt(
        "hidden padding", .damaged("something is hidden between two entries"),
        bytes: changed(1100, [1], mending: false)),
      Attempt("no header", .damaged("an entry has no header"), bytes: changed(512 + 257, [0])),
      Attempt("no number", .damaged("a header has a bad number"), bytes: changed(512 + 124, [0x39])),
      Attempt("negative size", .damaged("a header has a bad number"), bytes: changed(512 + 124, [0xff])),
      Attempt(
        "size beyond all", .damaged("a header has a bad number"),
        bytes: changed(512 + 124, [0x80] + [UInt8](repeating: 0xff, count: 11))),
      Attempt(
        "size beyond the limit", .tooLarge(1 << 40),
        bytes: changed(512 + 124, [0x80, 0, 0, 0, 0x7f] + [UInt8](repeating: 0xff, count: 7))),
      // What is said outside of headers.
      Attempt("record that leads out", .dots, bytes: record("path=A.app/../../x".record)),
      Attempt("absolute record", .absolutePath, bytes: record("path=/x".record)),
      Attempt(
        "record with a zero", .damaged("a name is empty, or has a zero in it"),
        bytes: record("path=A.app/a\u{0}b".record)),
      Attempt(
        "two names", .damaged("a name is there twice"),
        bytes: record("path=A.app/a".record + "path=A.app/b".record)),
      Attempt("no length", .damaged("a record has no proper length"), bytes: record("path=A.app/a\n")),
      Attempt(
        "length beyond it", .damaged("a record has no proper length"), bytes: record("99999999 path=x\n")),
      Attempt("length of nothing", .damaged("a record has no proper length"), bytes: record("3 \n")),
      Attempt("no key", .damaged("a record has no name"), bytes: record("path".record)),
      Attempt("bad size", .damaged("a record has no proper size"), bytes: record("size=-1".record)),
      Attempt("huge size", .tooLarge(1 << 40), bytes: record("size=999999999999999999".record)),
      Attempt(
        "holes", .damaged("a file has holes ('tar --sparse')"), bytes: record("GNU.sparse.major=1".record)),
      Attempt(
        "link by a record", .linkLeadsOut("/x"), bytes: record("linkpath=/x".record, kind: kinds.symlink)),
      Attempt("name for all", .damaged("one name is given to all entries")) {
        $0.add("Global", kinds.globalRecords, "path=A.app/all".record)
      },
      Attempt("name without a file", .damaged("a name has no file")) {
        $0.add("PaxHeader", kinds.records, "path=A.app/a".record)
      },
      Attempt("long name that leads out", .dots) {
        $0.add("././@LongLink", kinds.longName, "A.app/../x\u{0}")
        $0.add("A.app/x")
      },
      Attempt("two long names", .damaged("a name is there twice")) {
        $0.add("././@LongLink", kinds.longName, "A.app/a\u{0}")
        $0.add("././@LongLink", kinds.longName, "A.app/b\u{0}")
        $0.add("A.app/x")
      },
      Attempt("name beyond the limit", .damaged("a name is too long")) {
        $0.add("././@LongLink", kinds.longName, String(repeating: "a", count: 1 << 20 + 1))
      },
    ]
  }

  @Test(arguments: attempts)
  func hostileArchivesAreRefusedByName(attempt: Attempt) throws {
    try temporary.write("mine", to: "x")
    try temporary.makeDirectory("in")
    let directory = try TemporaryDirectory.open(temporary.appending("in"))
    let failure = #expect(throws: ArchiveFailure.self) {
      try BundlesTests.unpack(attempt.bytes, into: directory.fd)
    }
    #expect(failure?.reason == attempt.reason)
    #expect(failure.map { !$0.description.isEmpty } == true)
    // Nothing has come out of the directory.
    #expect(try temporary.names() == ["in", "x"] && temporary.text(of: "x") == "mine")
    #expect(Set(try temporary.names(in: "in")).isSubset(of: ["A.app"]))
  }

  @Test func thereAreLimits() throws {
    var limits = ArchiveUnpacker.Limits()
    limits.entries = 5
    limits.depth = 3
    limits.bytes = 10
    func reason(_ make: (inout ArchiveSample) -> Void) throws -> ArchiveFailure.Reason? {
      let other = try TemporaryDirectory()
      let directory = try other.open()
      var sample = ArchiveSample.begun()
      make(&sample)
      do throws(ArchiveFailure) {
        _ = try BundlesTests.unpack(sample.ended, into: directory.fd, limits: limits)
        return nil
      } catch {
        return error.reason
      }
    }
    #expect(try reason { sample in for n in 1...4 { sample.add("A.app/\(n)") } } == nil)
    #expect(try reason { sample in for n in 1...5 { sample.add("A.app/\(n)") } } == .tooMany(5))
    #expect(
      try reason {
        $0.add("A.app/a/", Self.kinds.directory)
        $0.add("A.app/a/b/", Self.kinds.directory)
      } == nil)
    #expect(
      try reason {
        $0.add("A.app/a/", Self.kinds.directory)
        $0.add("A.app/a/b/", Self.kinds.directory)
        $0.add("A.app/a/b/c")
      } == .tooDeep(3))
    #expect(
      try reason {
        $0.add("A.app/a", Self.kinds.file, "12345")
        $0.add("A.app/b", Self.kinds.file, "67890")
      } == nil)
    #expect(
      try reason {
        $0.add("A.app/a", Self.kinds.file, "12345")
        $0.add("A.app/b", Self.kinds.file, "678901")
      } == .tooLarge(10))
  }

  @Test func theOrdinaryIsTaken() throws {
    var sample = ArchiveSample.begun()
    sample.add("Global", Self.kinds.globalRecords, "comment=made by git".record)
    sample.add("PaxHeader", Self.kinds.records, "mtime=1.5".record + "SCHILY.xattr.user.x=y".record)
    sample.add("A.app/old", Self.kinds.oldFile, "text", mode: 0o755)
    sample.add("././@LongLink", Self.kinds.longName, "A.app/a name of GNU's\u{0}")
    sample.add("cut", Self.kinds.file, "text")
    sample.add("A.app/b", Self.kinds.symlink, target: "./a name of GNU's")
    #expect(try unpack(sample.ended + [UInt8](repeating: 0, count: 9216)) == "A.app")
    #expect(try temporary.names(in: "out/A.app") == ["a name of GNU's", "b", "old"])
    #expect(temporary.text(of: "out/A.app/b") == "text")
  }
}
