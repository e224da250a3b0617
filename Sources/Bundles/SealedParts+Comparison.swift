// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension SealedParts {
  /// What of these parts is not as it was signed.
  ///
  /// The identifier and the version are in Info.plist, so they differ only if it does, or if the signature is
  /// another bundle's.
  package func findings(comparedTo signed: SealedParts) -> [Finding] {
    var findings: [Finding] = []
    if infoPlistDigest != signed.infoPlistDigest || identifier != signed.identifier
      || version != signed.version
    {
      findings.append(Finding(.infoPlistAltered))
    }
    if codeResourcesDigest != signed.codeResourcesDigest {
      let isGone = codeResourcesDigest == nil
      findings.append(Finding(isGone ? .noCodeResources : .codeResourcesAltered))
    }
    if entitlementsDigest != signed.entitlementsDigest { findings.append(Finding(.entitlementsAltered)) }
    if executableSize != signed.executableSize || executablePageDigests != signed.executablePageDigests {
      findings.append(Finding(.executableAltered))
    }
    return findings
  }
}
