// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
package import Policy
internal import PropertyLists

/// The property list in a container that says whose it is, with the keys that Apple's container manager
/// writes.
struct ContainerMetadata: Equatable {
  struct Info: Equatable {
    let protectionClass: Int64
  }

  struct UserIdentity: Equatable {
    let personaUniqueString: String
    let posixUID: UInt32
    let posixGID: UInt32
    let type: Int64
    let version: Int64
  }

  let identifier: String
  let contentClass: Int64
  let uuid: String
  let version: Int64
  let schemaVersion: Int64
  let activeProtectionClass: Int64
  let info: Info
  let userIdentity: UserIdentity

  /// Nil for a kind of container that has none.
  init?(_ container: ContainerRecord, gid: UInt32) {
    guard let contentClass = container.kind.contentClass else { return nil }
    identifier = container.identifier.text
    self.contentClass = Int64(contentClass)
    uuid = container.uuid
    version = 6
    schemaVersion = 1
    // No class is set: everything is kept in the clear, as the store is.
    activeProtectionClass = 0
    info = Info(protectionClass: 0)
    userIdentity = UserIdentity(
      personaUniqueString: "", posixUID: container.user, posixGID: gid, type: 0, version: 2)
  }

  /// As it stands in the file.
  var encoded: [UInt8] {
    let entries: [(key: String, value: PropertyList)] = [
      (Key.identifier, .string(identifier)), (Key.contentClass, .integer(contentClass)),
      (Key.uuid, .string(uuid)), (Key.version, .integer(version)),
      (Key.schemaVersion, .integer(schemaVersion)),
      (Key.activeProtectionClass, .integer(activeProtectionClass)),
      (Key.info, PropertyList(entries: [(Key.protectionClass, .integer(info.protectionClass))])),
      (Key.userIdentity, userIdentity.list),
    ]
    // Numbers and strings without control characters can always be written.
    return (try? PropertyList(entries: entries).xml()) ?? []
  }

  /// Understands such a file; nil if it is none.
  init?(_ bytes: [UInt8]) {
    guard let list = (try? PropertyList(reading: bytes))?.dictionary,
      let identifier = list[Key.identifier]?.string, let contentClass = list[Key.contentClass]?.integer,
      let uuid = list[Key.uuid]?.string, let version = list[Key.version]?.integer,
      let schemaVersion = list[Key.schemaVersion]?.integer,
      let activeProtectionClass = list[Key.activeProtectionClass]?.integer,
      let protectionClass = list[Key.info]?.dictionary?[Key.protectionClass]?.integer,
      let userIdentity = list[Key.userIdentity]?.dictionary.flatMap({ UserIdentity($0) })
    else { return nil }
    self.identifier = identifier
    self.contentClass = contentClass
    self.uuid = uuid
    self.version = version
    self.schemaVersion = schemaVersion
    self.activeProtectionClass = activeProtectionClass
    info = Info(protectionClass: protectionClass)
    self.userIdentity = userIdentity
  }

  private enum Key {
    static let identifier = "MCMMetadataIdentifier"
    static let contentClass = "MCMMetadataContentClass"
    static let uuid = "MCMMetadataUUID"
    static let version = "MCMMetadataVersion"
    static let schemaVersion = "MCMMetadataSchemaVersion"
    static let activeProtectionClass = "MCMMetadataActiveDPClass"
    static let info = "MCMMetadataInfo"
    static let protectionClass = "com.apple.MobileInstallation.ContentProtectionClass"
    static let userIdentity = "MCMMetadataUserIdentity"
  }
}

extension ContainerLayout {
  /// Which container a directory says that it is, or that it was made of; nil if it does not say it.
  package static func uuid(notedIn container: FD) -> String? {
    (try? container.contents(of: metadataName, limit: 1 << 16)).flatMap { ContainerMetadata($0) }?.uuid
  }
}

extension ContainerMetadata.UserIdentity {
  var list: PropertyList {
    PropertyList(entries: [
      ("personaUniqueString", .string(personaUniqueString)), ("posixUID", .integer(Int64(posixUID))),
      ("posixGID", .integer(Int64(posixGID))), ("type", .integer(type)), ("version", .integer(version)),
    ])
  }

  init?(_ list: PropertyList.Dictionary) {
    guard let personaUniqueString = list["personaUniqueString"]?.string,
      let posixUID = list["posixUID"]?.integer.flatMap({ UInt32(exactly: $0) }),
      let posixGID = list["posixGID"]?.integer.flatMap({ UInt32(exactly: $0) }),
      let type = list["type"]?.integer, let version = list["version"]?.integer
    else { return nil }
    self.init(
      personaUniqueString: personaUniqueString, posixUID: posixUID, posixGID: posixGID, type: type,
      version: version)
  }
}
