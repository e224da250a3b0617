// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Bundles
internal import LinuxIO
internal import Policy
package import Store

/// Looks whether installed bundles, and the system domain, are those that were installed: the part of `insula
/// check` that knows about seals.
///
/// What is missing altogether, ``StoreCheck`` finds.
package struct AppsCheck {
  private let store: Store
  /// Who is asked about each bundle as a whole; nil for a look at their seals only.
  private let trust: Judge?

  /// Gives the judge of what comes from somewhere.
  package typealias Judge = @Sendable (AppDomain) throws(AppFailure) -> Trust

  /// With `trust` each bundle is verified, which takes as long as it takes to read all of them.
  package init(_ store: Store, verifyingBy trust: Judge?) {
    self.store = store
    self.trust = trust
  }

  /// What is wrong; what is being changed just now, or was when a process was stopped, is left out.
  ///
  /// `began` is told each app before its bundle is looked at.
  package func findings(began: (InstalledApp) -> Void = { _ in }) throws(AppFailure) -> [StoreFinding] {
    let apps: [InstalledApp]
    let changing: [TreeIntent]
    var findings: [StoreFinding] = []
    do throws(StoreError) {
      guard let registry = try Registry.existing(of: store) else {
        return []
      }
      // The store's own check says what is wrong with the registry.
      guard try registry.problems().isEmpty else { return [] }
      apps = try registry.apps()
      changing = try registry.intents().map(\.intent)
      findings = try SystemCheck(store: store, registry: registry).findings(isDeep: trust != nil)
    } catch {
      switch error {
      case .registryDamaged, .registryOfOthers: return []
      default: break
      }
      throw .store(error)
    }
    for app in apps
    where !changing.contains(where: { $0.isAbout(app) }) {
      began(app)
      if let finding = try check(app) { findings.append(finding) }
    }
    return findings
  }

  private func check(_ app: InstalledApp) throws(AppFailure) -> StoreFinding? {
    let judge = try trust?(AppDomain(ofEveryones: app.path))
    let place = BundlePlace(path: app.path)
    let root: OwnedFD
    do throws(Errno) {
      root = try store.tree.openDirectory(at: app.path)
    } catch .ENOENT, .ENOTDIR, .ELOOP {
      return nil
    } catch {
      return finding(app, "can't be opened: \(error.message)", "check the disk")
    }
    do throws(Bundles.Finding) {
      let bundle = try CodeBundle(in: root, name: place.name)
      guard try bundle.sealDigest() == app.seal else {
        return finding(
          app, "is not the bundle of \(app.identifier) that was installed: it has a different signature",
          Self.advice(app))
      }
      guard let judge else { return nil }
      // Certificates run out, and what was installed while they were good stays good. A root that is trusted
      // no more must not hide damage, and the seal says that its signer was no stranger.
      let findings = bundle.verify(judge, at: app.installed, includingStrangers: true).findings
      if let worst = findings.first(where: { $0.kind != .untrusted }) {
        return finding(app, "differs from what was signed: \(worst.message)", Self.advice(app))
      }
      guard !findings.isEmpty else { return nil }
      return StoreFinding(
        severity: .warning, path: "\(store.path)/tree/\(app.path)",
        problem: "is signed by a team that is no longer trusted: \(app.team)",
        advice: "trust the root again with 'insula trust add', or uninstall the app")
    } catch {
      return finding(app, "differs from what was signed: \(error.message)", Self.advice(app))
    }
  }

  private static func advice(_ app: InstalledApp) -> String {
    "restore it from a backup, or uninstall the app with '--keep-data' and install it again"
  }

  private func finding(_ app: InstalledApp, _ problem: String, _ advice: String) -> StoreFinding {
    StoreFinding(severity: .failure, path: "\(store.path)/tree/\(app.path)", problem: problem, advice: advice)
  }
}
