// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO
internal import Policy
internal import Store

extension AppFailure: CustomStringConvertible {
  /// What failed, on what, and what to do.
  ///
  /// Names in a bundle are a stranger's: what a terminal would obey is left out.
  package var description: String { sentence.sanitized }

  private var sentence: String {
    switch self {
    case .refused(let bundle, let findings):
      "\(bundle) was refused: \(findings.first?.message ?? "it is not signed"); "
        + (findings.first?.kind == .untrusted
          ? "a store has its own trusted roots: 'insula trust add FILE --store STORE' adds one"
          : "'insula verify' shows all problems")
    case .notCopied(let bundle, let failure): "\(bundle) can't be copied: \(failure)"
    case .store(let error): error.description
    case .trust(let failure): failure.description
    case .notAllowed(let doing, let path):
      "you may not \(doing) \(path); "
        + "ask an administrator of this machine, or use your own Applications with '--user'"
    case .badName(let name, let reason): "'\(name)' can't be the name of an app's bundle: \(reason)"
    case .inTheWay(let path, let what):
      "there is already \(what) at \(path); nothing was changed; move it away and try again"
    case .twin(let path, let other):
      "the name of \(path) would differ from '\(other)' only in case or spelling; rename one of them"
    case .alreadyInstalled(let identifier, let path):
      "\(identifier) is already installed at \(path); nothing was changed; "
        + "'insula update' installs another version"
    case .otherApp(let path, let identifier):
      "\(path) is another app, \(identifier); nothing was changed; rename the bundle, or uninstall that app"
    case .notInstalled(let identifier, let domain):
      "the app \(identifier) is not installed in \(domain); 'insula apps' lists all apps"
    case .otherIdentifier(let installed, let new):
      "this bundle is \(new), but the installed one is \(installed); "
        + "an update must be a version of the same app"
    case .otherTeam(let identifier, let installed, let new):
      "the installed \(identifier) is signed by the team \(installed), and this bundle by the team \(new); "
        + "to replace it, uninstall it first"
    case .sameVersion(let identifier, let version):
      "this version of \(identifier) is already installed: \(version); "
        + "to install it again, use '--allow-downgrade'"
    case .olderVersion(let identifier, let installed, let new):
      "a later version of \(identifier) is installed: \(installed); this one is \(new); "
        + "to install it anyway, use '--allow-downgrade'"
    case .badEntitlement(let key, let reason): "the entitlement \(key) can't be used: \(reason)"
    case .groupOfOtherTeam(let group, let app, let team):
      "the container \(group) is shared by \(app) of the team \(team); "
        + "only apps of the same team can share a container"
    case .busy(let identifier): StoreError.appBusy(identifier: identifier).description
    case .runsElsewhere(let identifier, let container, let host):
      (container.map { "an app that shares the container \($0) with " } ?? "") + identifier
        + " runs on \(host?.sanitized ?? "another machine") with the same home; end it there first; "
        + "if that machine is gone, try again in a minute"
    case .running(let identifier, let users):
      "\(identifier) is running (\(users.joined(separator: "; "))); nothing was changed; "
        + "end it first with 'insula kill \(identifier)'"
    case .runningOldVersion(let identifier, let users):
      "\(identifier) is running (\(users.joined(separator: "; "))); nothing was changed; with "
        + "'--when-closed' the update takes place when it ends, and 'insula kill \(identifier)' ends it"
    case .nothingWaits(let identifier):
      "no update of \(identifier) waits; 'insula info \(identifier)' shows which version is installed"
    case .noSpace(let needed, let free, let path):
      "there is not enough space in \(path): \(needed) bytes are required, \(free) are free"
    case .cancelled: "cancelled; nothing was changed"
    case .containersNotMade(let identifier, let error):
      "\(identifier) was changed as requested, but its containers could not be updated: \(error.description)"
    case .failed(let doing, let path, .EBUSY):
      "can't \(doing) \(path) while an app uses it or is just being started; see 'insula ps', and try again"
    case .failed(let doing, let path, let errno): "can't \(doing) \(path): \(errno.message)"
    }
  }
}
