// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import FoundationEssentials
internal import Policy

/// The property list in a container that says whose it is, with the keys that Apple's container manager
/// writes.
struct ContainerMetadata: Codable, Equatable {
  struct Info: Codable, Equatable {
    let protectionClass: Int

    private enum CodingKeys: String, CodingKey {
      case protectionClass = "com.apple.MobileInstallation.ContentProtectionClass"
    }
  }

  struct UserIdentity: Codable, Equatable {
    let personaUniqueString: String
    let posixUID: UInt32
    let posixGID: UInt32
    let type: Int
    let version: Int
  }

  let identifier: String
  let contentClass: Int
  let uuid: String
  let version: Int
  let schemaVersion: Int
  let activeProtectionClass: Int
  let info: Info
  let userIdentity: UserIdentity

  private enum CodingKeys: String, CodingKey {
    case identifier = "MCMMetadataIdentifier"
    case contentClass = "MCMMetadataContentClass"
    case uuid = "MCMMetadataUUID"
    case version = "MCMMetadataVersion"
    case schemaVersion = "MCMMetadataSchemaVersion"
    case activeProtectionClass = "MCMMetadataActiveDPClass"
    case info = "MCMMetadataInfo"
    case userIdentity = "MCMMetadataUserIdentity"
  }

  /// Nil for a kind of container that has none.
  init?(_ container: ContainerRecord, gid: UInt32) {
    guard let contentClass = container.kind.contentClass else { return nil }
    identifier = container.identifier.text
    self.contentClass = contentClass
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
    let encoder = PropertyListEncoder()
    encoder.outputFormat = .xml
    // Numbers and strings always encode.
    return (try? encoder.encode(self)).map(Array.init) ?? []
  }

  /// Understands such a file; nil if it is none.
  init?(_ bytes: [UInt8]) {
    guard let decoded = try? PropertyListDecoder().decode(Self.self, from: Data(bytes)) else { return nil }
    self = decoded
  }
}
