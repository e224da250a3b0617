// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A directory of an app whose contents may be thrown away while the app does not run.
package enum PurgePlace: String, Codable, Hashable, Sendable, CaseIterable {
  // In the order in which their contents go.
  case tmp
  case caches

  /// Below the app's container.
  package var path: String {
    switch self {
    case .tmp: "\(ContainerLayout.dataName)/tmp"
    case .caches: "\(ContainerLayout.dataName)/Library/Caches"
    }
  }
}

/// The contents of such a directory, as what may go next.
package struct PurgeCandidate: Equatable, Sendable {
  package let app: AppIdentifier
  package let user: UInt32
  package let place: PurgePlace
  /// When the app has begun or ended last, in seconds since 1970; nil if it is not known to have run.
  package let lastRun: Int64?

  package init(_ app: AppIdentifier, of user: UInt32, _ place: PurgePlace, lastRun: Int64?) {
    self.app = app
    self.user = user
    self.place = place
    self.lastRun = lastRun
  }
}

extension Sequence<PurgeCandidate> {
  /// Everybody's temporary files before anybody's caches, and those first of apps that ran longest ago.
  package func inPurgeOrder() -> [PurgeCandidate] {
    let places = PurgePlace.allCases
    return sorted { one, other in
      if one.place != other.place {
        return places.firstIndex(of: one.place) ?? 0 < places.firstIndex(of: other.place) ?? 0
      }
      if one.lastRun != other.lastRun { return one.lastRun ?? .min < other.lastRun ?? .min }
      return (one.app.text, one.user) < (other.app.text, other.user)
    }
  }
}
