// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
internal import Policy

/// Why an app's data are not moved; nothing has changed then.
package enum DataFailure: Error, Equatable, Sendable {
  case notAPackage(path: String, reason: String)
  case badBackup(path: String, reason: String)
  case encrypted(path: String)
  case otherApp(path: String, identifier: String)
  case otherTeam(path: String, team: String, app: String, appsTeam: String)
  case hasData(path: String)
  case exists(path: String)
  case notEmpty(path: String)
  case readOnly(path: String)
  /// It was removed, or another one is in its place by now.
  case otherNow(identifier: String)
  case notCopied(from: String, TreeCopyFailure)
  case failed(doing: String, path: String, errno: Errno)
}

extension DataFailure: CustomStringConvertible {
  package var description: String {
    switch self {
    case .notAPackage(let path, let reason):
      "\(path) is not a package of an app's data: \(reason); 'insula export' and Xcode create such packages"
    case .badBackup(let path, let reason):
      "\(path) can't be imported as a backup in iTunes' form: \(reason); nothing was changed"
    case .encrypted(let path):
      "\(path) is an encrypted backup, which insula can't read; make one without encryption "
        + "(on a Mac, turn off 'Encrypt local backup'), or decrypt it with another program first"
    case .otherApp(let path, let identifier):
      "\(path) has the data of \(identifier), which is not installed here; to import it into another app, "
        + "use '--to ID'"
    case .otherTeam(let path, let team, let app, let appsTeam):
      "\(path) has data of apps of the team \(team.sanitized), but the app that is installed, "
        + "\(app.sanitized), is signed by another team, \(appsTeam.sanitized); nothing was changed; "
        + "if that app may have them all the same, use '--to \(app.sanitized)'"
    case .hasData(let path):
      "\(path) already has data; nothing was changed; '--replace' replaces all of it"
    case .exists(let path): "\(path) already exists; nothing was changed; give the package another name"
    case .notEmpty(let path):
      "\(path) already exists and is not an empty directory; nothing was changed; name a new or empty one"
    case .readOnly(let path):
      "nothing can be put into \(path): it is mounted read-only; mount the store read-write first"
    case .otherNow(let identifier):
      "\(identifier.sanitized) was removed, or another app took its place, while its data were copied; "
        + "nothing was made; run the command again"
    case .notCopied(let from, let failure): "\(from): \(failure); nothing was changed"
    case .failed(let doing, let path, let errno): "can't \(doing) \(path): \(errno.message)"
    }
  }
}

/// What came over.
package struct DataReport: Equatable, Sendable {
  package let count: TreeCopy.Count
  package let omissions: [DataCopy.Omission]

  package init(count: TreeCopy.Count, omissions: [DataCopy.Omission] = []) {
    (self.count, self.omissions) = (count, omissions)
  }
}

func explaining<Result: ~Copyable>(
  _ doing: String, _ path: String, _ body: () throws(Errno) -> Result
) throws(DataFailure) -> Result {
  do throws(Errno) { return try body() } catch { throw .failed(doing: doing, path: path, errno: error) }
}
