// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Glibc
internal import JSON
internal import LinuxIO
internal import Policy

/// Reads what apps are told of what is private: finds the files, has them parsed, and fills pages with what
/// was found.
///
/// It looks into no file itself, and runs in a process of its own (``ItemReaderProcess``).
final class ItemReader {
  /// Where the tree is, with all rights of the user's.
  private let tree: TreePlace
  private let parser: any ItemParsing
  /// What was listed, the oldest first: pages that follow go on in it, whatever is there by now.
  private var listings: [Listing] = []
  private var last = 0

  private struct Listing {
    let number: Int
    let kind: PrivateItems
    let home: String
    let files: ItemFiles
  }

  private static let mostListings = 8
  /// After so much time a page ends with what it has.
  private static let patience: UInt64 = 4_000_000_000

  init(_ tree: TreePlace, _ parser: any ItemParsing) {
    self.tree = tree
    self.parser = parser
  }

  func answer(_ task: ReadingTask) -> AgentAnswer {
    let kind = task.query.kind
    do throws(Errno) {
      let home = try tree.home(task.home)
      guard let cursor = task.query.after else {
        let listing = try list(task, home.fd)
        return page(of: listing, Cursor(listing: listing.number), task.query, home.fd)
      }
      guard let cursor = Cursor(cursor),
        let listing = listings.first(where: { $0.number == cursor.listing }), listing.kind == kind,
        listing.home.hasSameBytes(as: task.home)
      else { return .outdated }
      return page(of: listing, cursor, task.query, home.fd)
    } catch {
      return .unreadable("can't read \(kind.rawValue): \(error.message)")
    }
  }

  private func list(_ task: ReadingTask, _ home: FD) throws(Errno) -> Listing {
    last += 1
    let kind = task.query.kind
    let files = try ItemFiles(kind, in: home, allMusic: task.allMusic ?? false)
    let listing = Listing(number: last, kind: kind, home: task.home, files: files)
    listings.append(listing)
    if listings.count > Self.mostListings { listings.removeFirst() }
    return listing
  }

  private func page(of listing: Listing, _ start: Cursor, _ query: ItemsQuery, _ home: FD) -> AgentAnswer {
    let most = min(max(query.limit ?? ItemsQuery.mostItems, 1), ItemsQuery.mostItems)
    let end = monotonicNanoseconds() &+ Self.patience
    var (cursor, items, room, unread) = (start, [JSONValue](), ItemPage.mostBytes, 0)
    while cursor.file < listing.files.paths.count {
      guard items.count < most, monotonicNanoseconds() < end else { break }
      let path = listing.files.paths[cursor.file]
      switch parse(path, listing, cursor, most: most - items.count, room: room, home) {
      case .impossible(let reason): return .unreadable(reason)
      case .lost:
        unread += 1
        cursor.goOn()
      case .found(let reply):
        for (index, item) in reply.items.prefix(most).enumerated() {
          let item = item.identified(path, cursor.item + index).named(after: path, listing.kind)
          let size = ((try? JSONText.encode(item).count) ?? 0) + 1
          guard size <= room else {
            // What has no room in a whole page is told to nobody.
            if items.isEmpty { continue }
            cursor.item += index
            return .items(ItemPage(items, next: cursor.text, unread: unread > 0 ? unread : nil))
          }
          room -= size
          items.append(item)
        }
        // An item that has no room in a whole page is not asked for again.
        guard let next = reply.next, next > cursor.item || !items.isEmpty else {
          cursor.goOn()
          continue
        }
        cursor.item = next
        return .items(ItemPage(items, next: cursor.text, unread: unread > 0 ? unread : nil))
      }
    }
    let isAtEnd = cursor.file >= listing.files.paths.count
    return .items(ItemPage(items, next: isAtEnd ? nil : cursor.text, unread: unread > 0 ? unread : nil))
  }

  private func parse(
    _ path: [[UInt8]], _ listing: Listing, _ cursor: Cursor, most: Int, room: Int, _ home: FD
  ) -> ItemParserProcess.Outcome {
    // What has gone, or is no file any more, is left out.
    guard let name = path.last, let type = listing.kind.fileExtension(of: name),
      let file = try? ItemFiles.open(path, in: home)
    else { return .found(ParseReply()) }
    let request = ParseRequest(
      kind: listing.kind, file: "\(cursor.listing).\(cursor.file)", type: type, first: cursor.item,
      most: most, room: room)
    return parser.parse(request, file.fd)
  }
}

/// What looks into files.
protocol ItemParsing: AnyObject {
  func parse(_ request: ParseRequest, _ file: FD) -> ItemParserProcess.Outcome
}

extension ItemParserProcess: ItemParsing {}

/// Where a page goes on.
struct Cursor: Equatable {
  let listing: Int
  var file = 0
  /// How many of the file were told.
  var item = 0

  init(listing: Int) { self.listing = listing }

  /// An app may have made it up.
  init?(_ text: String) {
    let numbers = text.parts(between: ".", keepingEmpty: true).map { Int($0) }
    guard numbers.count == 3, let listing = numbers[0], let file = numbers[1], let item = numbers[2],
      listing > 0, (0...Int(Int32.max)).contains(file), (0...Int(Int32.max)).contains(item)
    else { return nil }
    (self.listing, self.file, self.item) = (listing, file, item)
  }

  var text: String { "\(listing).\(file).\(item)" }

  mutating func goOn() {
    file += 1
    item = 0
  }
}

extension JSONValue {
  /// With something by which the app knows it again, as long as it runs, where it has nothing of its own.
  ///
  /// It says nothing of the file: each process hashes with another key.
  fileprivate func identified(_ path: [[UInt8]], _ index: Int) -> JSONValue {
    guard case .object(var fields) = self else { return self }
    if case .string(let id)? = fields["id"], !id.isEmpty { return self }
    var hasher = Hasher()
    hasher.combine(path)
    hasher.combine(index)
    let digits = String(UInt(bitPattern: hasher.finalize()), radix: 16)
    fields["id"] = .string(String(repeating: "0", count: max(0, 16 - digits.count)) + digits)
    return .object(fields)
  }
}

extension JSONValue {
  /// With the name of its calendar or list, where the file does not say it: that of the file, or of the
  /// folder that holds all files of the calendar.
  fileprivate func named(after path: [[UInt8]], _ kind: PrivateItems) -> JSONValue {
    guard kind == .events || kind == .reminders, case .object(var fields) = self, fields["calendar"] == nil,
      let name = path.dropFirst(kind.directory.count).first
    else { return self }
    let dot = name.lastIndex(of: UInt8(ascii: ".")) ?? name.endIndex
    let text = String(decoding: name[..<dot], as: UTF8.self).sanitized
    if !text.isEmpty { fields["calendar"] = .string(text) }
    return .object(fields)
  }
}

/// Where the tree of all users is mounted, whatever this process's own tree of files is by now.
final class TreePlace {
  private let above: OwnedFD
  private let name: String
  let mountPoint: String

  /// Before this process leaves the machine's tree.
  init(_ mountPoint: String) throws(Errno) {
    let (above, name) = mountPoint.splitAtName
    self.above = try FD.cwd.openFollowing("/\(above)", pathOnly | O_DIRECTORY)
    self.name = name
    self.mountPoint = mountPoint
  }

  var fd: FD { above.fd }

  /// Another place by the same descriptor's number in another process.
  init(adopting above: FD, _ place: TreePlace) {
    self.above = OwnedFD(owning: above.raw)
    name = place.name
    mountPoint = place.mountPoint
  }

  /// Opens a user's home for reading.
  func home(_ name: String) throws(Errno) -> OwnedFD { try directory(at: ["Users", name]) }

  /// Opens a directory for reading, name by name; no link is followed.
  func directory(at names: [String]) throws(Errno) -> OwnedFD {
    let root = try above.fd.openFollowing(name.isEmpty ? "." : name, O_RDONLY | O_DIRECTORY)
    return try ItemFiles.directory(at: names.map { Array($0.utf8) }, in: root.fd)
  }
}
