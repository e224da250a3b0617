// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO

/// Why an identity or a trusted root can't be made, read or removed.
package enum IdentityFailure: Error, Equatable, Sendable {
  case badName(String)
  case badTeam(String)
  case exists(String)
  case notThere(String)
  /// Something else has the place of a file: the name of the identity or root.
  case irregular(String)
  case damaged(String, String)
  case openToOthers(String)
  case hasPrivateKey
  case notOneCertificate
  case notARoot(String, String)
  case alreadyTrusted(String)
  case notTrusted(String)
  case ambiguous(String)
  case crypto(String)
  case failed(doing: String, errno: Errno)
}

extension IdentityFailure: CustomStringConvertible {
  package var description: String {
    switch self {
    case .badName(let name):
      "'\(name)' can't be the name of an identity: a name has 1 to 64 bytes, contains no '/' "
        + "and does not begin with a dot"
    case .badTeam(let team):
      "'\(team)' can't be the name of a team: a name has 1 to 64 letters, digits, hyphens and dots"
    case .exists(let name):
      "the identity '\(name)' already exists; nothing was changed; 'insula identity list' lists all"
    case .notThere(let name):
      "there is no identity '\(name)'; 'insula identity list' lists all, "
        + "and 'insula identity new' creates one"
    case .irregular(let name):
      "'\(name)' can't be used: what has its name is not a regular file; remove it"
    case .damaged(let name, let reason):
      "'\(name)' can't be used: \(reason)"
    case .openToOthers(let name):
      "other users can read the private key of '\(name)'; "
        + "restrict access (chmod 600), and consider whether somebody has copied it"
    case .hasPrivateKey:
      "the file contains a private key, which should be kept secret; nothing was changed; "
        + "use the root's certificate alone ('insula identity export')"
    case .notOneCertificate:
      "the file must contain exactly one certificate in PEM ('-----BEGIN CERTIFICATE-----')"
    case .notARoot(let name, let reason):
      "'\(name)' can't be trusted as a root: \(reason)"
    case .alreadyTrusted(let name):
      "'\(name)' is already trusted"
    case .notTrusted(let name):
      "no trusted root has the name or fingerprint '\(name)'; 'insula trust list' lists all"
    case .ambiguous(let name):
      "several trusted roots match '\(name)'; give the fingerprint ('insula trust list' shows it)"
    case .crypto(let reason):
      reason
    case .failed(let doing, let errno):
      "can't \(doing): \(errno.message)"
    }
  }
}

/// Gives failures of libcrypto their place among those of identities.
func translating<Result: ~Copyable>(
  _ body: () throws(CryptoFailure) -> Result
) throws(IdentityFailure) -> Result {
  do throws(CryptoFailure) { return try body() } catch { throw .crypto(error.description) }
}

/// Says what was being done where an errno came.
func explaining<Result: ~Copyable>(
  _ doing: String, _ body: () throws(Errno) -> Result
) throws(IdentityFailure) -> Result {
  do throws(Errno) { return try body() } catch { throw .failed(doing: doing, errno: error) }
}
