// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import LinuxIO
internal import Store

// Orders that are about the system domain.

extension AppWork {
  /// Only root and the store's owner may give such.
  func performOnSystem(
    _ order: AppOrder, _ source: FD?, asking asker: Asker, _ wait: InstallWait
  ) -> ControlReply {
    guard asker.uid == 0 || asker.uid == ProcessID.user else {
      return ControlReply(
        ok: false, errno: Errno.EPERM.code, message: "only root may change the system domain")
    }
    let users = watch.users(of: "System")
    guard users.isEmpty else {
      let list = users.joined(separator: "; ")
      return ControlReply(
        ok: false, errno: Errno.EBUSY.code,
        message:
          "apps run, which use the system domain (\(list)); end them first: 'insula ps', 'insula kill ID'")
    }
    do {
      let system = try system()
      var reply = ControlReply.done
      switch order.action {
      case .updateSystem:
        guard let name = order.bundle else { return .malformed }
        guard let source else { return .withoutDirectory }
        reply.system = try system.update(from: source, named: name) { count in
          wait.progress(InstallProgress(phase: .copying, done: count.bytes))
        }
      default: reply.system = try system.rollback()
      }
      return reply
    } catch let failure as SystemFailure {
      return ControlReply(failure)
    } catch let failure as AppFailure {
      return ControlReply(failure)
    } catch {
      return ControlReply(ok: false, message: "\(error)")
    }
  }

  /// Ends an exchange that was stopped.
  func recoverSystem() throws(AppFailure) {
    let system = try system()
    do throws(SystemFailure) {
      try system.recover()
    } catch .store(let error) {
      throw .store(error)
    } catch .failed(let doing, let path, let errno) {
      throw .failed(doing: doing, path: path, errno: errno)
    } catch {
      throw .failed(doing: "end the exchange of", path: "\(store.path)/tree/System", errno: .EIO)
    }
  }

  private func system() throws(AppFailure) -> SystemDomain {
    SystemDomain(store, registry, trust: try StoreTrust.read(store), watch: watch)
  }
}

extension ControlReply {
  /// Says why the system domain stays as it is.
  init(_ failure: SystemFailure) {
    switch failure {
    case .store(let error): self.init(error)
    case .failed(_, _, let errno): self.init(ok: false, errno: errno.code, message: failure.description)
    case .notSigned(_, .signer(let found)):
      self.init(ok: false, message: failure.description)
      finding = found.kind.rawValue
    default: self.init(ok: false, message: failure.description)
    }
  }
}
