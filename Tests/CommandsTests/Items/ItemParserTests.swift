// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
@testable internal import Commands
internal import Glibc
internal import JSON
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

/// The process that looks into files, in its sandbox, and its filter of system calls.
@Suite(.enabled(if: Bubblewrapped.isPossible, "needs bubblewrap and user namespaces"))
struct ItemParserTests {
  private let temporary: TemporaryDirectory
  private let parser: ItemParserProcess

  init() throws {
    temporary = try TemporaryDirectory()
    parser = try Bubblewrapped.parser(patience: 5000)
  }

  private func parse(
    _ kind: PrivateItems, _ bytes: [UInt8], type: String, first: Int = 0, most: Int = 1000, room: Int = 48_000
  ) throws -> ItemParserProcess.Outcome {
    let path = temporary.appending("file")
    let written = OwnedFD(owning: creat(path, 0o644))
    try written.fd.writeAll(bytes)
    return try parse(kind, path, type, first, most, room)
  }

  private func parse(
    _ kind: PrivateItems, _ path: String, _ type: String, _ first: Int = 0, _ most: Int = 1000,
    _ room: Int = 48_000
  ) throws -> ItemParserProcess.Outcome {
    let file = try FD.cwd.openFollowing(path, O_RDONLY)
    return parser.parse(
      ParseRequest(kind: kind, file: "1.0", type: type, first: first, most: most, room: room), file.fd)
  }

  private func items(_ outcome: ItemParserProcess.Outcome) throws -> [JSONValue] {
    guard case .found(let reply) = outcome else { throw Errno.EINVAL }
    return reply.items
  }

  /// Every process that parses may take as much as is said, beyond the program itself.
  @Test func memoryIsLimited() throws {
    _ = try parse(.songs, MadeSong.mp3([("TIT2", "A Song")]), type: "mp3")
    let found = ProcessTable().descendants(of: ProcessID.own).map(\.pid).compactMap { pid -> Int? in
      let words = FD.text(of: "/proc/\(pid)/cmdline", limit: 1 << 16)?.split(separator: "\0") ?? []
      guard words.first?.hasSuffix("/insula") == true, words.last == Substring(ItemParser.word) else {
        return nil
      }
      let line = FD.text(of: "/proc/\(pid)/limits", limit: 1 << 16)?.split(separator: "\n").first {
        $0.hasPrefix("Max address space")
      }
      let pages = FD.text(of: "/proc/\(pid)/statm", limit: 256)?.split(separator: " ").first
      guard let limit = line?.split(separator: " ").dropFirst(3).first.flatMap({ Int($0) }),
        let size = pages.flatMap({ Int($0) })
      else { return nil }
      return limit - size * Int(getpagesize())
    }
    #expect(!found.isEmpty && found.allSatisfy { $0 <= Int(ItemParser.memory) }, "\(found)")
  }

  /// A frame of a tag that unpacks to 200 megabytes: nothing is told of the song, and the next one is read.
  @Test func bombIsLeftOut() throws {
    let path = temporary.appending("bomb.mp3")
    let script = """
      import sys, zlib
      size = int(sys.argv[2])
      packer = zlib.compressobj(1)
      packed = b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()
      def frame(name, content, flags):
          return name + len(content).to_bytes(4, "big") + bytes([0, flags]) + content
      frames = frame(b"TIT2", b"\\3A Song", 0) + frame(b"ZZZZ", size.to_bytes(4, "big") + packed, 0x80)
      length = bytes(len(frames) >> shift & 0x7f for shift in (21, 14, 7, 0))
      sound = (b"\\xff\\xfb\\x90\\0" + bytes(413)) * 40
      open(sys.argv[1], "wb").write(b"ID3\\3\\0\\0" + length + frames + sound)
      """
    for (megabytes, isRead) in [(1, true), (200, false), (1, true)] {
      let made = try Program.run(["/usr/bin/python3", "-c", script, path, "\(megabytes << 20)"])
      try #require(made.status == 0, "\(made)")
      switch try parse(.songs, path, "mp3") {
      case .found(let reply): #expect(isRead && reply.items.count == 1, "\(megabytes)")
      case .lost: #expect(!isRead, "\(megabytes)")
      case .impossible(let reason): Issue.record("\(reason)")
      }
    }
  }

  @Test func songIsTold() throws {
    let tags = [("TIT2", "A Song \u{202e}"), ("TPE1", "Somebody"), ("TALB", "Album"), ("TRCK", "3/9")]
    let found = try items(parse(.songs, MadeSong.mp3(tags), type: "mp3"))
    #expect(
      found == [
        .object([
          "title": .string("A Song \u{202e}"), "artist": .string("Somebody"), "album": .string("Album"),
          "track": .integer(3), "duration": .integer(1),
        ])
      ])
    // By content it may be anything.
    #expect(try items(parse(.songs, Array("no music".utf8), type: "mp3")).isEmpty)
    #expect(try items(parse(.songs, MadeSong.mp3(tags), type: "../secret")).isEmpty)
    // Tags without end.
    let long = [("TIT2", String(repeating: "x", count: 100_000))]
    guard case .object(let fields)? = try items(parse(.songs, MadeSong.mp3(long), type: "mp3")).first else {
      Issue.record("it is not told")
      return
    }
    #expect(fields["title"]?.description.utf8.count == 500)
  }

  @Test func cardsAreToldPageByPage() throws {
    let cards = (0..<100).map { "BEGIN:VCARD\nFN:Person \($0)\nEND:VCARD\n" }.joined()
    let bytes = Array(cards.utf8)
    guard case .found(let first) = try parse(.contacts, bytes, type: "vcf", most: 30),
      case .found(let second) = try parse(.contacts, bytes, type: "vcf", first: 30, room: 1000),
      case .found(let again) = try parse(.contacts, bytes, type: "vcf", first: 30, room: 1000),
      case .found(let last) = try parse(.contacts, bytes, type: "vcf", first: 99)
    else { throw Errno.EINVAL }
    #expect(first.items.count == 30 && first.next == 30)
    #expect(second.next == 30 + second.items.count && second.items.count < 20 && second == again)
    #expect(last.items.count == 1 && last.next == nil)
  }

  /// One that takes too long, and one that is none: the next one is read all the same.
  @Test func sparseSongTakesNoTime() throws {
    let path = temporary.appending("sparse.mp3")
    let made = OwnedFD(owning: creat(path, 0o644))
    #expect(ftruncate(made.fd.raw, 10 << 30) == 0)
    let begin = monotonicNanoseconds()
    _ = try parse(.songs, path, "mp3")
    #expect(monotonicNanoseconds() - begin < 8_000_000_000)
    #expect(try items(parse(.songs, MadeSong.mp3([("TIT2", "Next")]), type: "mp3")).count == 1)
    #expect(try items(parse(.contacts, temporary.path, "vcf")).isEmpty)
  }

  /// Damaged music; what ends the process is left out.
  @Test func damagedSongsDoNoHarm() throws {
    var random = SeededRandom(seed: 7)
    let whole = MadeSong.mp3([("TIT2", "A Song"), ("TALB", "Album")])
    for _ in 0..<200 {
      var bytes = whole
      for _ in 0..<8 {
        bytes[Int.random(in: 0..<min(200, bytes.count), using: &random)] = UInt8.random(
          in: 0...255, using: &random)
      }
      let type = PrivateItems.songs.fileExtensions.randomElement(using: &random) ?? "mp3"
      switch try parse(.songs, bytes, type: type) {
      case .found(let reply): #expect(reply.items.count <= 1)
      case .lost: break
      case .impossible(let reason): Issue.record("\(reason)")
      }
    }
  }

  /// Whoever has taken it over reads what it was given, and does nothing else.
  @Test func filterRefusesWhatChangesSomething() throws {
    let path = try temporary.write("x", to: "own")
    let refused = try Bubblewrapped.filtered {
      var refused: [String] = []
      if open(path, O_RDWR) < 0, errno == EROFS { refused.append("open") }
      if openat(AT_FDCWD, path, O_RDONLY | O_TRUNC) < 0, errno == EROFS { refused.append("truncate") }
      if chmod(path, 0) < 0, errno == EPERM { refused.append("chmod") }
      if unlink(path) < 0, errno == EPERM { refused.append("unlink") }
      if socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0) < 0, errno == EPERM { refused.append("socket") }
      if clx_fork() < 0, errno == EPERM { refused.append("fork") }
      if open(path, O_RDONLY) >= 0 { refused.append("but not reading") }
      return refused
    }
    #expect(refused == ["open", "truncate", "chmod", "unlink", "socket", "fork", "but not reading"])
  }

  /// There is nothing in its sandbox but what every machine has.
  @Test func sandboxHasNothingOfItsUsers() throws {
    let words = ItemParserSandbox(program: try OwnProgram()).words
    let bound = words.indices.filter { words[$0].hasPrefix("--ro-bind") || words[$0].hasPrefix("--bind") }
      .map { words[$0 + 1] }
    #expect(!words.contains("--bind") && !words.contains("--dev-bind") && !words.contains("--share-net"))
    #expect(!bound.contains { $0.hasPrefix("/home") || $0.hasPrefix("/root") || $0 == "/" || $0 == "/etc" })
    #expect(words.contains("--unshare-net") && words.contains("--clearenv") && words.contains("--seccomp"))
  }
}
