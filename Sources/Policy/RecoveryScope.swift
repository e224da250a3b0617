// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// How far somebody goes who ends what others were stopped in.
///
/// A home outside of the store lies on a disk or a server of its own, which may not answer. So nobody goes
/// there who has nothing to do with that home, and what concerns it is done on a thread of its own.
package enum RecoveryScope: Equatable, Sendable {
  /// All that lies in the store itself: for whoever opens it.
  case store
  /// All that lies in the home of that name, which is outside of the store.
  case home([UInt8])
  /// For a command of a user about the home of that name, or about none: of the containers in the store only
  /// those of that user and that home.
  case command(of: UInt32, about: [UInt8]?)

  /// Whether it reaches a path below the root of the tree; `outside` has the names of the homes that lie
  /// outside of the store.
  package func reaches(_ path: some Collection<UInt8>, outside: Set<[UInt8]>) -> Bool {
    let home = Self.home(in: path)
    let isInStore = home.map { !outside.contains($0) } ?? true
    switch self {
    case .store: return isInStore
    case .home(let name): return home == name
    case .command(_, let name): return isInStore || home == name
    }
  }

  /// Whether it reaches the container of a user at a path.
  package func reaches(
    containerAt path: some Collection<UInt8>, of user: UInt32, outside: Set<[UInt8]>
  ) -> Bool {
    guard reaches(path, outside: outside) else { return false }
    guard case .command(let own, let name) = self, user != own else { return true }
    return name != nil && Self.home(in: path) == name
  }

  /// The name of the home that a path leads into.
  package static func home(in path: some Collection<UInt8>) -> [UInt8]? {
    let slash = UInt8(ascii: "/")
    let names = path.split(separator: slash, maxSplits: 2)
    return names.count > 1 && names[0].elementsEqual("Users".utf8) ? Array(names[1]) : nil
  }
}
