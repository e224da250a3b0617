// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
package import Store
internal import Volume

// What comes over the control socket, and what a command does where there is none.

extension GrantService {
  /// What follows from an order; it waits for what the app has under way.
  func answer(_ call: ControlCall) -> ControlAnswer {
    guard let order = call.request.grant else { return .reply(.malformed) }
    return .job(.grants) { _ in self.perform(order, asking: call.asker()) }
  }

  /// What there is, of the caller's or, for root, of all.
  func list(_ call: ControlCall) -> ControlReply {
    let peer = call.peer
    guard peer.isMaster || call.request.user == nil || call.request.user == peer.uid else {
      return ControlReply(
        ok: false, errno: Errno.EPERM.code, message: "only root may ask what others have granted")
    }
    var identifier: AppIdentifier?
    if let text = call.request.identifier {
      identifier = AppIdentifier(text)
      if identifier == nil { return .malformed }
    }
    let user = peer.isMaster ? call.request.user : peer.uid
    let found = list(identifier, of: user, after: call.request.after ?? 0)
    var reply = ControlReply.done
    reply.grants = found.places
    reply.next = found.next
    return reply
  }

  /// For a store that nobody serves, and that is changed by us alone or by nobody.
  package convenience init(unmounted store: Store, isReadOnly: Bool) throws {
    let isSystem = store.description.mode == .system
    var settings = VolumeSettings()
    settings.isSystem = isSystem
    settings.fileHandles = isSystem && Volume.canUseHandles(store.tree)
    let volume = Volume(tree: store.tree, settings: settings)
    let known = try Registry.existing(of: store)
    // One that is not where it was installed is no place that could be granted.
    for app in try known?.apps() ?? [] { try? volume.noteBundle(at: app.path, seal: app.seal) }
    try self.init(store, volume, isReadOnly: isReadOnly) { (making) throws(StoreError) in
      if let known { return known }
      return making ? try Registry(of: store) : nil
    }
  }
}
