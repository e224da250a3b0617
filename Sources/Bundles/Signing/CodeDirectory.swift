// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The one document that is signed: it names a bundle and its team, and holds the digests of the bundle's
/// parts.
///
/// Its form is Apple's (magic 0xfade0c02); `CodeDirectory+Form.swift` says where what lies. All other files
/// of a bundle depend on it by CodeResources, and an app's version by Info.plist.
package struct CodeDirectory: Equatable, Sendable {
  /// The bundle's identifier.
  package var identifier: String
  /// The team that the signer must be of; nil in a directory that was made without one, which nobody trusts.
  package var team: String?
  /// Apple's flags and the runtime's version: kept, and without effect so far.
  package var flags: UInt32 = 0
  package var runtime: UInt32 = 0
  /// The version of the form; later ones have more fields.
  package var version = Self.usualVersion
  /// The digests of the parts beside the executable; a part that is not named must not be there.
  package var digests: [Part: [UInt8]] = [:]
  package var executableSize: UInt64 = 0
  /// The digests of the executable's pages, one after another.
  package var pageDigests: [UInt8] = []

  /// A part that has a digest of its own; the numbers are Apple's, which count them away from the
  /// executable's.
  package enum Part: Int, CaseIterable, Sendable {
    case infoPlist = 1
    case requirements = 2
    case resources = 3
    case entitlements = 5
  }

  static let usualVersion: UInt32 = 0x20400
  static let digestSize = 32
  /// The directory of the largest executable is a little smaller.
  package static let maximumSize = 57 << 20
  package static let maximumExecutableSize: UInt64 = 7 << 30

  package init(identifier: String, team: String?) {
    self.identifier = identifier
    self.team = team
  }

  /// The directory for the parts of a bundle.
  package init(_ parts: SealedParts, team: String) {
    self.init(identifier: parts.identifier, team: team)
    digests[.infoPlist] = parts.infoPlistDigest
    digests[.resources] = parts.codeResourcesDigest
    digests[.entitlements] = parts.entitlementsDigest
    executableSize = parts.executableSize
    pageDigests = parts.executablePageDigests
  }

  /// What in a bundle is not what this directory speaks of, in the order in which it counts.
  package func differences(from parts: SealedParts) -> [Finding] {
    var found: [Finding] = []
    if !identifier.utf8.elementsEqual(parts.identifier.utf8) {
      found.append(
        Finding(
          .otherBundle, detail: "it belongs to '\(identifier)', but the bundle is '\(parts.identifier)'"))
    }
    // We seal no requirements of the bundle's own; where another program did, nobody would look at them.
    if digests[.requirements] != nil {
      found.append(
        Finding(
          .malformedCodeDirectory, detail: "it has a digest of requirements, which insula does not support"))
    }
    // The version is in Info.plist, and nowhere here.
    var signed = parts
    signed.infoPlistDigest = digests[.infoPlist] ?? []
    signed.codeResourcesDigest = digests[.resources]
    signed.entitlementsDigest = digests[.entitlements]
    signed.executableSize = executableSize
    signed.executablePageDigests = pageDigests
    return found + parts.findings(comparedTo: signed)
  }

  /// The name of a signed bundle's state: the SHA-256 of its code directory, cut to 20 bytes.
  package static func cdhash(of bytes: [UInt8]) throws(CryptoFailure) -> [UInt8] {
    Array(try Digest.whole(bytes).prefix(20))
  }
}

/// Why bytes are no code directory.
package struct MalformedCodeDirectory: Error, Equatable, Sendable {
  package let reason: String

  init(_ reason: String) { self.reason = reason }
}
