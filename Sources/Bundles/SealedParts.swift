// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What a code directory speaks of: the parts of a bundle that make it what it is, each by its digest.
///
/// A signature is good only if every part that is computed from the bundle equals the one that was signed.
/// Everything else in the bundle depends on these: the other files are in CodeResources.
package struct SealedParts: Equatable, Sendable {
  /// How many bytes of the executable one of its digests covers; the last page may be shorter.
  package static let pageSize = 4096

  /// CFBundleIdentifier.
  package var identifier: String
  /// CFBundleVersion, or CFBundleShortVersionString where there is no other; empty if there is neither.
  package var version: String
  /// SHA-256 of Info.plist as it lies there.
  package var infoPlistDigest: [UInt8]
  /// SHA-256 of `_CodeSignature/CodeResources`; nil where there is none.
  package var codeResourcesDigest: [UInt8]?
  /// SHA-256 of `_CodeSignature/CodeEntitlements`; nil where there is none.
  package var entitlementsDigest: [UInt8]?
  /// The size of the main executable in bytes; 0 for a bundle that has none.
  package var executableSize: UInt64
  /// SHA-256 of each page of the main executable, one after another, 32 bytes each.
  package var executablePageDigests: [UInt8]

  package init(
    identifier: String, version: String, infoPlistDigest: [UInt8], codeResourcesDigest: [UInt8]?,
    entitlementsDigest: [UInt8]?, executableSize: UInt64, executablePageDigests: [UInt8]
  ) {
    self.identifier = identifier
    self.version = version
    self.infoPlistDigest = infoPlistDigest
    self.codeResourcesDigest = codeResourcesDigest
    self.entitlementsDigest = entitlementsDigest
    self.executableSize = executableSize
    self.executablePageDigests = executablePageDigests
  }
}

/// What a bundle's seal holds of another bundle in it: which signature it must have, and what must be true of
/// it.
package struct NestedSeal: Equatable, Sendable {
  /// The digest of its code directory, cut to 20 bytes.
  package var cdhash: [UInt8]
  /// The requirement that the nested code must meet, as text.
  package var requirement: String

  package init(cdhash: [UInt8], requirement: String) {
    self.cdhash = cdhash
    self.requirement = requirement
  }
}
