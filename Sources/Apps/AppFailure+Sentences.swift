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
  package var description: String { sentence.harmless }

  private var sentence: String {
    switch self {
    case .refused(let bundle, let findings):
      "\(bundle) is refused: \(findings.first?.message ?? "it is not signed"); "
        + (findings.first?.kind == .untrusted
          ? "a store has trusted roots of its own: 'insula trust add FILE --store STORE' adds one"
          : "'insula verify' says all that is wrong with it")
    case .notCopied(let bundle, let failure): "\(bundle) can't be copied: \(failure)"
    case .store(let error): error.description
    case .trust(let failure): failure.description
    case .notAllowed(let doing, let path):
      "you may not \(doing) \(path); "
        + "ask an administrator of this machine, or use your own Applications with '--user'"
    case .badName(let name, let reason): "'\(name)' can't be the name of an app's bundle: \(reason)"
    case .inTheWay(let path, let what):
      "\(what) is in the way at \(path), nothing was changed; move it away and try again"
    case .twin(let path, let other):
      "\(path) would differ from '\(other)' beside it only in case or spelling; rename one of them"
    case .alreadyInstalled(let identifier, let path):
      "\(identifier) is installed already, at \(path), nothing was changed; "
        + "'insula update' takes another version of it"
    case .otherApp(let path, let identifier):
      "\(path) is another app, \(identifier), nothing was changed; rename the bundle, or uninstall that app"
    case .notInstalled(let identifier, let domain):
      "no app \(identifier) is installed in \(domain); 'insula apps' lists all apps"
    case .otherIdentifier(let installed, let new):
      "this bundle is \(new), and the installed one is \(installed): "
        + "an update is another version of the same app"
    case .otherTeam(let identifier, let installed, let new):
      "\(identifier) is installed from the team \(installed), and this bundle is signed by the team \(new); "
        + "uninstall the other one first if that is what you want"
    case .sameVersion(let identifier, let version):
      "\(identifier) is installed in this version already: \(version); "
        + "'--allow-downgrade' installs it all the same"
    case .olderVersion(let identifier, let installed, let new):
      "\(identifier) is installed in a later version: \(installed), and this is \(new); "
        + "'--allow-downgrade' installs it all the same"
    case .badEntitlement(let key, let reason): "the entitlement \(key) can't be used: \(reason)"
    case .groupOfOtherTeam(let group, let app, let team):
      "the container \(group) is shared by \(app) of the team \(team); "
        + "only apps of one team share a container"
    case .busy(let identifier): StoreError.appBusy(identifier: identifier).description
    case .running(let identifier, let users):
      "\(identifier) runs (\(users.joined(separator: "; "))), nothing was changed; "
        + "end it first: 'insula kill \(identifier)'"
    case .noSpace(let needed, let free, let path):
      "there is no room in \(path): \(needed) bytes are needed, \(free) are free"
    case .cancelled: "stopped, nothing was changed"
    case .containersNotMade(let identifier, let error):
      "\(identifier) itself is done, but its containers are not: \(error.description)"
    case .failed(let doing, let path, let errno): "can't \(doing) \(path): \(errno.message)"
    }
  }
}
