// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import ContentLines
internal import Glibc
internal import JSON
internal import LinuxIO
internal import Policy

// The process that looks into files which may be anybody's making: music, address books, calendars.
//
//  1. It is in a sandbox of its own (``ItemParserSandbox``), in which there is nothing of its user's. It gets
//     each file as a descriptor that can only be read, and knows neither its name nor where it is.
//  2. It has limits for memory and time, and can start nothing. If it ends or hangs, the file is left out.
//  3. It answers with JSON, which is judged as if somebody else had written it.

/// See the rules above.
enum ItemParser {
  /// The word by which the program becomes this process.
  static let word = "parse-items"

  /// Longer address books and calendars are left out.
  static let longestText = 16 << 20
  /// How much it may take beyond the program itself: a tag may say that it unpacks to any size.
  static let memory: UInt = 256 << 20
  /// In seconds, for all files together; there is another process after that.
  private static let time: UInt = 300

  /// Serves until nobody asks any more.
  static func serve() -> Int32 {
    limitResources()
    let lines = ItemLines(FD(STDIN_FILENO))
    var open: OpenFile?
    // Whoever has started it is told that it is there.
    guard (try? lines.send(ParseReply())) != nil else { return 1 }
    while let request = try? lines.receive(ParseRequest.self, milliseconds: -1) {
      var reply = ParseReply()
      if let file = lines.takeFile() {
        if request.kind == .songs {
          reply = song(request, file.fd)
        } else {
          if open?.isFor(request) != true { open = OpenFile(request, file.fd) }
          reply = open?.page(request) ?? reply
        }
      }
      guard (try? lines.send(reply)) != nil else { return 1 }
    }
    return 0
  }

  private static func limitResources() {
    func limit(_ resource: __rlimit_resource, to value: UInt) {
      var limits = rlimit(rlim_cur: value, rlim_max: value)
      _ = setrlimit(__rlimit_resource_t(resource.rawValue), &limits)
    }
    limit(RLIMIT_AS, to: ownSize + memory)
    limit(RLIMIT_CPU, to: time)
    limit(RLIMIT_FSIZE, to: 0)
    limit(RLIMIT_CORE, to: 0)
    limit(RLIMIT_NOFILE, to: 64)
  }

  /// The address space of this process, in bytes; where the kernel does not tell it, more than it ever has.
  private static var ownSize: UInt {
    let pages = FD.text(of: "/proc/self/statm", limit: 256)?.parts(between: " ").first.flatMap {
      UInt32($0)
    }
    return pages.map { UInt($0) * UInt(clamping: getpagesize()) } ?? 768 << 20
  }

  private static func song(_ request: ParseRequest, _ file: FD) -> ParseReply {
    if let failure = SongTags.unavailable { return ParseReply(failure: failure) }
    guard request.first == 0, let tags = SongTags(file, type: request.type), !tags.isEmpty else {
      return ParseReply()
    }
    return ParseReply(items: [JSONValue.object(JSONValue.fields(of: tags))])
  }
}

/// An address book or a calendar that is being told page by page.
private struct OpenFile {
  private enum Reader {
    case contacts(ContactReader)
    case entries(CalendarReader)
  }

  private let file: String
  private let kind: PrivateItems
  private var reader: Reader
  private var told = 0
  /// What had no room in the page before.
  private var left: JSONValue?

  init?(_ request: ParseRequest, _ file: FD) {
    guard let bytes = try? file.contentsIfRegular(limit: ItemParser.longestText) else { return nil }
    self.file = request.file
    kind = request.kind
    switch request.kind {
    case .contacts: reader = .contacts(ContactReader(bytes))
    case .events: reader = .entries(CalendarReader(bytes, .event))
    case .reminders: reader = .entries(CalendarReader(bytes, .reminder))
    case .songs: return nil
    }
    while told < request.first, next() != nil { told += 1 }
  }

  /// Whether the next that is wanted is the next in this file.
  func isFor(_ request: ParseRequest) -> Bool {
    file == request.file && kind == request.kind && told == request.first
  }

  private mutating func next() -> JSONValue? {
    if let left = left.take() { return left }
    switch reader {
    case .contacts(var contacts):
      defer { reader = .contacts(contacts) }
      return contacts.next().map { .object(JSONValue.fields(of: $0)) }
    case .entries(var entries):
      defer { reader = .entries(entries) }
      return entries.next().map { .object(JSONValue.fields(of: $0)) }
    }
  }

  mutating func page(_ request: ParseRequest) -> ParseReply {
    var reply = ParseReply()
    var size = 0
    while let item = next() {
      size += item.size
      guard reply.items.count < request.most, size <= request.room else {
        left = item
        reply.next = told
        return reply
      }
      reply.items.append(item)
      told += 1
    }
    return reply
  }
}

extension JSONValue {
  /// How many bytes it has as text, with room for an identifier and a comma.
  var size: Int { ((try? JSONText.encode(self).count) ?? 0) + 32 }
}
