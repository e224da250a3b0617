// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import PropertyLists

/// What there is to say of a bundle after all of it was looked at.
package struct Verification: Sendable {
  /// What is wrong: first with the signature, then with the parts it speaks of, then with the files, by path.
  package var findings: [Finding] = []
  /// Who has signed, if that is someone who is trusted.
  package var signer: Signer?
  /// The code directory, if there is one that can be read.
  package var directory: CodeDirectory?
  /// The name of the signed state; empty without a code directory.
  package var cdhash: [UInt8] = []
  /// What the signed entitlements say; empty without any.
  package var entitlements = PropertyList.Dictionary()

  /// Whether the bundle is, file for file, what someone has signed who is trusted.
  package var isGood: Bool { findings.isEmpty && signer != nil }
}

extension CodeBundle {
  /// Of a signer who is not trusted, no larger seal is read, in bytes and in values.
  private static let strangersSealSize = 4 << 20
  private static let strangersSealValues = 200_000

  /// Looks at the signature, at all that it speaks of, and at the bundles in this one.
  ///
  /// `time` is in seconds since 1970; all certificates must be valid then. If the signer is not trusted, that
  /// is the only finding unless `includingStrangers` is set: a stranger's bundle can cost as much as its
  /// maker likes, so whoever acts for others leaves it unset.
  package func verify(_ trust: Trust, at time: Int64, includingStrangers: Bool) -> Verification {
    var result = Verification()
    do throws(Finding) {
      try verify(Judge(trust: trust, time: time, includesStrangers: includingStrangers), &result)
    } catch {
      result.findings.append(error)
    }
    return result
  }

  /// Looks only at who has signed and at what they say of Info.plist, the seal and the entitlements: enough
  /// to refuse a bundle without reading all of it, and too little to trust it.
  ///
  /// `time` is in seconds since 1970.
  package func verifySignature(_ trust: Trust, at time: Int64) -> Verification {
    var result = Verification()
    do throws(Finding) {
      let judge = Judge(trust: trust, time: time, includesStrangers: false)
      guard let directory = try verifySignature(judge, &result) else { return result }
      var parts = try SealedParts(ofAllButExecutable: self)
      // Not looked at, so not different.
      parts.executableSize = directory.executableSize
      parts.executablePageDigests = directory.pageDigests
      result.findings += directory.differences(from: parts).map { fromRoot(located($0)) }
      result.entitlements = try entitlements(directory)
    } catch {
      result.findings.append(error)
    }
    return result
  }

  private struct Judge {
    let trust: Trust
    let time: Int64
    let includesStrangers: Bool
  }

  private func verify(_ judge: Judge, _ result: inout Verification) throws(Finding) {
    guard let directory = try verifySignature(judge, &result) else { return }
    let parts = try SealedParts(comparing: self, executableLimit: directory.executableSize)
    result.findings += directory.differences(from: parts).map { fromRoot(located($0)) }
    result.entitlements = try entitlements(directory)
    // A seal that is not the one that was signed has nothing to say about files.
    guard let digest = parts.codeResourcesDigest, digest == directory.digests[.resources] else { return }
    let seal = try resourceSeal(digest, isStrangers: result.signer == nil)
    result.findings += findings(against: seal) { (bundle, seal) in bundle.findings(asNested: seal, judge) }
  }

  /// The seal that was signed.
  private func resourceSeal(_ digest: [UInt8], isStrangers: Bool) throws(Finding) -> ResourceSeal {
    // It has just had that digest.
    guard let bytes = try signaturePart(SealLayout.codeResources, signedAs: digest) else {
      throw fromRoot(located(Finding(.codeResourcesAltered)))
    }
    guard isStrangers else { return try ResourceSeal(reading: bytes) }
    guard bytes.count <= Self.strangersSealSize else {
      throw ResourceSeal.malformed("it is too long to be read while its signer is not trusted")
    }
    return try ResourceSeal(reading: bytes, atMost: Self.strangersSealValues)
  }

  /// The entitlements, if they are those that were signed; otherwise there is a finding already.
  private func entitlements(_ directory: CodeDirectory) throws(Finding) -> PropertyList.Dictionary {
    guard let digest = directory.digests[.entitlements],
      let bytes = try signaturePart(SealLayout.codeEntitlements, signedAs: digest)
    else { return PropertyList.Dictionary() }
    return try Self.entitlements(bytes)
  }

  /// Finds out who has signed the code directory, and reads it; nil if the rest is not to be looked at.
  private func verifySignature(
    _ judge: Judge, _ result: inout Verification
  ) throws(Finding) -> CodeDirectory? {
    let content = try signaturePart(SealLayout.codeDirectory)
    let signature = try signaturePart(SealLayout.codeSignature)
    guard content != nil || signature != nil else { throw Finding(.unsigned) }
    guard let content else { throw Finding(.malformedCodeDirectory, detail: "it is missing") }
    guard let signature else { throw Finding(.malformedSignature, detail: "it is missing") }

    let signed = Result { () throws(Finding) in
      try judge.trust.signer(of: content, by: signature, at: judge.time)
    }
    if case .failure(let finding) = signed, !judge.includesStrangers {
      result.findings.append(finding)
      return nil
    }
    let directory: CodeDirectory
    do throws(MalformedCodeDirectory) {
      directory = try CodeDirectory(content)
    } catch {
      throw Finding(.malformedCodeDirectory, detail: error.reason)
    }
    result.directory = directory
    result.cdhash = try Finding.cdhash(of: content)

    do throws(Finding) {
      let signer = try signed.get()
      guard let team = directory.team, team.utf8.elementsEqual(signer.team.utf8) else {
        let named = directory.team.map { "'\($0)'" } ?? "none"
        throw Finding(.teamMismatch, detail: "\(named), and '\(signer.name)' is in '\(signer.team)'")
      }
      result.signer = signer
    } catch {
      result.findings.append(error)
    }
    // What nobody has sealed would be taken for signed.
    if try digest(ofSignaturePart: SealLayout.codeRequirements) != nil {
      let path = "\(SealLayout.signatureDirectory)/\(SealLayout.codeRequirements)"
      result.findings.append(fromRoot(Finding(.guestInSignature, path)))
    }
    return directory
  }

  /// What is wrong with a bundle in another one, whose seal says what it must be.
  private func findings(asNested seal: NestedSeal, _ judge: Judge) -> [Finding] {
    let verification = verify(
      judge.trust, at: judge.time, includingStrangers: judge.includesStrangers)
    guard verification.isGood, let signer = verification.signer, let directory = verification.directory else {
      return verification.findings.map { $0.kind == .unsigned ? Finding(.nestedUnsigned, $0.path) : $0 }
    }
    guard let requirement = Requirement(seal.requirement) else {
      return [Finding(.nestedRejected, detail: "its requirement is not supported: \(seal.requirement)")]
    }
    guard requirement.isMet(by: directory, of: signer) else {
      return [Finding(.nestedRejected, detail: "it does not meet its requirement: \(seal.requirement)")]
    }
    guard verification.cdhash == seal.cdhash else {
      return [Finding(.nestedRejected, detail: "it is another version than the one that was sealed")]
    }
    return []
  }

  /// Says in which file a part lies.
  func located(_ finding: Finding) -> Finding {
    let path: String
    switch finding.kind {
    case .infoPlistAltered: path = "Info.plist"
    case .noCodeResources, .codeResourcesAltered:
      path = "\(SealLayout.signatureDirectory)/\(SealLayout.codeResources)"
    case .entitlementsAltered: path = "\(SealLayout.signatureDirectory)/\(SealLayout.codeEntitlements)"
    case .executableAltered: path = executablePath
    default: return finding
    }
    return Finding(finding.kind, path, detail: finding.detail)
  }

  static func entitlements(_ bytes: [UInt8]) throws(Finding) -> PropertyList.Dictionary {
    do throws(PropertyListError) {
      let list = try PropertyList(reading: bytes, atMost: BundleInfo.valueLimit)
      if let dictionary = list.dictionary { return dictionary }
    } catch {
      throw Finding(.badEntitlements, detail: error.description)
    }
    throw Finding(.badEntitlements, detail: "they are not a dictionary")
  }
}

extension Requirement {
  /// Whether code is what the requirement speaks of.
  func isMet(by directory: CodeDirectory, of signer: Signer) -> Bool {
    directory.identifier.utf8.elementsEqual(identifier.utf8) && signer.team.utf8.elementsEqual(team.utf8)
  }
}

extension Finding {
  /// `CodeDirectory.cdhash(of:)` where findings are what is thrown.
  static func cdhash(of bytes: [UInt8]) throws(Finding) -> [UInt8] {
    do throws(CryptoFailure) {
      return try CodeDirectory.cdhash(of: bytes)
    } catch {
      throw Finding(.unreadable, detail: error.description)
    }
  }
}
