// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO
internal import Store

/// Looks whether the system domain is the one that was installed.
struct SystemCheck {
  let store: Store
  let registry: Registry

  /// What is wrong; nothing while it is being exchanged, or was when a process was stopped.
  ///
  /// Unless `isDeep`, only the seal is looked at.
  func findings(isDeep: Bool) throws(StoreError) -> [StoreFinding] {
    let versions = try registry.systemVersions()
    guard versions.next == nil else { return [] }
    var findings = problem(versions.current, "tree", "System", isDeep) ?? []
    if let previous = versions.previous {
      findings += problem(previous, "state/system", "previous", isDeep) ?? []
    }
    return findings
  }

  private func problem(
    _ version: SystemVersion, _ place: String, _ name: String, _ isDeep: Bool
  ) -> [StoreFinding]? {
    let path = "\(store.path)/\(place)/\(name)"
    let advice =
      place == "tree"
      ? "install a version again with 'insula system update', or go back with 'insula system rollback'"
      : "it can't be gone back to; the next 'insula system update' replaces it"
    guard let tree = try? open(place, name) else {
      // A missing '/System' is reported as all of the skeleton is.
      return place == "tree" ? nil : [finding(path, "is missing, the system to go back to", advice)]
    }
    let domain = SystemDomain(store, registry, trust: Trust(roots: []))
    do throws(SystemFailure) {
      try domain.check(tree.fd, version, path, isDeep: isDeep)
      return nil
    } catch {
      return [finding(path, "is not the system that was installed: \(error)", advice)]
    }
  }

  private func finding(_ path: String, _ problem: String, _ advice: String) -> StoreFinding {
    StoreFinding(severity: .failure, path: path, problem: problem, advice: advice)
  }

  private func open(_ place: String, _ name: String) throws(Errno) -> OwnedFD {
    if place == "tree" {
      return try name.withName { (name) throws(Errno) in try store.tree.openDirectory(name) }
    }
    let system = try "system".withName { (name) throws(Errno) in try store.state.openDirectory(name) }
    return try name.withName { (name) throws(Errno) in try system.fd.openDirectory(name) }
  }
}
