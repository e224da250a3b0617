// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// Where an app is installed, and for whom.
///
/// Two are the same if their paths are the same bytes.
package enum AppDomain: Hashable, Sendable {
  /// In `/Applications`, for all users of the machine.
  case everyone
  /// The same, in `/Applications/Utilities`.
  case utilities
  /// The same, in the `Applications` of the network.
  case network
  /// In the `Applications` of the home of that name.
  case user(String)

  package static func == (one: AppDomain, other: AppDomain) -> Bool {
    one.path.hasSameBytes(as: other.path)
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(Array(path.utf8)) }

  /// The path of the directory that the bundles are in, below the root of the tree.
  package var path: String {
    switch self {
    case .everyone: "Applications"
    case .utilities: "Applications/Utilities"
    case .network: "Network/Applications"
    case .user(let name): "Users/\(name)/Applications"
    }
  }

  /// Where apps for everyone can be besides ``everyone``, and what that is called in options and backups.
  package static let places: [(name: String, domain: AppDomain)] = [
    ("utilities", .utilities), ("network", .network),
  ]

  /// Where an app for everyone is that has this path.
  package init(ofEveryones path: String) {
    self = Self.places.map(\.domain).first { path.utf8.starts(with: "\($0.path)/".utf8) } ?? .everyone
  }

  /// Whether the app is there for all users.
  package var isForEveryone: Bool {
    if case .user = self { false } else { true }
  }

  /// What a bundle is in there.
  var zone: Zone {
    switch self {
    case .everyone: .applications
    case .utilities: .utilities
    case .network: .networkApplications
    case .user: .homeApplications
    }
  }
}
