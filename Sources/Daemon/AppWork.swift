// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
internal import Bundles
package import LinuxIO
package import Store

/// Carries orders out.
package struct AppWork: Sendable {
  let store: Store
  let registry: Registry
  let watch: any TreeWatch
  /// Where containers are made.
  private let containers: @Sendable () throws(StoreError) -> Containers

  package init(
    _ store: Store, _ registry: Registry, watch: any TreeWatch,
    containers: @escaping @Sendable () throws(StoreError) -> Containers
  ) {
    self.store = store
    self.registry = registry
    self.watch = watch
    self.containers = containers
  }

  /// On a store that nobody serves.
  package init(_ store: Store, _ registry: Registry) {
    self.init(store, registry, watch: NobodyWatches()) { () throws(StoreError) in
      try Containers(store, registry)
    }
  }

  /// Ends what was stopped before its end, of which a store that is opened for writing may have some.
  package func recover() throws(AppFailure) {
    try installer().recover()
    try recoverSystem()
  }

  /// Does what is asked; the reply says what came of it.
  package func perform(
    _ order: AppOrder, on source: FD?, asking asker: Asker, _ wait: InstallWait
  ) -> ControlReply {
    do throws(AppFailure) {
      switch order.action {
      case .install, .update: return try put(order, source, asker, wait)
      case .uninstall: return try uninstall(order, asker)
      case .deliver: return try deliver(order, asker)
      case .replaceData: return try replaceData(order, asker)
      case .updateSystem, .rollbackSystem: return performOnSystem(order, source, asking: asker, wait)
      }
    } catch {
      return ControlReply(error)
    }
  }

  private func put(
    _ order: AppOrder, _ source: FD?, _ asker: Asker, _ wait: InstallWait
  ) throws(AppFailure) -> ControlReply {
    guard let name = order.bundle else { return .malformed }
    guard let source else { return .withoutDirectory }
    let installer = try installer()
    var reply = ControlReply.done
    if order.action == .install {
      reply.app = try installer.install(source, named: name, for: order.domain, asking: asker, wait)
    } else {
      let updated = try installer.update(
        source, named: name, for: order.domain, asking: asker, allowingDowngrade: order.allowsDowngrade, wait)
      (reply.before, reply.app) = (updated.before, updated.now)
      reply.left = updated.left.isEmpty ? nil : updated.left
    }
    return reply
  }

  private func uninstall(_ order: AppOrder, _ asker: Asker) throws(AppFailure) -> ControlReply {
    guard let identifier = order.identifier else { return .malformed }
    var reply = ControlReply.done
    let removed = try installer().uninstall(
      identifier, of: order.domain, asking: asker, keepingData: order.keepsData)
    reply.before = removed.app
    reply.left = removed.left.isEmpty ? nil : removed.left
    return reply
  }

  private func deliver(_ order: AppOrder, _ asker: Asker) throws(AppFailure) -> ControlReply {
    guard let delivery = order.delivery else { return .malformed }
    let deliverer: Deliverer
    do throws(StoreError) {
      deliverer = Deliverer(store, registry, containers: try containers(), watch: watch)
    } catch {
      throw .store(error)
    }
    var reply = ControlReply.done
    reply.path = try deliverer.deliver(delivery, asking: asker)
    return reply
  }

  private func replaceData(_ order: AppOrder, _ asker: Asker) throws(AppFailure) -> ControlReply {
    guard let newData = order.newData else { return .malformed }
    let replacer: DataReplacer
    do throws(StoreError) {
      replacer = DataReplacer(store, registry, containers: try containers(), watch: watch)
    } catch {
      throw .store(error)
    }
    try replacer.replace(newData, asking: asker)
    return .done
  }

  /// Roots come and go while a daemon runs, so they are read each time.
  private func installer() throws(AppFailure) -> Installer {
    let trust = try StoreTrust.read(store)
    do throws(StoreError) {
      return Installer(store, registry, containers: try containers(), trust: trust, watch: watch)
    } catch {
      throw .store(error)
    }
  }
}

extension ControlReply {
  /// Says why nothing was done.
  package init(_ failure: AppFailure) {
    if case .store(let error) = failure {
      self.init(error)
      return
    }
    self.init(ok: false, errno: failure.errno?.code, message: "\(failure)")
    if case .refused(_, let findings) = failure { finding = findings.first?.kind.rawValue }
  }

  static let malformed = ControlReply(
    ok: false, errno: Errno.EINVAL.code, message: "something is missing from the request")

  /// What a caller may do to their own files is not always what the daemon may.
  static let withoutDirectory = ControlReply(
    ok: false, errno: Errno.ENOTDIR.code,
    message:
      "no directory came along that the daemon may look at; copy the bundle out of a mount of your own first")
}

extension AppFailure {
  /// What stands for it among numbers; nil where none does.
  fileprivate var errno: Errno? {
    switch self {
    case .notAllowed: .EPERM
    case .busy, .running: .EBUSY
    case .cancelled: .EINTR
    case .noSpace: .ENOSPC
    case .failed(_, _, let errno): errno
    default: nil
    }
  }
}
