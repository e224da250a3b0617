// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import Bundles
package import LinuxIO
package import Policy
package import Store

/// Installs, updates and removes apps, each in one step: whenever it is stopped, there is the old state or the new one.
///
/// One serves any number of threads; two that want the same app take no turns, the second is told so.
package final class Installer: Sendable {
  let store: Store
  let registry: Registry
  let containers: Containers
  let trust: Trust
  let watch: any TreeWatch
  /// Now, in seconds since 1970.
  let time: @Sendable () -> Int64

  /// `containers` is the store's own, or the mounted tree's where a daemon serves it; `trust` is ``StoreTrust``'s.
  package init(
    _ store: Store, _ registry: Registry, containers: Containers, trust: Trust,
    watch: any TreeWatch = NobodyWatches(),
    time: @escaping @Sendable () -> Int64 = { Int64(Glibc.time(nil)) }
  ) {
    self.store = store
    self.registry = registry
    self.containers = containers
    self.trust = trust
    self.watch = watch
    self.time = time
  }

  /// Installs the bundle that a directory, open for reading, is.
  ///
  /// `name` is the directory's own, with which it will be found in the tree.
  package func install(
    _ source: FD, named name: String, for domain: AppDomain, asking asker: Asker,
    _ wait: InstallWait = .init()
  ) throws(AppFailure) -> InstalledApp {
    throw .cancelled
  }

  /// Puts another version of an app in the place of the one that is installed in that domain.
  package func update(
    _ source: FD, named name: String, for domain: AppDomain, asking asker: Asker,
    allowingDowngrade: Bool = false,
    _ wait: InstallWait = .init()
  ) throws(AppFailure) -> (before: InstalledApp, now: InstalledApp) {
    throw .cancelled
  }

  /// Removes an app; its containers too, unless they are to be kept.
  @discardableResult
  package func uninstall(
    _ identifier: AppIdentifier, of domain: AppDomain, asking asker: Asker, keepingData: Bool = false
  ) throws(AppFailure) -> InstalledApp {
    throw .cancelled
  }

  /// Ends what another process of ours was stopped in: forward where the change was visible already, back where not.
  ///
  /// Whoever opens the store for writing calls it before anything else is done to apps; what this process is at is left alone.
  package func recover() throws(AppFailure) {}
}
