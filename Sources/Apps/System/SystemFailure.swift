// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Bundles
package import LinuxIO
package import Store

/// Why the system domain is not what was asked for; nothing has changed then.
package enum SystemFailure: Error, Equatable, Sendable {
  case notSigned(path: String, SystemSignature.Failure)
  case notSealable(path: String, SystemSealFailure)
  /// All in which it is not what its seal says; never empty.
  case differs(path: String, [SystemFinding])
  /// Something of what every system domain has is not there, or not as it must be.
  case skeleton(path: String, directory: String, what: String)
  case ownersInRootlessStore(path: String)
  case sameVersion(version: String)
  case noPrevious
  case notCopied(path: String, TreeCopyFailure)
  case store(StoreError)
  case failed(doing: String, path: String, errno: Errno)
}

extension SystemFailure: CustomStringConvertible {
  package var description: String {
    switch self {
    case .notSigned(let path, let failure): "\(path): \(failure)"
    case .notSealable(let path, let failure): "\(path): \(failure)"
    case .differs(let path, let findings):
      "\(path) does not match its signature: \(findings.first?.description ?? "")"
        + (findings.count > 1 ? ", and \(findings.count - 1) more" : "")
    case .skeleton(let path, let directory, let what): "\(path): '\(directory)' \(what)"
    case .ownersInRootlessStore(let path):
      "\(path) has files of several owners, but in a rootless store everything belongs to its user"
    case .sameVersion(let version):
      "this system domain is already installed" + (version.isEmpty ? "" : ", version \(version)")
        + "; to replace a damaged one, sign the same tree with another '--version'"
    case .noPrevious: "there is no previous version to return to"
    case .notCopied(let path, let failure): "\(path): \(failure); nothing was changed"
    case .store(let error): error.description
    case .failed(let doing, let path, let errno): "can't \(doing) \(path): \(errno.message)"
    }
  }
}

func stored<Result: ~Copyable>(_ body: () throws(StoreError) -> Result) throws(SystemFailure) -> Result {
  do throws(StoreError) { return try body() } catch { throw .store(error) }
}

func attempting<Result: ~Copyable>(
  _ doing: String, _ path: String, _ body: () throws(Errno) -> Result
) throws(SystemFailure) -> Result {
  do throws(Errno) { return try body() } catch { throw .failed(doing: doing, path: path, errno: error) }
}
