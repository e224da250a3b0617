// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
internal import Bundles
package import LinuxIO
package import Store

// Requests that are about the system domain: only root and the store's owner may have it changed.

extension AppRequestHandler {
  package func updateSystem(
    _ source: FD, named name: String, by caller: CallerIdentity, _ wait: InstallWait
  ) throws(ControlFailure) -> SystemVersions {
    let system = try system(changedBy: caller)
    return try noting("updated", by: caller) { () throws(SystemFailure) in
      try system.update(from: source, named: name, wait)
    }
  }

  package func rollbackSystem(by caller: CallerIdentity) throws(ControlFailure) -> SystemVersions {
    let system = try system(changedBy: caller)
    return try noting("rolled back", by: caller) { () throws(SystemFailure) in try system.rollback() }
  }

  private func noting(
    _ what: String, by caller: CallerIdentity, _ change: () throws(SystemFailure) -> SystemVersions
  ) throws(ControlFailure) -> SystemVersions {
    do throws(SystemFailure) {
      let versions = try change()
      let version = versions.current.version.isEmpty ? "" : " to version \(versions.current.version)"
      log([LogEntry(now: .systemChanged, by: caller.uid, path: "System", detail: what + version)])
      return versions
    } catch {
      throw ControlFailure(error)
    }
  }

  private func system(changedBy caller: CallerIdentity) throws(ControlFailure) -> SystemDomain {
    guard caller.uid == 0 || caller.uid == ProcessID.user else {
      throw ControlFailure("only root may change the system domain", .EPERM)
    }
    let users = observer.users(of: "System")
    guard users.isEmpty else {
      let list = users.joined(separator: "; ")
      throw ControlFailure(
        "running apps use the system domain (\(list)); end them first with 'insula kill ID'",
        .EBUSY)
    }
    do throws(AppFailure) { return try system() } catch { throw ControlFailure(error) }
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
      throw .failed(doing: "complete the exchange of", path: "\(store.path)/tree/System", errno: .EIO)
    }
  }

  private func system() throws(AppFailure) -> SystemDomain {
    SystemDomain(store, registry, trust: try StoreTrust.read(store), observer: observer)
  }
}

extension ControlFailure {
  /// Says why the system domain stays as it is.
  init(_ failure: SystemFailure) {
    switch failure {
    case .store(let error): self.init(error)
    case .failed(_, _, let errno): self.init(failure.description, errno)
    case .notSigned(_, .signer(let found)): self.init(failure.description, .finding(found.kind))
    default: self.init(failure.description)
    }
  }
}
