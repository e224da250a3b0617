// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles

/// The time at which tests verify, in seconds since 1970.
let testTime: Int64 = 1_800_000_000
let day: Int64 = 86400

/// A root that issues whatever a test asks for.
struct TestAuthority: ~Copyable {
  let key: PrivateKey
  let certificate: Certificate

  init(_ change: (inout CertificatePlan) -> Void = { _ in }) throws {
    var plan = CertificatePlan.authority("Test Root", from: testTime - day, until: testTime + day)
    change(&plan)
    let key = try PrivateKey.generated()
    certificate = try plan.issued(for: key, by: nil, with: key)
    self.key = key
  }

  private init(_ key: consuming PrivateKey, _ certificate: Certificate) {
    self.key = key
    self.certificate = certificate
  }

  /// Someone of the team `TEAM1` who signs.
  func signer(_ change: (inout CertificatePlan) -> Void = { _ in }) throws -> KeyAndChain {
    var plan = CertificatePlan.signer("Someone", team: "TEAM1", from: testTime - day, until: testTime + day)
    change(&plan)
    let own = try PrivateKey.generated()
    let leaf = try plan.issued(for: own, by: certificate, with: key)
    return KeyAndChain(own, [leaf, certificate])
  }

  /// An authority between the root and those who sign.
  func intermediate(_ change: (inout CertificatePlan) -> Void = { _ in }) throws -> TestAuthority {
    var plan = CertificatePlan.authority("Test Office", from: testTime - day, until: testTime + day)
    change(&plan)
    let own = try PrivateKey.generated()
    let certificate = try plan.issued(for: own, by: certificate, with: key)
    return TestAuthority(own, certificate)
  }

  var trust: Trust { Trust(roots: [certificate]) }
}

extension KeyAndChain {
  /// A signature that goes along with `others` behind the signer's own certificate.
  func signature(of content: [UInt8], with others: [Certificate] = []) throws -> [UInt8] {
    let message = try SignedMessage.signing(content, with: key, chain: Array(chain.prefix(1)) + others)
    return try message.encoded()
  }
}

/// What a call throws, as a finding.
func finding(_ body: () throws -> Void) -> Finding? {
  do {
    try body()
    return nil
  } catch {
    return error as? Finding
  }
}
