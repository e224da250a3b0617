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
    // A missing '/System' is reported as all of the skeleton is.
    let current = finding(
      in: SystemDomain.treePath, versions.current, isDeep, missing: nil,
      "install a version again with 'insula system update', or return with 'insula system rollback'")
    let previous = versions.previous.flatMap {
      finding(
        in: SystemDomain.previousPath, $0, isDeep, missing: "is missing: the previous system domain",
        "rollback is not possible; the next 'insula system update' replaces it")
    }
    return [current, previous].compactMap(\.self)
  }

  private func finding(
    in place: String, _ version: SystemVersion, _ isDeep: Bool, missing: String?, _ advice: String
  ) -> StoreFinding? {
    let path = "\(store.path)/\(place)"
    func finding(_ problem: String) -> StoreFinding {
      StoreFinding(severity: .failure, path: path, problem: problem, advice: advice)
    }
    guard let tree = try? store.directory.openDirectory(at: place) else { return missing.map(finding) }
    let domain = SystemDomain(store, registry, trust: Trust(roots: []))
    do throws(SystemFailure) {
      try domain.check(tree.fd, version, path, isDeep: isDeep)
      return nil
    } catch {
      return finding("is not the system domain that was installed: \(error)")
    }
  }
}
