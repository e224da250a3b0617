// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Which apps open documents of a type, and which of them first.
package enum Openers {
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

  /// Those that open documents of the type, the first choice first; `nameExtension` is that of one document.
  ///
  /// Owners come before defaults, and these before alternates; of the same rank, who names the type itself
  /// comes before who names one that it conforms to, and then who was there first. Only what an app has
  /// exported first, and the table has from it, can it own: no app takes over others' documents by saying so.
  package static func of(
    _ type: DeclaredType, nameExtension: String? = nil, among apps: [AppDeclarations], in table: TypeTable
  ) -> [Opener] {
    let all = table.ancestors(of: type.identifier).map { DeclaredType.key($0.identifier) }
    let distances = Dictionary(zip(all, 0...)) { first, _ in first }
    // A folder that is no document is opened by who asks for folders.
    let isFolder = distances[TypeTable.directory] != nil && distances[TypeTable.package] == nil
    let extensions = nameExtension.map { [$0] } ?? type.extensions
    var found: [(opener: Opener, distance: Int)] = []
    for (index, app) in apps.enumerated() {
      // What somebody else has declared before is not this app's, though it may export it too.
      let own = app.exported.filter { table.type(named: $0.identifier) === $0 }
      let exported = Set(own.map { DeclaredType.key($0.identifier) })
      var best: (rank: HandlerRank, distance: Int)?
      func consider(_ rank: HandlerRank, _ distance: Int) {
        if best.map({ (rank, distance) < ($0.rank, $0.distance) }) ?? true { best = (rank, distance) }
      }
      for claim in app.claims where claim.rank != .none {
        for claimed in claim.types.map(DeclaredType.key) {
          guard let distance = distances[claimed] else { continue }
          if general.contains(claimed) {
            if !isFolder || claimed == TypeTable.directory { consider(.alternate, distance) }
          } else {
            consider(claim.rank == .owner && !exported.contains(claimed) ? .default : claim.rank, distance)
          }
        }
        guard claim.types.isEmpty, !isFolder else { continue }
        if claim.extensions.contains(where: extensions.contains) { consider(max(claim.rank, .default), 0) }
        if claim.extensions.contains("*") { consider(.alternate, all.count) }
      }
      if let best { found.append((Opener(app: index, rank: best.rank), best.distance)) }
    }
    return found.sorted {
      ($0.opener.rank, $0.distance, $0.opener.app) < ($1.opener.rank, $1.distance, $1.opener.app)
    }.map(\.opener)
  }
}
