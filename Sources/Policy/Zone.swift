// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What a place in the tree is.
///
/// It follows from the zone of its parent and its own name, so it is known without walking anywhere.
package enum Zone: UInt8, Sendable, CaseIterable {
  /// The root of the tree: its entries are fixed.
  case top
  /// The system domain and all below it.
  case system
  /// `/Applications`, `/Library`: standard directories of the local domain.
  case applications
  case library
  /// A standard directory of the local domain in which no further one lies, and `/Volumes`.
  case localStandard
  /// Anything else in the local domain.
  case local
  /// `/Network`, and what is in it.
  case networkStandard
  case network
  /// `/Users`: homes are made here.
  case users
  /// `/Users/Shared`.
  case sharedStandard
  /// Anything else in the user domain.
  case user

  /// The zone of the child called `name`.
  package func zone(of name: some Collection<UInt8>) -> Zone {
    switch self {
    case .top: Self.topZone(of: name)
    case .applications: name.elementsEqual("Utilities".utf8) ? .localStandard : .local
    case .library: Self.isStandardLibraryName(name) ? .localStandard : .local
    case .localStandard, .local: .local
    case .networkStandard, .network: .network
    case .users: name.elementsEqual("Shared".utf8) ? .sharedStandard : .user
    case .sharedStandard, .user: .user
    case .system: .system
    }
  }

  /// The domain that the place belongs to; the root of the tree is the system's.
  package var domain: Domain {
    switch self {
    case .top, .system: .system
    case .applications, .library, .localStandard, .local: .local
    case .networkStandard, .network: .network
    case .users, .sharedStandard, .user: .user
    }
  }

  /// Whether nothing here ever changes while the tree is mounted.
  package var isSealed: Bool { self == .top || self == .system }

  /// Whether this is a directory of the skeleton, which nobody removes, renames or replaces.
  package var isSkeleton: Bool {
    switch self {
    case .top, .applications, .library, .localStandard, .networkStandard, .users, .sharedStandard: true
    case .system, .local, .network, .user: false
    }
  }

  /// Whether children may have a zone other than their siblings', so that names matter.
  package var namesMatter: Bool {
    switch self {
    case .top, .applications, .library, .users: true
    case .system, .localStandard, .local, .networkStandard, .network, .sharedStandard, .user: false
    }
  }

  private static func topZone(of name: some Collection<UInt8>) -> Zone {
    for (top, zone) in topZones where name.elementsEqual(top.utf8) { return zone }
    // The root is fixed, so a name that is not on the list was put into the store from behind: sealed.
    return .system
  }

  private static let topZones: [(String, Zone)] = [
    ("Users", .users), ("Library", .library), ("Applications", .applications), ("System", .system),
    ("Network", .networkStandard), ("Volumes", .localStandard),
  ]

  private static func isStandardLibraryName(_ name: some Collection<UInt8>) -> Bool {
    standardLibraryNames.contains { name.elementsEqual($0.utf8) }
  }

  private static let standardLibraryNames: [Substring] = DomainTree.directories.compactMap {
    $0.path.hasPrefix("Library/") ? $0.path.dropFirst("Library/".count) : nil
  }
}
