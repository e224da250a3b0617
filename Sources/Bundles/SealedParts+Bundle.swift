// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

extension SealedParts {
  /// What a bundle's parts are now, for comparison with what was signed.
  package init(of bundle: CodeBundle) throws(Finding) {
    try self.init(
      of: bundle, codeResources: bundle.signaturePart(SealLayout.codeResources),
      entitlements: bundle.signaturePart(SealLayout.codeEntitlements))
  }

  /// What is to be signed, or what was already read: the same bytes that are looked into must be those that
  /// are sealed.
  ///
  /// An executable that is longer than `limit` is not read to its end, and what is known of it is that it is
  /// longer.
  package init(
    of bundle: CodeBundle, codeResources: [UInt8]?, entitlements: [UInt8]?,
    executableLimit limit: UInt64 = CodeDirectory.maximumExecutableSize
  ) throws(Finding) {
    let (size, pages) = try Self.pages(of: bundle, limit)
    try self.init(
      identifier: bundle.info.identifier, version: bundle.info.version,
      infoPlistDigest: Digest.sha256(of: bundle.infoPlist), codeResourcesDigest: Self.digest(codeResources),
      entitlementsDigest: Self.digest(entitlements), executableSize: size, executablePageDigests: pages)
  }

  /// What is compared with what was signed; nothing of it is kept.
  ///
  /// An executable that is longer than `limit` is not read to its end.
  init(comparing bundle: CodeBundle, executableLimit limit: UInt64) throws(Finding) {
    try self.init(ofAllButExecutable: bundle)
    (executableSize, executablePageDigests) = try Self.pages(of: bundle, limit)
  }

  /// All but the executable, which takes as long as it is.
  init(ofAllButExecutable bundle: CodeBundle) throws(Finding) {
    try self.init(
      identifier: bundle.info.identifier, version: bundle.info.version,
      infoPlistDigest: Digest.sha256(of: bundle.infoPlist),
      codeResourcesDigest: bundle.digest(ofSignaturePart: SealLayout.codeResources),
      entitlementsDigest: bundle.digest(ofSignaturePart: SealLayout.codeEntitlements), executableSize: 0,
      executablePageDigests: [])
  }

  private static func digest(_ bytes: [UInt8]?) throws(Finding) -> [UInt8]? {
    guard let bytes else { return nil }
    return try Digest.sha256(of: bytes)
  }

  private static func pages(
    of bundle: CodeBundle, _ limit: UInt64
  ) throws(Finding) -> (size: UInt64, digests: [UInt8]) {
    guard let file = try bundle.openExecutable() else { return (0, []) }
    bundle.progress?.addFile()
    do throws(Finding) {
      return try SealedFile(file.fd, bundle.executablePath).pages(atMost: limit) {
        bundle.progress?.add(bytes: $0)
      }
    } catch {
      throw bundle.fromRoot(error)
    }
  }
}

extension Digest {
  /// SHA-256 of bytes that are all there.
  static func sha256(of bytes: [UInt8]) throws(Finding) -> [UInt8] {
    do throws(CryptoFailure) {
      return try Digest.whole(bytes)
    } catch {
      throw Finding(.unreadable, detail: "SHA-256: \(error.reason)")
    }
  }
}
