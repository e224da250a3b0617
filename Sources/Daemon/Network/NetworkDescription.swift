// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse

/// What a daemon knows of the network.
package struct NetworkDescription: Codable, Equatable, Sendable {
  package struct Share: Codable, Equatable, Sendable {
    package let host: String
    package let name: String
    package let url: String
    package let isReadOnly: Bool
    package let isForAll: Bool
    /// "file", or "announced" by the computer itself.
    package let origin: String

    init(_ share: NetworkShare) {
      (host, name) = (share.host, share.name)
      url = share.address.text
      (isReadOnly, isForAll) = (share.isReadOnly, share.isForAll)
      origin = share.isAnnounced ? "announced" : "file"
    }
  }

  package let shares: [Share]
  /// What was not understood of the file.
  package let problems: [String]
}
