// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
@testable internal import Daemon
internal import Glibc
internal import JSON
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

// What somebody may try who has put files into a library, or whose app is told of it:
//
// - links to other people's files, pipes, devices, folders in folders without end, a million names, names
//   with line ends: `hostileLibraryIsListed`, `limitsHold`
// - a file that becomes a link or a pipe after it was listed: `whatHasChangedIsNotOpened`
// - files over which the process that parses ends or hangs: `lostFilesAreLeftOut`
// - a process that parses and answers anything: `answersOfTheParserAreNotBelieved`
// - cursors that were made up: `madeUpCursorsAreRefused`
// - two that ask for the same in turns: `listingsDoNotDisturbEachOther`

/// Which files are read for an app, and how what is in them becomes pages.
@Suite struct ItemReaderTests {
  private let temporary: TemporaryDirectory
  private let home: String

  init() throws {
    temporary = try TemporaryDirectory()
    for name in ["Users", "Users/anna", "Users/anna/Music", "Users/anna/Music/Music"] {
      try temporary.makeDirectory(name)
    }
    home = temporary.appending("Users/anna")
  }

  /// Tells of each file its content as the title, `count` times; `lost` are those over which it ends.
  private final class Parser: ItemParsing {
    var count = 1
    var lost: Set<String> = []
    var requests: [ParseRequest] = []
    var answer: ((ParseRequest) -> ItemParserProcess.Outcome)?

    func parse(_ request: ParseRequest, _ file: FD) -> ItemParserProcess.Outcome {
      requests.append(request)
      if let answer { return answer(request) }
      let text = String(decoding: (try? file.readToEnd(limit: 1000)) ?? [], as: UTF8.self)
      if lost.contains(text) { return .lost }
      let rest = request.first..<max(request.first, count)
      let told = rest.prefix(request.most)
      return .found(
        ParseReply(
          items: told.map { _ in .object(["title": .string(text)]) },
          next: told.count < rest.count ? told.endIndex : nil))
    }
  }

  private func reader(_ parser: Parser) throws -> ItemReader {
    ItemReader(try TreePlace(temporary.path), parser)
  }

  private func page(_ answer: AgentAnswer) throws -> ItemPage {
    guard case .items(let page) = answer else { throw Errno.EINVAL }
    return page
  }

  private func titles(_ page: ItemPage) -> [String] {
    page.items.map { if case .object(let fields) = $0 { fields["title"]?.description ?? "" } else { "" } }
  }

  private func song(_ name: String, _ text: String? = nil) throws {
    try temporary.write(text ?? name, to: "Users/anna/Music/\(name)")
  }

  private func listed(_ kind: PrivateItems = .songs, _ limits: ItemFiles.Limits = .init()) throws -> [String]
  {
    let opened = try TemporaryDirectory.open(home)
    return try ItemFiles(kind, in: opened.fd, limits).paths.map { path in
      path.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
    }
  }

  @Test func hostileLibraryIsListed() throws {
    try temporary.makeDirectory("Users/anna/Music/Music/Album")
    try temporary.makeDirectory("Users/anna/Music/All.musiclibrary")
    try temporary.makeDirectory("Users/anna/Music/Other")
    // Names differ by their letters' case, as they do in views.
    try temporary.makeDirectory("Users/anna/Music/Loud.MusicLibrary")
    try song("Loud.MusicLibrary/no.mp3")
    try song("Music/Album/2.MP3")
    try song("Music/Album/1.m4a")
    try song("Music/line\nend\u{1b}.flac")
    try song("All.musiclibrary/3.ogg")
    for name in ["Other/no.mp3", "no.mp3", "Music/cover.jpg", "Music/.mp3", "Music/mp3"] { try song(name) }
    let secret = try temporary.write("secret", to: "secret.mp3")
    #expect(symlink(secret, home + "/Music/Music/link.mp3") == 0)
    #expect(symlink(temporary.path, home + "/Music/Music/folder") == 0)
    #expect(mkfifo(home + "/Music/Music/pipe.mp3", 0o666) == 0)
    if getuid() == 0 { #expect(mknod(home + "/Music/Music/device.mp3", S_IFCHR | 0o666, 0x105) == 0) }
    #expect(
      try listed() == [
        "Music/All.musiclibrary/3.ogg", "Music/Music/Album/1.m4a", "Music/Music/Album/2.MP3",
        "Music/Music/line\nend\u{1b}.flac",
      ])
  }

  @Test func allMusicIsListedWhereItIsTheLibrary() throws {
    try temporary.makeDirectory("Users/anna/Music/Other")
    for name in ["Other/a.mp3", "b.mp3"] { try song(name) }
    let opened = try TemporaryDirectory.open(home)
    #expect(try ItemFiles(.songs, in: opened.fd).paths.isEmpty)
    #expect(try ItemFiles(.songs, in: opened.fd, allMusic: true).paths.count == 2)
  }

  /// The folder itself may be a link, and what is not there has nothing in it.
  @Test func linkedLibraryIsNone() throws {
    #expect(try listed(.contacts).isEmpty)
    try temporary.makeDirectory("Users/anna/Library")
    try temporary.makeDirectory("elsewhere")
    try temporary.write("x", to: "elsewhere/a.ics")
    #expect(symlink(temporary.appending("elsewhere"), home + "/Library/Calendars") == 0)
    #expect(throws: (any Error).self) { try listed(.events) }
  }

  @Test func limitsHold() throws {
    var folder = "Music"
    for _ in 0..<20 {
      folder += "/f"
      try temporary.makeDirectory("Users/anna/Music/\(folder)")
      try song(folder + "/deep.mp3")
    }
    #expect(try listed().count == 15)
    for number in 0..<50 { try song("Music/\(number).mp3") }
    #expect(try listed(.songs, .init(files: 10)).count == 10)
    #expect(try listed(.songs, .init(names: 30)).count <= 30)
  }

  @Test func whatHasChangedIsNotOpened() throws {
    try song("Music/a.mp3")
    let opened = try TemporaryDirectory.open(home)
    let path = ["Music", "Music", "a.mp3"].map { Array($0.utf8) }
    _ = try ItemFiles.open(path, in: opened.fd)
    let secret = try temporary.write("secret", to: "secret.mp3")
    for change in [
      { symlink(secret, home + "/Music/Music/a.mp3") }, { mkfifo(home + "/Music/Music/a.mp3", 0o666) },
      { mkdir(home + "/Music/Music/a.mp3", 0o755) },
    ] {
      #expect(remove(home + "/Music/Music/a.mp3") == 0 && change() == 0)
      #expect(throws: (any Error).self) { _ = try ItemFiles.open(path, in: opened.fd) }
    }
    #expect(throws: (any Error).self) { _ = try ItemFiles.open([Array("..".utf8)], in: opened.fd) }
    #expect(throws: (any Error).self) { _ = try ItemFiles.open([], in: opened.fd) }
  }

  @Test func pagesGoOnWhereTheyEnded() throws {
    for name in ["a", "b", "c"] { try song("Music/\(name).mp3", name) }
    let parser = Parser()
    parser.count = 3
    let reader = try reader(parser)
    var (all, next) = ([String](), String?.none)
    var ids: Set<String> = []
    repeat {
      let answer = reader.answer(ReadingTask(ItemsQuery(.songs, after: next, limit: 2), home: "anna"))
      let page = try page(answer)
      #expect(page.items.count <= 2)
      all += titles(page)
      for case .object(let fields) in page.items { ids.insert(fields["id"]?.description ?? "") }
      next = page.next
    } while next != nil
    #expect(all == ["a", "a", "a", "b", "b", "b", "c", "c", "c"])
    #expect(ids.count == 9 && ids.allSatisfy { $0.utf8.count == 16 })
  }

  @Test func pagesHaveRoomInTheSocket() throws {
    for number in 0..<100 { try song("Music/\(number).mp3", String(repeating: "é", count: 450)) }
    let reader = try reader(Parser())
    var (count, next) = (0, String?.none)
    repeat {
      let page = try page(reader.answer(ReadingTask(ItemsQuery(.songs, after: next), home: "anna")))
      #expect(try JSONText.encode(page.items).count <= ItemPage.mostBytes + 2)
      count += page.items.count
      next = page.next
    } while next != nil
    #expect(count == 100)
  }

  @Test func lostFilesAreLeftOut() throws {
    for name in ["a", "b", "c"] { try song("Music/\(name).mp3", name) }
    let parser = Parser()
    parser.lost = ["b"]
    let page = try page(reader(parser).answer(ReadingTask(ItemsQuery(.songs), home: "anna")))
    #expect(titles(page) == ["a", "c"] && page.unread == 1 && page.next == nil)
    parser.answer = { _ in .impossible("no library") }
    let answer = try reader(parser).answer(ReadingTask(ItemsQuery(.songs), home: "anna"))
    #expect(answer == .unreadable("no library"))
  }

  @Test func answersOfTheParserAreNotBelieved() throws {
    for name in ["a", "b"] { try song("Music/\(name).mp3", name) }
    let huge = JSONValue.object(["title": .string(String(repeating: "x", count: 100_000))])
    let replies = [
      ParseReply(items: [huge], next: 0), ParseReply(items: [], next: 0), ParseReply(items: [huge], next: -1),
      ParseReply(items: [.null, .string("x"), .array([])], next: nil),
      ParseReply(items: (0..<5000).map { .integer($0) }, next: .max),
    ]
    for reply in replies {
      let parser = Parser()
      parser.answer = { _ in .found(reply) }
      let reader = try reader(parser)
      var (next, rounds) = (String?.none, 0)
      repeat {
        guard
          case .items(let page) = reader.answer(ReadingTask(ItemsQuery(.songs, after: next), home: "anna"))
        else { break }
        #expect(page.items.count <= ItemsQuery.mostItems)
        #expect(try JSONText.encode(page.items).count <= ItemPage.mostBytes + 2)
        next = page.next
        rounds += 1
      } while next != nil && rounds < 20
    }
  }

  @Test func madeUpCursorsAreRefused() throws {
    try song("Music/a.mp3")
    let reader = try reader(Parser())
    _ = reader.answer(ReadingTask(ItemsQuery(.songs), home: "anna"))
    for cursor in [
      "", "1", "1.0", "1.0.0.0", "a.b.c", "0.0.0", "-1.0.0", "1.-1.0", "1.0.99999999999", "2.0.0",
    ] {
      let answer = reader.answer(ReadingTask(ItemsQuery(.songs, after: cursor), home: "anna"))
      #expect(answer == .outdated, "\(cursor)")
    }
    // One of another kind.
    #expect(reader.answer(ReadingTask(ItemsQuery(.events, after: "1.0.0"), home: "anna")) == .outdated)
    let past = reader.answer(ReadingTask(ItemsQuery(.songs, after: "1.7.7"), home: "anna"))
    #expect(try page(past).items.isEmpty)
    // A home is a name.
    for home in ["..", "", "anna/Music", "nobody"] {
      guard case .unreadable = reader.answer(ReadingTask(ItemsQuery(.songs), home: home)) else {
        Issue.record("\(home) is a home")
        continue
      }
    }
  }

  @Test func listingsDoNotDisturbEachOther() throws {
    for name in ["a", "b"] { try song("Music/\(name).mp3", name) }
    let reader = try reader(Parser())
    func ask(_ after: String?) throws -> ItemPage {
      try page(reader.answer(ReadingTask(ItemsQuery(.songs, after: after, limit: 1), home: "anna")))
    }
    let (one, other) = (try ask(nil), try ask(nil))
    #expect(try titles(ask(one.next)) == ["b"] && titles(ask(other.next)) == ["b"])
    for _ in 0..<10 { _ = try ask(nil) }
    let late = reader.answer(ReadingTask(ItemsQuery(.songs, after: one.next), home: "anna"))
    #expect(late == .outdated)
  }

  /// A calendar that does not say what it is called is called like its folder, or its file.
  @Test func calendarsHaveNames() throws {
    for name in ["Library", "Library/Calendars", "Library/Calendars/Work.calendar"] {
      try temporary.makeDirectory("Users/anna/\(name)")
    }
    try temporary.write("x", to: "Users/anna/Library/Calendars/Work.calendar/a.ics")
    try temporary.write("y", to: "Users/anna/Library/Calendars/Home\u{202e}.ics")
    let page = try page(reader(Parser()).answer(ReadingTask(ItemsQuery(.events), home: "anna")))
    let names = page.items.map { item -> String? in
      guard case .object(let fields) = item else { return nil }
      return fields["calendar"]?.description
    }
    #expect(names == ["Home?", "Work"])
  }
}
