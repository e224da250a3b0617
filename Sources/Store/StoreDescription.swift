// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import PropertyLists

/// What `store.plist` says of a store: the one file that makes a directory a store.
package struct StoreDescription: Equatable, Sendable {
  /// The format that this program writes and understands.
  package static let currentFormat = 1

  /// Who the store is for.
  package enum Mode: String, Sendable {
    /// All users of the machine; the daemon is root.
    case system
    /// One user, who runs the daemon.
    case rootless
  }

  /// The group that administers the local domain.
  package struct AdminGroup: Equatable, Sendable {
    package let name: String
    package let gid: UInt32

    package init(name: String, gid: UInt32) {
      self.name = name
      self.gid = gid
    }
  }

  package let format: Int
  /// In capital letters.
  package private(set) var uuid: String
  package let mode: Mode
  package let adminGroup: AdminGroup
  /// In seconds since 1970.
  package let created: Int64
  /// By their names; those that nothing here knows are a later version's of the same format.
  package let options: [String: String]

  /// Whether apps may run what they can write, where nothing of their own says so.
  package var allowsWritableCode: Bool { options[Self.writableCode] == Self.allowed }

  /// Whether programs of sandboxed apps may be started outside of the apps' views.
  package var allowsDirectStart: Bool { options[Self.directStart] == Self.allowed }

  /// Whether consent to the media library gives all of the Music folder.
  package var offersAllMusic: Bool { options[Self.allMusic] == Self.allowed }

  /// What apps in their views can't give to others when they make something, unless it is granted.
  package var appUmask: UInt32 {
    let mask = options[Self.umask].flatMap { UInt32($0, radix: 8) } ?? Self.usualAppUmask
    return mask <= 0o777 ? mask : Self.usualAppUmask
  }

  /// With which what an app makes is its user's alone.
  package static let usualAppUmask: UInt32 = 0o077

  /// Whether the extensions of documents are shown to people where nothing else is said of them.
  package var showsExtensions: Bool { options[Self.extensions] == Self.allowed }

  /// Whether names are compared without case and normalization.
  package var ignoresCase: Bool { options[Self.names] == Self.caseInsensitive }

  private static let names = "Names"
  private static let caseInsensitive = "case-insensitive"
  private static let extensions = "Extensions"
  private static let umask = "AppUmask"
  private static let writableCode = "WritableCode"
  private static let directStart = "DirectStart"
  private static let allMusic = "AllMusic"
  private static let allowed = "allowed"

  package init(
    mode: Mode, adminGroup: AdminGroup, uuid: String = UUIDText.random(), created: Int64 = Int64(time(nil)),
    allowsWritableCode: Bool = false, allowsDirectStart: Bool = false, offersAllMusic: Bool = false,
    showsExtensions: Bool = false, appUmask: UInt32 = usualAppUmask, ignoresCase: Bool = false
  ) {
    format = Self.currentFormat
    self.uuid = uuid
    self.mode = mode
    self.adminGroup = adminGroup
    self.created = created
    var options: [String: String] = [:]
    if allowsWritableCode { options[Self.writableCode] = Self.allowed }
    if allowsDirectStart { options[Self.directStart] = Self.allowed }
    if offersAllMusic { options[Self.allMusic] = Self.allowed }
    if appUmask != Self.usualAppUmask { options[Self.umask] = String(appUmask, radix: 8) }
    if showsExtensions { options[Self.extensions] = Self.allowed }
    if ignoresCase { options[Self.names] = Self.caseInsensitive }
    self.options = options
  }

  /// The same of another store.
  func withNewUUID() -> StoreDescription {
    var other = self
    other.uuid = UUIDText.random()
    return other
  }

  private enum Key {
    static let format = "Format"
    static let uuid = "UUID"
    static let mode = "Mode"
    static let adminGroup = "AdminGroup"
    static let groupName = "Name"
    static let groupID = "ID"
    static let created = "Created"
    static let options = "Options"
  }

  /// From the start of 1970 to that of 2001, from which property lists count.
  private static let startOfLists: Int64 = 978_307_200

  /// The text of `store.plist`.
  package func encoded() -> [UInt8] {
    let group = PropertyList(entries: [
      (Key.groupName, .string(adminGroup.name)), (Key.groupID, .integer(Int64(adminGroup.gid))),
    ])
    let entries: [(key: String, value: PropertyList)] = [
      (Key.format, .integer(Int64(format))), (Key.uuid, .string(uuid)), (Key.mode, .string(mode.rawValue)),
      (Key.adminGroup, group), (Key.created, .date(Double(created) - Double(Self.startOfLists))),
      (Key.options, PropertyList(entries: options.map { ($0.key, .string($0.value)) })),
    ]
    // Names without control characters can always be written; the next reader would refuse an empty file.
    return (try? PropertyList(entries: entries).xml()) ?? []
  }

  /// Understands `store.plist`, or says why not, the format before anything else.
  package static func decoded(_ bytes: [UInt8], path: String) throws(StoreError) -> StoreDescription {
    guard let list = (try? PropertyList(reading: bytes))?.dictionary, let format = list[Key.format]?.integer
    else { throw .damaged(path: path, what: "store.plist is not a property list with a format number") }
    if format > currentFormat {
      throw .newerFormat(path: path, found: Int(format), known: currentFormat)
    }
    if format < currentFormat {
      throw .olderFormat(path: path, found: Int(format), known: currentFormat)
    }
    guard let description = StoreDescription(list) else {
      throw .damaged(path: path, what: "store.plist lacks an entry, or one has the wrong type")
    }
    return description
  }

  /// Nil if anything is missing, or something else than it should be.
  private init?(_ list: PropertyList.Dictionary) {
    guard let format = list[Key.format]?.integer.flatMap({ Int(exactly: $0) }),
      let uuid = list[Key.uuid]?.string.flatMap({ UUIDText.canonical($0) }),
      let mode = list[Key.mode]?.string.flatMap({ Mode(rawValue: $0) }),
      let group = list[Key.adminGroup]?.dictionary, let groupName = group[Key.groupName]?.string,
      let gid = group[Key.groupID]?.integer.flatMap({ UInt32(exactly: $0) }),
      case .date(let created)? = list[Key.created],
      let created = Int64(exactly: created.rounded()),
      let entries = list[Key.options]?.dictionary?.entries
    else { return nil }
    var options: [String: String] = [:]
    for entry in entries {
      guard let value = entry.value.string else { return nil }
      options[entry.key] = value
    }
    self.format = format
    self.uuid = uuid
    self.mode = mode
    adminGroup = AdminGroup(name: groupName, gid: gid)
    // A date of any year that a list can hold is far from the largest number.
    self.created = created &+ Self.startOfLists
    self.options = options
  }
}
