// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import FoundationEssentials

/// What `store.plist` says of a store: the one file that makes a directory a store.
package struct StoreDescription: Codable, Equatable, Sendable {
  /// The format that this program writes and understands.
  package static let currentFormat = 1

  /// Who the store is for.
  package enum Mode: String, Codable, Sendable {
    /// All users of the machine; the daemon is root.
    case system
    /// One user, who runs the daemon.
    case rootless
  }

  /// The group that administers the local domain.
  package struct AdminGroup: Codable, Equatable, Sendable {
    package let name: String
    package let gid: UInt32

    package init(name: String, gid: UInt32) {
      self.name = name
      self.gid = gid
    }

    private enum CodingKeys: String, CodingKey {
      case name = "Name"
      case gid = "ID"
    }
  }

  package let format: Int
  package private(set) var uuid: UUID
  package let mode: Mode
  package let adminGroup: AdminGroup
  package let created: Date
  /// By their names; those that nothing here knows are a later version's of the same format.
  package let options: [String: String]

  /// Whether apps may run what they can write, where nothing of their own says so.
  package var allowsWritableCode: Bool { options[Self.writableCode] == Self.allowed }

  private static let writableCode = "WritableCode"
  private static let allowed = "allowed"

  package init(
    mode: Mode, adminGroup: AdminGroup, uuid: UUID = UUID(), created: Date = Date(),
    allowsWritableCode: Bool = false
  ) {
    format = Self.currentFormat
    self.uuid = uuid
    self.mode = mode
    self.adminGroup = adminGroup
    // A property list keeps whole seconds.
    self.created = Date(timeIntervalSince1970: created.timeIntervalSince1970.rounded())
    options = allowsWritableCode ? [Self.writableCode: Self.allowed] : [:]
  }

  /// The same of another store.
  func withNewUUID() -> StoreDescription {
    var other = self
    other.uuid = UUID()
    return other
  }

  /// The UUID as it is written in names and messages.
  package var uuidText: String { uuid.uuidString }

  private enum CodingKeys: String, CodingKey {
    case format = "Format"
    case uuid = "UUID"
    case mode = "Mode"
    case adminGroup = "AdminGroup"
    case created = "Created"
    case options = "Options"
  }

  /// The text of `store.plist`.
  package func encoded() -> [UInt8] {
    let encoder = PropertyListEncoder()
    encoder.outputFormat = .xml
    // Numbers, strings and a date always encode; an empty file would be refused by the next reader.
    return (try? encoder.encode(self)).map(Array.init) ?? []
  }

  /// Understands `store.plist`, or says why not, the format before anything else.
  package static func decoded(_ bytes: [UInt8], path: String) throws(StoreError) -> StoreDescription {
    struct Version: Decodable {
      let format: Int
      enum CodingKeys: String, CodingKey { case format = "Format" }
    }
    let decoder = PropertyListDecoder()
    let data = Data(bytes)
    guard let version = try? decoder.decode(Version.self, from: data) else {
      throw .damaged(path: path, what: "store.plist is not a property list with a format number")
    }
    if version.format > currentFormat {
      throw .newerFormat(path: path, found: version.format, known: currentFormat)
    }
    if version.format < currentFormat {
      throw .olderFormat(path: path, found: version.format, known: currentFormat)
    }
    do {
      return try decoder.decode(StoreDescription.self, from: data)
    } catch {
      throw .damaged(path: path, what: "store.plist lacks an entry, or one has the wrong type")
    }
  }
}
