// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Store

/// What is asked about the volumes of a tree.
package enum VolumeRequest: Equatable, Sendable {
  /// Let the directory that comes along be one; without a name, by its own.
  case add(name: String?, isReadOnly: Bool)
  /// Which are there?
  case list
  /// Let it be one no more; by force also while it is used.
  case eject(name: String, force: Bool)
}

/// A volume as a daemon describes it.
package struct VolumeDescription: Codable, Equatable, Sendable {
  package let name: String
  /// The directory that it is.
  package let path: String
  /// Of what kind the filesystem is on which it lies; nil while it can't be reached.
  package let filesystem: String?
  /// Whose alone it is; nil if it is for everyone.
  package let owner: UInt32?
  package let isReadOnly: Bool
  /// In seconds since 1970.
  package let added: Int64
  /// Why it is not there.
  package let missing: String?

  init(_ record: VolumeRecord, filesystem: String?, missing: String?) {
    name = String(decoding: record.name, as: UTF8.self)
    path = String(decoding: record.path, as: UTF8.self)
    self.filesystem = filesystem
    owner = record.owner
    isReadOnly = record.isReadOnly
    added = record.added
    self.missing = missing
  }
}

extension VolumeRequest: Codable {
  private enum Deed: String, Codable { case add, list, eject }
  private enum Key: String, CodingKey { case deed, name, readOnly, force }

  package init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    func isSet(_ key: Key) throws -> Bool { try fields.decodeIfPresent(Bool.self, forKey: key) ?? false }
    self =
      switch try fields.decode(Deed.self, forKey: .deed) {
      case .add:
        .add(
          name: try fields.decodeIfPresent(String.self, forKey: .name), isReadOnly: try isSet(.readOnly))
      case .list: .list
      case .eject: .eject(name: try fields.decode(String.self, forKey: .name), force: try isSet(.force))
      }
  }

  package func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: Key.self)
    switch self {
    case .add(let name, let isReadOnly):
      try fields.encode(Deed.add, forKey: .deed)
      try fields.encodeIfPresent(name, forKey: .name)
      try fields.encode(isReadOnly, forKey: .readOnly)
    case .list: try fields.encode(Deed.list, forKey: .deed)
    case .eject(let name, let force):
      try fields.encode(Deed.eject, forKey: .deed)
      try fields.encode(name, forKey: .name)
      try fields.encode(force, forKey: .force)
    }
  }
}
