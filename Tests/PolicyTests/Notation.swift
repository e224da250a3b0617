// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

// The notation of the decision tables: one row a line, cells parted by bars.
//
//     ACL         `none`, `empty`, `damaged`, or entries parted by semicolons:
//                 who, + or - and rights, flags in brackets
//     who         root, owner, member (primary group), extra (supplementary group), other,
//                 lost (no group can be told)
//     answer      allow, or the reason of the denial
//
// The object belongs to user 1 and group 10.

struct UnreadableRow: Error {
  let cell: Substring
}

enum Table {
  static func rows(_ text: String) -> [String] {
    text.split(separator: "\n").map(String.init).filter { !$0.hasPrefix("#") }
  }

  static func cells(_ row: String, _ count: Int) throws -> [Substring] {
    let cells = row.split(separator: "|", omittingEmptySubsequences: false).map { cell in
      cell.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()
    }
    guard cells.count == count else { throw UnreadableRow(cell: row[...]) }
    return cells.map { Substring(String($0)) }
  }

  static func rights(_ cell: Substring) throws -> Rights {
    var rights: Rights = []
    for word in cell.split(separator: ",") {
      guard let right = names[String(word)] else { throw UnreadableRow(cell: word) }
      rights.formUnion(right)
    }
    return rights
  }

  private static let names: [String: Rights] = [
    "nothing": [], "read": .read, "list": .list, "write": .write, "add_file": .addFile, "execute": .execute,
    "search": .search,
    "delete": .delete, "append": .append, "add_subdirectory": .addSubdirectory, "delete_child": .deleteChild,
    "readattr": .readAttributes, "writeattr": .writeAttributes, "readextattr": .readExtended,
    "writeextattr": .writeExtended, "readsecurity": .readSecurity, "writesecurity": .writeSecurity,
    "chown": .takeOwnership, "synchronize": .synchronize, "link": .link, "ALL": .genericAll,
    "READ": .genericRead, "WRITE": .genericWrite, "EXECUTE": .genericExecute,
  ]

  static func mode(_ cell: Substring) throws -> UInt32 {
    guard let mode = UInt32(cell, radix: 8) else { throw UnreadableRow(cell: cell) }
    return mode
  }

  static func kind(_ cell: Substring) throws -> Object.Kind {
    switch cell {
    case "file": .file
    case "dir": .directory
    case "symlink": .symlink
    case "special": .special
    default: throw UnreadableRow(cell: cell)
    }
  }

  static func zone(_ cell: Substring) throws -> Zone {
    guard let zone = Zone.allCases.first(where: { "\($0)" == cell }) else { throw UnreadableRow(cell: cell) }
    return zone
  }

  /// An object as cells say that it is.
  static func object(
    _ kind: Object.Kind = .file, zone: Substring = "user", mode: Substring = "0777", acl: Substring
  ) throws -> Object {
    Object(
      uid: 1, gid: 10, mode: try Table.mode(mode), kind: kind, zone: try Table.zone(zone),
      acl: try Table.acl(acl))
  }

  static func decision(_ cell: Substring) throws -> Decision {
    switch cell {
    case "allow": .allow
    case "sealed": .deny(.readOnly)
    case "place": .deny(.place)
    case "flags": .deny(.flags)
    case "list": .deny(.acl)
    case "mode": .deny(.mode)
    case "ownership": .deny(.ownership)
    case "sticky": .deny(.sticky)
    case "boundary": .deny(.boundary)
    default: throw UnreadableRow(cell: cell)
    }
  }

  static func flags(_ cell: Substring) throws -> FileFlags {
    guard let flags = FileFlags(words: cell == "-" ? "" : cell) else { throw UnreadableRow(cell: cell) }
    return flags
  }
}

// ACLs.

extension Table {
  static func acl(_ cell: Substring) throws -> AccessControl {
    switch cell {
    case "none": .none
    case "damaged": .damaged
    default: .acl(try accessControlList(cell))
    }
  }

  static func accessControlList(_ cell: Substring) throws -> AccessControlList {
    if cell == "empty" { return AccessControlList([]) }
    return AccessControlList(try cell.split(separator: ";").map(entry))
  }

  private static func entry(_ cell: Substring) throws -> AccessControlEntry {
    let parts = cell.split(separator: " ")
    guard parts.count >= 2, let sign = parts[1].first, let kind = kinds[sign] else {
      throw UnreadableRow(cell: cell)
    }
    return AccessControlEntry(
      kind, try principal(parts[0]), try rights(parts[1].dropFirst()),
      try parts.count > 2 ? inheritance(parts[2]) : [])
  }

  private static let kinds: [Character: AccessControlEntry.Kind] = [
    "+": .permit, "-": .deny, "?": .audit, "!": .alarm,
  ]

  private static func principal(_ word: Substring) throws -> Principal {
    switch word {
    case "everyone": return .everyone
    case "owner": return .owner
    case "group": return .owningGroup
    case "nobody": return .nobody
    case "foreign": return Principal(high: 1, low: 2)
    default: break
    }
    guard let id = UInt32(word.dropFirst()) else { throw UnreadableRow(cell: word) }
    switch word.first {
    case "u": return .user(id)
    case "g": return .group(id)
    default: throw UnreadableRow(cell: word)
    }
  }

  static func inheritance(_ word: Substring) throws -> AccessControlEntry.Inheritance {
    var flags: AccessControlEntry.Inheritance = []
    for word in word.drop(while: { $0 == "[" }).prefix(while: { $0 != "]" }).split(separator: ",") {
      switch word {
      case "inherited": flags.insert(.inherited)
      case "file": flags.insert(.fileInherit)
      case "dir": flags.insert(.directoryInherit)
      case "limit": flags.insert(.limitInherit)
      case "only": flags.insert(.onlyInherit)
      default: throw UnreadableRow(cell: word)
      }
    }
    return flags
  }
}

/// Who asks, and what can be told about their groups.
struct Person {
  let credentials: Credentials
  let membership: @Sendable (UInt32) -> Membership

  init(_ cell: Substring) throws {
    switch cell {
    case "root": self.init(0, 0) { _ in .notMember }
    case "owner": self.init(1, 99) { _ in .notMember }
    case "member": self.init(2, 10) { _ in .notMember }
    case "extra": self.init(3, 99) { $0 == 10 || $0 == 50 ? .member : .notMember }
    case "other": self.init(4, 99) { _ in .notMember }
    case "lost": self.init(5, 99) { _ in .unknown }
    default: throw UnreadableRow(cell: cell)
    }
  }

  private init(_ uid: UInt32, _ gid: UInt32, _ membership: @escaping @Sendable (UInt32) -> Membership) {
    credentials = Credentials(uid: uid, gid: gid)
    self.membership = membership
  }
}
