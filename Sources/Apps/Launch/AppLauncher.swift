// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
internal import PropertyLists
package import Store
internal import Synchronization

/// Finds out whether an app may run, and what is there for it then.
///
/// What was found good is remembered for as long as the files that it depends on stay as they are.
package final class AppLauncher: Sendable {
  private struct Verdict {
    let seal: [UInt8]
    let files: [(path: String, stamp: Stamp?)]
    /// From the bundle's directory on.
    let executable: String
    let entitlements: AppEntitlements
    let limits: ResourceLimits
    let privacy: AppPrivacy

    /// How large the files are from which something is kept: of code and digests, which are large where the
    /// bundle is, nothing is.
    var bytesReadFrom: Int {
      let kept = files.filter { file in Self.keptFiles.contains { file.path.hasSuffix($0) } }
      return kept.reduce(0) { sum, file in
        let (next, isTooMuch) = sum.addingReportingOverflow(Int(file.stamp?.file.size ?? 0))
        return isTooMuch ? Int.max : next
      }
    }

    private static let keptFiles = ["Info.plist", SealLayout.codeEntitlements]
  }

  private let store: Store
  private let verdicts = Mutex(RecentVerdicts<Verdict>())

  package init(_ store: Store) { self.store = store }

  /// Looks at the app's signature and executable, and makes what is missing of its containers.
  ///
  /// `making` gives what makes containers; without it, as in a store that nobody can write to, the app has to
  /// do with what is there.
  package func launch(
    _ app: InstalledApp, for user: UInt32, _ registry: Registry,
    making: (() throws(StoreError) -> Containers)?
  ) throws(AppFailure) -> AppLaunch {
    let verdict = try verdict(on: app, registry)
    do throws(StoreError) {
      let home = try store.home(of: user)
      try complete(app, of: user, home: home, registry, making)
      return launch(of: app, home: home, verdict)
    } catch {
      throw .store(error)
    }
  }

  /// What there is for an app that another process has started, and which goes on in its home.
  ///
  /// An app may remove what it likes of its containers, and so may its user: what is missing is made when it
  /// is started the next time. Nil if one of them is not the app's any more.
  package func resume(
    _ app: InstalledApp, for user: UInt32, home: String, _ registry: Registry
  ) throws(AppFailure) -> AppLaunch? {
    let verdict = try verdict(on: app, registry)
    do throws(StoreError) {
      guard store.isHome(home, of: user) else { throw .noHome(path: "\(store.path)/tree/Users/\(home)") }
      for (kind, identifier) in app.neededContainers {
        let found = try store.findContainer(kind, identifier, of: user, home: home, for: app, registry)
        if case .withheld = found { return nil }
      }
      return launch(of: app, home: home, verdict)
    } catch {
      throw .store(error)
    }
  }

  private func complete(
    _ app: InstalledApp, of user: UInt32, home: String, _ registry: Registry,
    _ making: (() throws(StoreError) -> Containers)?
  ) throws(StoreError) {
    for (kind, identifier) in app.neededContainers {
      let found = try store.findContainer(kind, identifier, of: user, home: home, for: app, registry)
      if case .whole = found { continue }
      if let making {
        let containers = try making()
        _ = try Installer.alone(for: user, in: "Users/\(home)/", store, registry) { () throws(StoreError) in
          // The home may have kept it waiting for so long that the start was called off.
          try containers.make(for: app, home: home, ifInstalled: true)
        }
        return
      }
      // It can't be read without its directory, and can do nothing about that.
      let path = "Users/\(home)/\(ContainerLayout.path(of: identifier, kind))"
      let data = kind == .data ? "\(path)/\(ContainerLayout.dataName)" : path
      guard case .incomplete(isThere: true) = found, (try? store.tree.status(at: data))?.isDirectory == true
      else { throw .mountedReadOnly }
    }
  }

  private func launch(of app: InstalledApp, home: String, _ verdict: Verdict) -> AppLaunch {
    var entitlements = verdict.entitlements
    if store.description.allowsWritableCode { entitlements.runsWhatItWrites = true }
    var privacy = verdict.privacy
    privacy.hasAllMusic = store.description.offersAllMusic
    return AppLaunch(
      app, home: home, entitlements, executable: "\(app.path)/\(verdict.executable)",
      limits: verdict.limits, privacy: privacy)
  }

  /// Throws ``AppFailure/busy(identifier:)`` where an update has changed the bundle, and the registry does
  /// not have it yet: what does not match then is no finding.
  private func verdict(on app: InstalledApp, _ registry: Registry) throws(AppFailure) -> Verdict {
    do throws(AppFailure) {
      return try verdict(on: app)
    } catch {
      switch error {
      case .refused, .failed:
        if isBeingChanged(app, registry) { throw .busy(identifier: app.identifier.text) }
      default: break
      }
      throw error
    }
  }

  private func isBeingChanged(_ app: InstalledApp, _ registry: Registry) -> Bool {
    do throws(StoreError) {
      // In this order: it may be done by now.
      if try registry.intents().contains(where: { $0.isLive && $0.intent.isAbout(app) }) { return true }
      let now = try registry.apps(seenBy: app.user).first {
        $0.user == app.user && $0.identifier.isSame(as: app.identifier)
      }
      return now != app
    } catch {
      return false
    }
  }

  private func verdict(on app: InstalledApp) throws(AppFailure) -> Verdict {
    let root = try open(app)
    if let known = verdicts.withLock({ $0.verdict(at: app.path) }), known.seal == app.seal,
      known.files.allSatisfy({ $0.stamp == Stamp($0.path, in: root.fd) })
    {
      return known
    }
    let files: [(path: String, stamp: Stamp?)]
    let signed: PropertyList.Dictionary
    let executable: String
    let info: BundleInfo
    let directory = try open(app)
    do throws(Bundles.Finding) {
      let bundle = try CodeBundle(in: directory, name: app.bundleName)
      files = bundle.pathsForLaunch.map { (path: $0, stamp: Stamp($0, in: root.fd)) }
      signed = try bundle.checkForLaunch(seal: app.seal)
      executable = bundle.executableFromRoot
      info = bundle.info
    } catch {
      throw .refused(bundle: app.bundleName, [error])
    }
    let entitlements = try AppEntitlements(signed)
    try entitlements.desktop.check(for: app.identifier.text)
    let made = Verdict(
      seal: app.seal, files: files, executable: executable, entitlements: entitlements,
      limits: info.limits, privacy: try AppPrivacy(info, signed))
    // What has only just changed may change again unseen; and so it may while it is read.
    if made.files.allSatisfy({ $0.stamp?.file.isSettled ?? true && $0.stamp == Stamp($0.path, in: root.fd) })
    {
      let bytes = made.bytesReadFrom
      verdicts.withLock { $0.remember(made, at: app.path, of: app.user, readFrom: bytes) }
    }
    return made
  }

  private func open(_ app: InstalledApp) throws(AppFailure) -> OwnedFD {
    do throws(Errno) {
      return try Self.openNoatime(app.path, below: store.tree)
    } catch {
      throw .failed(doing: "open", path: "/\(app.path)", errno: error)
    }
  }

  /// Reading leaves no trace in what is sealed, where that can be had.
  private static func openNoatime(_ path: String, below tree: FD) throws(Errno) -> OwnedFD {
    let directory = try tree.openDirectory(at: path)
    guard let noatime = try? PrivateMount.noatime(directory.fd) else { return directory }
    return try noatime.fd.open(Name.here, O_RDONLY | O_DIRECTORY)
  }
}

/// By which a file is known to be what it was.
private struct Stamp: Equatable {
  private let inode: UInt64
  let file: FileStamp

  init?(_ path: String, in root: FD) {
    guard let status = try? root.status(at: path) else { return nil }
    inode = UInt64(status.st_ino)
    file = FileStamp(status)
  }
}

extension InstalledApp {
  /// Its own container, and those that it has with other apps.
  fileprivate var neededContainers: [(ContainerKind, AppIdentifier)] {
    [(.data, identifier)] + groups.map { (.group, $0) } + clouds.map { (.cloud, $0) }
  }
}
