// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// What entitlements open to an app is one thing, and what its user has consented to another. An app reaches
// what is private only if both allow it:
//
//  1. An entitlement that reaches a private place lets the app ask for it, and gives nothing of it.
//  2. With consent the app has what the service gives by itself, and what its entitlements say of the place.
//     All of it can be revoked, also while it is open.
//  3. An entitlement that reaches what is around a private place ends at that place, whatever was decided.
//  4. No entitlement reaches into homes of other users, or into what users have thrown away.
//
// Names are compared without case: in a store where case makes a difference that keeps more apart than it
// has to, and in one where it makes none it keeps everything apart.

/// What entitlements open of the tree, with what is private kept apart from it.
package struct SandboxReach: Equatable, Sendable {
  private let home: String
  /// What the entitlements name.
  private let claims: [ScopePlace]
  /// The services for which the app may ask.
  package let services: [PrivacyService]
  /// The directories that take consent in its view, by services.
  private let privatePlaces: [PrivacyService: [[[UInt8]]]]
  /// The services for which it may ask whatever its entitlements open.
  private let own: Set<PrivacyService>

  /// `isChooser` says that the app's user chooses files for it.
  package init(home: String, _ claims: [ScopePlace], isChooser: Bool) {
    self.home = home
    self.claims = claims
    let own = PrivacyService.allCases.filter { $0.mayBeAskedFor(byChooser: isChooser) }
    self.own = Set(own)
    var places: [PrivacyService: [[[UInt8]]]] = [:]
    for service in PrivacyService.allCases {
      let main =
        own.contains(service) ? [service.place(home: home)].map { ScopePlace($0, .nothing).path } : []
      let all = service.places(home: home)
      let present = all.filter { place in main.contains(place) || claims.contains { $0.touches(place) } }
      if !present.isEmpty { places[service] = present }
    }
    privatePlaces = places
    services = PrivacyService.allCases.filter { own.contains($0) || places[$0] != nil }
  }

  /// The directories of a service that take consent.
  package func places(of service: PrivacyService) -> [[[UInt8]]] { privatePlaces[service] ?? [] }

  /// What is in the view whatever was decided.
  package var permanent: [ScopePlace] {
    var places = claims.flatMap(opened)
    for place in services.flatMap(places(of:)) { places.append(ScopePlace(place, .apart, isSubtree: false)) }
    for place in [[Self.users], [Self.trash]] where claims.contains(where: { $0.touches(place) }) {
      places.append(ScopePlace(place, .apart, isSubtree: false))
    }
    return places
  }

  /// What is in the view of a service while its user has not consented.
  package func places(without service: PrivacyService) -> [ScopePlace] {
    let reach = service.withoutConsent(home: home).reach
    return places(of: service).map { ScopePlace($0, reach, isSubtree: false, by: .consent) }
  }

  /// What is in the view of a service with its user's consent.
  ///
  /// `writesChosenFiles` says that the app may change what is chosen for it, and `allMusic` that the media
  /// library is the whole Music folder.
  package func places(
    with service: PrivacyService, writesChosenFiles: Bool, allMusic: Bool
  ) -> [ScopePlace] {
    guard service.isAboutFiles else { return [] }
    let byItself =
      own.contains(service)
      ? service.withConsent(home: home, writesChosenFiles: writesChosenFiles, allMusic: allMusic) : []
    return byItself
      + service.consented(home: home).flatMap { place in claims.compactMap { $0.revocable(within: place) } }
  }

  // MARK: What an entitlement opens by itself

  private static let users = Array("Users".utf8)
  private static let shared = Array("Shared".utf8)
  private static let trash = Array(DomainTree.trash.path.utf8)

  /// What one of them opens without anybody's consent.
  private func opened(_ claim: ScopePlace) -> [ScopePlace] {
    let isPrivate = privatePlaces.values.joined().contains { isPlace($0, atOrAbove: claim.path) }
    if isPrivate || isPlace([Self.trash], atOrAbove: claim.path) { return [] }
    if isPlace([Self.users], atOrAbove: claim.path), claim.path.count > 1 {
      let name = claim.path[1]
      return areOneName(name, Array(home.utf8)) || areOneName(name, Self.shared) ? [claim] : []
    }
    guard claim.isSubtree, claim.touches([Self.users]), claim.path.count <= 1 else { return [claim] }
    // Homes are apart, so what it opens in them is said of each.
    let inUsers = [Array(home.utf8), Self.shared].map { ScopePlace([Self.users, $0], claim.reach) }
    return [claim, ScopePlace([Self.users], claim.reach.intersection(.read), isSubtree: false)] + inUsers
  }
}

/// Whether a path is that of a place, or of something in it; names of the place may be patterns.
private func isPlace(_ place: [[UInt8]], atOrAbove path: [[UInt8]]) -> Bool {
  path.count >= place.count && haveOneBeginning(place, path)
}

/// Whether two paths are one as far as the shorter one goes; names of the first may be patterns.
private func haveOneBeginning(_ place: [[UInt8]], _ path: [[UInt8]]) -> Bool {
  zip(place, path).allSatisfy { ScopePlace.stands($0, for: $1) || areOneName($0, $1) }
}

extension ScopePlace {
  /// Whether it is in a place, or the place in it.
  fileprivate func touches(_ place: [[UInt8]]) -> Bool {
    haveOneBeginning(place, path) && (isSubtree || path.count >= place.count)
  }

  /// What of it is in a place whose names may be patterns, to be revoked; nil for nothing.
  fileprivate func revocable(within place: [[UInt8]]) -> ScopePlace? {
    guard touches(place) else { return nil }
    let names = zip(place, path).map { ScopePlace.suffix(ofPattern: $0) == nil ? $0 : $1 }
    let rest = path.count > place.count ? path.dropFirst(place.count) : place.dropFirst(path.count)
    // Nothing that is private is run.
    return ScopePlace(
      names + rest, reach.intersection([.read, .write]).union(.revocable), isSubtree: isSubtree, by: .consent)
  }
}
