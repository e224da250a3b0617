// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
internal import LinuxIO
internal import Store

/// What a daemon does to apps while it serves their store.
final class AppService: Sendable {
  private let store: Store
  private let registry: Registry
  private let watch: any TreeWatch
  private let isReadOnly: Bool

  init(_ store: Store, _ registry: Registry, watch: any TreeWatch, isReadOnly: Bool) {
    self.store = store
    self.registry = registry
    self.watch = watch
    self.isReadOnly = isReadOnly
  }

  /// What follows from an order.
  ///
  /// The bundle is the caller's own open directory: no path of theirs is walked here.
  func answer(_ call: ControlCall) -> ControlAnswer {
    guard let order = call.request.order else { return .reply(.malformed) }
    guard !isReadOnly else {
      return .refusal("the store is mounted read-only; mount it for writing first", .EROFS)
    }
    let asker = Asker(uid: call.peer.uid, gid: call.peer.gid, groups: call.peer.groups)
    let work = AppWork(store, registry, watch: watch)
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
