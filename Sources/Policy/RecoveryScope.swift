// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// How far somebody goes who ends what others were stopped in.
///
/// A home outside of the store lies on a disk or a server of its own, which may not answer. So nobody goes
/// there who has nothing to do with that home, and what concerns it is done on a thread of its own.
package enum RecoveryScope: Equatable, Sendable {
  /// All that lies in the store itself: for whoever opens it.
  case store
  /// What lies in the store itself, but in no home: for a daemon, which nobody is to wait for. Whoever has a
  /// home may keep a look into it waiting.
  case machine
  /// All that lies in the home of that name.
  case home([UInt8])
  /// For a command of a user about the home of that name, or about none: of what is in the store, nothing
  /// that lies in other homes; of the containers there, those of that user and that home.
  case command(of: UInt32, about: [UInt8]?)

  /// Whether it reaches a path below the root of the tree; `outside` has the names of the homes that lie
  /// outside of the store.
  package func reaches(_ path: some Collection<UInt8>, outside: Set<[UInt8]>) -> Bool {
    let home = Self.home(in: path)
    let isInStore = home.map { !outside.contains($0) } ?? true
    switch self {
    case .store: return isInStore
    case .machine: return home == nil
    case .home(let name): return home == name
    case .command(_, let name): return home == nil || home == name
    }
  }

  /// Whether it reaches the container of a user at a path.
  package func reaches(
    containerAt path: some Collection<UInt8>, of user: UInt32, outside: Set<[UInt8]>
  ) -> Bool {
    guard case .command(let own, let name) = self else { return reaches(path, outside: outside) }
    let home = Self.home(in: path)
    if name != nil && home == name { return true }
    return user == own && home.map { !outside.contains($0) } ?? true
  }

  /// The name of the home that a path leads into.
  package static func home(in path: some Collection<UInt8>) -> [UInt8]? {
    let slash = UInt8(ascii: "/")
    let names = path.split(separator: slash, maxSplits: 2)
    return names.count > 1 && names[0].elementsEqual("Users".utf8) ? Array(names[1]) : nil
  }
}
