// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Why a place in the tree is not one that a user can grant an app.
package enum GrantRefusal: Hashable, Sendable, CaseIterable {
  /// No name in the tree is like one of these.
  case noPath
  /// A directory that is made of other people's or other apps' things: the root, a home, its Library.
  case tooMuch
  /// The system domain, which every app can read anyway.
  case system
  /// What another app keeps to itself; only its documents are the user's to give.
  case otherApp
  /// A container that groups of apps share: who has it is in their signatures.
  case group
  /// The app has it already.
  case own
}

/// Tells why a user can't grant an app the place with these names below the root of the tree; nil if nothing
/// but its permissions stands against it.
package func refusalToGrant(_ names: [[UInt8]], to app: AppIdentifier) -> GrantRefusal? {
  guard GrantPath.isPath(names) else { return .noPath }
  var zone = Zone.top
  for (depth, name) in names.enumerated() {
    let above = zone
    zone = above.zone(of: name)
    guard above == .containers, zone == .container else { continue }
    let isOwn = String(decoding: name, as: UTF8.self).lowercased() == app.text.lowercased()
    if isOwn { return .own }
    let isDocument = names[(depth + 1)...].starts(with: GrantPath.documents)
    return isDocument ? nil : .otherApp
  }
  if names.first == GrantPath.users {
    let inHome = names.dropFirst(2)
    if inHome.starts(with: GrantPath.groups), inHome.count > 2 { return .group }
  }
  switch zone {
  case .system: return .system
  case .home, .homeApplications, .homeLibrary, .containers, .groupContainers, .networkApplications:
    return .tooMuch
  // What is in a container in iCloud are the user's documents; the container is not one of them.
  case .cloudContainers, .cloudContainer: return .tooMuch
  case .sharedStandard: return nil
  default: return zone.isSkeleton ? .tooMuch : nil
  }
}

/// Paths that are granted, below the root of the tree.
package enum GrantPath {
  /// The most bytes that one may have, with its slashes: as many as programs can name.
  package static let longest = 4000
  /// The most names: everything that is done with a grant may look at each of them.
  package static let deepest = 128

  fileprivate static let users = Array("Users".utf8)
  fileprivate static let documents = ["Data", "Documents"].map { Array($0.utf8) }
  fileprivate static let groups = ["Library", "Group Containers"].map { Array($0.utf8) }

  /// Whether these can be the names of a path.
  package static func isPath(_ names: [[UInt8]]) -> Bool {
    names.count <= deepest && length(names) <= longest
      && names.allSatisfy { name in
        !name.isEmpty && name.count <= 255 && !name.contains(0) && !name.contains(UInt8(ascii: "/"))
          && name != [UInt8(ascii: ".")] && name != [UInt8(ascii: "."), UInt8(ascii: ".")]
      }
  }

  /// How many bytes names have in a path, with its slashes.
  package static func length(_ names: [[UInt8]]) -> Int { names.reduce(0) { $0 + $1.count + 1 } }

  /// The names of a path.
  package static func names(_ path: [UInt8]) -> [[UInt8]] {
    path.split(separator: UInt8(ascii: "/")).map { Array($0) }
  }

  /// The path of these names.
  package static func path(_ names: some Collection<[UInt8]>) -> [UInt8] {
    Array(names.joined(separator: [UInt8(ascii: "/")]))
  }
}
