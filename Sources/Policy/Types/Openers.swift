// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Which apps open documents of a type, and which of them first.
///
/// What apps claim is gone through once, however many types are asked for.
package struct Openers {
  /// One that opens them.
  package struct Opener: Equatable, Sendable {
    /// Its place in the list of apps.
    package let app: Int
    package let rank: HandlerRank
  }

  /// Types that are nearly everything: whoever claims these has said nothing of a document, and comes last.
  private static let general: Set<String> = [
    "public.item", "public.data", "public.content", "public.composite-content", "public.directory",
    "com.apple.package", "com.apple.bundle",
  ]
  private static let everything = "*"

  private let table: TypeTable
  /// What each app wants to be, at best, for a type and for an extension.
  private var types: [String: [Int: HandlerRank]] = [:]
  private var extensions: [String: [Int: HandlerRank]] = [:]

  /// Only what an app has exported first, and the table has from it, can it own: no app takes over others'
  /// documents by saying so.
  package init(_ apps: [AppDeclarations], in table: TypeTable) {
    self.table = table
    for (app, declared) in apps.enumerated() {
      // What somebody else has declared before is not this app's, though it may export it too.
      let own = declared.exported.filter { table.type(named: $0.identifier) === $0 }
      let exported = Set(own.map { DeclaredType.key($0.identifier) })
      for claim in declared.claims where claim.rank != .none {
        for claimed in claim.types.map(DeclaredType.key) {
          let rank = claim.rank == .owner && !exported.contains(claimed) ? .default : claim.rank
          types[claimed, default: [:]][app] = min(rank, types[claimed]?[app] ?? .none)
        }
        guard claim.types.isEmpty else { continue }
        for name in claim.extensions {
          let rank = name == Self.everything ? .alternate : max(claim.rank, .default)
          extensions[name, default: [:]][app] = min(rank, extensions[name]?[app] ?? .none)
        }
      }
    }
  }

  /// Those that open documents of the type, the first choice first; `nameExtension` is that of one document.
  ///
  /// Owners come before defaults, and these before alternates; of the same rank, who names the type itself
  /// comes before who names one that it conforms to, and then who was there first.
  package func of(_ type: DeclaredType, nameExtension: String? = nil) -> [Opener] {
    let all = table.ancestors(of: type.identifier).map { DeclaredType.key($0.identifier) }
    // A folder that is no document is opened by who asks for folders.
    let isFolder = all.contains(TypeTable.directory) && !all.contains(TypeTable.package)
    var best: [Int: (rank: HandlerRank, distance: Int)] = [:]
    func consider(_ apps: [Int: HandlerRank]?, _ distance: Int, atBest: HandlerRank = .owner) {
      for (app, rank) in apps ?? [:] {
        let found = (rank: max(rank, atBest), distance: distance)
        if best[app].map({ found < $0 }) ?? true { best[app] = found }
      }
    }
    for (distance, claimed) in all.enumerated() {
      if Self.general.contains(claimed) {
        if !isFolder || claimed == TypeTable.directory {
          consider(types[claimed], distance, atBest: .alternate)
        }
      } else {
        consider(types[claimed], distance)
      }
    }
    if !isFolder {
      for name in nameExtension.map({ [$0] }) ?? type.extensions { consider(extensions[name], 0) }
      consider(extensions[Self.everything], all.count)
    }
    return best.sorted {
      ($0.value.rank, $0.value.distance, $0.key) < ($1.value.rank, $1.value.distance, $1.key)
    }
    .map { Opener(app: $0.key, rank: $0.value.rank) }
  }
}
