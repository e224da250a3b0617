// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Policy
internal import PropertyLists

/// What is told of a bundle that was verified: to people in a sentence, to programs as JSON.
struct VerificationReport: Encodable {
  struct Problem: Encodable {
    let kind: String
    /// Relative to the bundle; empty for the bundle itself.
    let path: String
    let detail: String
    let message: String
    let appleCode: Int32
    let exitCode: Int32
  }

  let bundle: String
  let good: Bool
  let identifier: String?
  let version: String?
  let team: String?
  let signer: String?
  let root: String?
  let rootFingerprint: String?
  /// When the signer says to have signed, in seconds since 1970.
  let signingTime: Int64?
  let cdhash: String?
  /// The names of the entitlements.
  let entitlements: [String]
  let findings: [Problem]
  /// What `findings` are made from.
  let all: [Bundles.Finding]

  private enum CodingKeys: String, CodingKey {
    case bundle, good, identifier, version, team, signer, root, rootFingerprint, signingTime, cdhash,
      entitlements
    case findings
  }

  init(_ path: String, _ opened: CodeBundle, _ verification: Verification) {
    bundle = path
    good = verification.isGood
    identifier = opened.info.identifier
    version = opened.info.version
    team = verification.signer?.team
    signer = verification.signer?.name
    root = verification.signer?.chain.last?.name
    rootFingerprint = verification.signer?.chain.last?.fingerprintText
    signingTime = verification.signer?.signingTime
    cdhash = verification.cdhash.isEmpty ? nil : verification.cdhash.asHexadecimal
    entitlements = verification.entitlements.entries.map(\.key)
    all = verification.findings
    findings = all.map(Problem.init)
  }

  /// Of something that is no bundle.
  init(_ path: String, _ finding: Bundles.Finding) {
    bundle = path
    good = false
    (identifier, version, team, signer, root, rootFingerprint) = (nil, nil, nil, nil, nil, nil)
    (signingTime, cdhash) = (nil, nil)
    entitlements = []
    all = [finding]
    findings = all.map(Problem.init)
  }

  /// How a verification ends that has come to this.
  var code: ExitCode {
    if let first = all.first { return .found(BundleProblem(first.kind)) }
    return good ? .ok : .failed
  }

  /// What is said of a good one.
  var sentence: String {
    let what = [identifier, version].compactMap(\.self).filter { !$0.isEmpty }.joined(separator: " ")
    return "\(bundle): \(what), signed by '\(signer ?? "")' of the team \(team ?? "")".sanitized
  }
}

extension VerificationReport.Problem {
  init(_ finding: Bundles.Finding) {
    self.init(
      kind: finding.kind.rawValue, path: finding.path, detail: finding.detail, message: finding.message,
      appleCode: finding.kind.appleCode, exitCode: BundleProblem(finding.kind).number)
  }
}
