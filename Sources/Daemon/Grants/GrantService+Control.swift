// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
package import Store
internal import Volume

// What comes over the control socket, and what a command does where there is none.

extension GrantService {
  /// What follows from a request to grant or revoke something; it waits for what the app has under way.
  func answer(_ request: GrantRequest, _ call: ControlCall) -> ControlAnswer {
    .job(request.isRevocation ? .decisions : .grants) { reporter in
      ControlReply { () throws(ControlFailure) in
        let places = try self.perform(request, by: call.callerIdentity(), for: reporter)
        return .grants(GrantPage(places: places, next: nil))
      }
    }
  }

  /// What there is, of the caller's or, for root, of all.
  func list(
    _ identifier: AppIdentifier?, of user: UInt32?, after number: Int64, for call: ControlCall
  ) -> ControlReply {
    let caller = call.caller
    guard caller.isPrivileged || user == nil || user == caller.uid else {
      return .failure(ControlFailure("only root may list the grants of other users", .EPERM))
    }
    let user = caller.isPrivileged ? user : caller.uid
    return .grants(list(identifier, of: user, after: number, for: call.callerIdentity()))
  }

  /// For a store that nobody serves, and that is changed by us alone or by nobody.
  package convenience init(unmounted store: Store, isReadOnly: Bool) throws {
    let isSystem = store.description.mode == .system
    var settings = VolumeSettings()
    settings.isSystem = isSystem
    settings.ignoresCase = store.description.ignoresCase
    settings.fileHandles = isSystem && Volume.canUseHandles(store.tree)
    let volume = Volume(tree: store.tree, settings: settings)
    let known = try Registry.existing(of: store)
    // One that is not where it was installed is no place that could be granted.
    for bundle in try known?.bundles() ?? [] {
      try? volume.noteBundle(at: bundle.path, seals: bundle.seals)
    }
    let log = StoreLog(store)
    try self.init(store, volume, isReadOnly: isReadOnly, log: { try? log.append($0) }) {
      (making) throws(StoreError) in
      if let known { return known }
      return making ? try Registry(of: store) : nil
    }
  }
}
