// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
internal import Bundles
internal import LinuxIO
internal import Policy
internal import Store

extension AppRequestHandler {
  /// Says which root speaks for a team from now on; the store must trust it.
  ///
  /// Returns the root that did before.
  package func assign(
    _ team: String, to root: [UInt8], by caller: CallerIdentity
  ) throws(ControlFailure) -> [UInt8]? {
    guard caller.uid == 0 || caller.uid == ProcessID.user else {
      throw ControlFailure("only root and the owner of the store may assign teams to roots", .EPERM)
    }
    let trust = try explaining { () throws(AppFailure) in try StoreTrust.read(store) }
    guard !team.isEmpty, trust.roots.contains(where: { $0.fingerprint == root }) else {
      throw ControlFailure(
        "a team can only be assigned to a root that the store trusts; 'insula trust list --store STORE' "
          + "lists these roots", .EINVAL)
    }
    let before: [UInt8]?
    do throws(StoreError) { before = try registry.pin(team, to: root) } catch { throw ControlFailure(error) }
    log([
      LogEntry(
        now: .teamAssigned, user: nil, app: nil, by: caller.uid,
        detail: "\(team.sanitized), root \(root.asHexadecimal)")
    ])
    return before
  }

  /// Forgets which teams earlier versions have assigned to the roots of the joined network; what the machine
  /// itself trusts stays as it is.
  func forgetNetworkTeams() throws(AppFailure) {
    let isInNetwork: Bool
    do throws(StoreError) { isInNetwork = try store.joinedNetwork() != nil } catch { throw .store(error) }
    guard isInNetwork else { return }
    let own = try StoreTrust.read(store).roots.map(\.fingerprint)
    let roots = try StoreTrust.read(store, for: .network).roots.map(\.fingerprint)
    do throws(StoreError) {
      try registry.forgetTeams(ofNetworkRoots: roots.filter { !own.contains($0) })
    } catch {
      throw .store(error)
    }
  }
}
