// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
internal import LinuxIO
internal import Store
internal import Synchronization

/// What a daemon does to apps while it serves their store.
final class AppService: Sendable {
  private let store: Store
  /// None in a store that is mounted read-only and has none yet.
  private let registry: Registry?
  private let mountPoint: String
  private let isReadOnly: Bool
  /// Set once the tree is mounted.
  private let watch = Mutex<any TreeWatch>(NobodyWatches())

  /// Before the tree is mounted: what an earlier daemon was stopped in is ended or taken back.
  init(_ store: Store, _ settings: Service.Settings) throws {
    self.store = store
    mountPoint = settings.mountPoint
    isReadOnly = settings.options.readOnly
    let state = store.path + "/state"
    guard !isReadOnly else {
      registry = try Registry.existing(state: store.state, path: state)
      return
    }
    let registry = try Registry(state: store.state, path: state)
    try AppWork(store, registry).recover()
    self.registry = registry
  }

  /// From here on, changes reach those who look at the tree.
  func serve(through watch: any TreeWatch) { self.watch.withLock { $0 = watch } }

  /// What follows from an order.
  ///
  /// The bundle is the caller's own open directory: no path of theirs is walked here.
  func answer(_ call: ControlCall) -> ControlAnswer {
    guard let order = call.request.order else { return .reply(.malformed) }
    guard !isReadOnly, let registry else {
      return .refusal("the store is mounted read-only; mount it for writing first", .EROFS)
    }
    let asker = Asker(uid: call.peer.uid, gid: call.peer.gid, groups: call.peer.groups)
    let watch = watch.withLock { $0 }
    let work = AppWork(store, registry, watch: watch) { [mountPoint] () throws(StoreError) in
      try MountedTree.containers(at: mountPoint, registry)
    }
    return .job { caller in
      let wait = InstallWait(
        progress: { caller.report(ControlProgress($0)) }, isCancelled: { caller.isCancelled })
      guard let bundle = call.descriptor else { return work.perform(order, on: nil, asking: asker, wait) }
      do throws(Errno) {
        return try bundle.use { (fd) throws(Errno) in work.perform(order, on: fd, asking: asker, wait) }
      } catch {
        return ControlReply(ok: false, errno: error.code, message: error.message)
      }
    }
  }
}

extension ControlProgress {
  package init(_ progress: InstallProgress) {
    self.init(
      phase: progress.phase.rawValue, done: UInt64(clamping: progress.done),
      total: UInt64(clamping: progress.total))
  }
}
