// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Policy
internal import Store
internal import Volume

// Whose apps grants are for, as the registry says it.

extension GrantService {
  /// What a worker begins with: nothing where it can't read the registry.
  static func atStart(_ registry: RegistrySource) throws(StoreError) -> Registry? {
    do throws(StoreError) { return try registry(false) } catch .appsUnknown { return nil }
  }

  /// What was granted to an app under a former root of its team is this app's, as the registry knows since it
  /// was updated.
  ///
  /// Throws for an app that is still under a former root, if its user has granted the team's app something:
  /// that is neither for this one nor to be lost.
  func noteTeams(ofGrantsTo app: InstalledApp, for user: UInt32) throws(AppFailure) {
    func others() -> [GrantRecord] {
      volume.granted(to: app.identifier, of: user).filter {
        $0.team != app.signer && $0.team.text == app.team
      }
    }
    let found = others()
    guard !found.isEmpty else { return }
    do throws(StoreError) {
      guard let registry = try registry(false) else { return }
      volume.changeTeams(of: try registry.teamsOfGrants(to: app.team, among: Set(found.map(\.id))))
      for other in others() {
        guard try registry.isSuccessor(other.team, of: app.signer) else { continue }
        throw .appOfFormerRoot(identifier: app.identifier.text, team: app.team)
      }
    } catch {
      throw .store(error)
    }
  }
}
