// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
internal import Glibc
internal import TestSupport
internal import Testing

/// Signatures and those who make them, apart from bundles.
@Suite struct SignatureTests {
  private let content = Array("what is signed".utf8)

  @Test func signerIsFound() throws {
    let authority = try TestAuthority()
    let signer = try authority.signer()
    let found = try authority.trust.signer(of: content, by: signer.signature(of: content), at: testTime)
    #expect(found.name == "Someone")
    #expect(found.team == "TEAM1")
    #expect(found.chain == signer.chain)
    let clock = Int64(time(nil))
    #expect((clock - 60...clock).contains(found.signingTime ?? 0))
  }

  @Test func chainMayHaveAuthoritiesBetween() throws {
    let root = try TestAuthority { $0.basicConstraints = "critical,CA:TRUE" }
    let office = try root.intermediate()
    let signer = try office.signer()
    let signature = try signer.signature(of: content, with: [office.certificate])
    let found = try root.trust.signer(of: content, by: signature, at: testTime)
    #expect(found.chain == [signer.chain[0], office.certificate, root.certificate])
  }

  /// Each way in which a signature is nobody's who counts, with what is found and a word of it.
  enum Fault: CaseIterable {
    case otherContent, unknownRoot, expiredSigner, expiredRoot, futureSigner, noPurpose, otherPurpose
    case authorityAsSigner, noSigning, rootOfOtherPurpose, officeOfOtherPurpose, issuedBySigner, tooLongChain
    case noTeam, twoTeams, strangersCertificate
  }

  @Test(arguments: Fault.allCases)
  func faultsAreFound(fault: Fault) throws {
    let root = try TestAuthority {
      if fault == .expiredRoot { $0.validUntil = testTime - 1 }
      if fault == .rootOfOtherPurpose { $0.extendedKeyUsage = "serverAuth" }
      if fault == .officeOfOtherPurpose || fault == .issuedBySigner {
        $0.basicConstraints = "critical,CA:TRUE"
      }
    }
    let office = try root.intermediate {
      if fault == .officeOfOtherPurpose { $0.extendedKeyUsage = "timeStamping" }
      if fault == .issuedBySigner { $0.basicConstraints = "critical,CA:FALSE" }
    }
    let hasOffice = [.officeOfOtherPurpose, .issuedBySigner, .tooLongChain].contains(fault)
    let change = { (plan: inout CertificatePlan) in
      switch fault {
      case .expiredSigner: plan.validUntil = testTime - 1
      case .futureSigner: plan.validFrom = testTime + 1
      case .noPurpose: plan.extendedKeyUsage = nil
      case .otherPurpose: plan.extendedKeyUsage = "emailProtection,clientAuth"
      case .authorityAsSigner:
        plan.basicConstraints = "critical,CA:TRUE"
        plan.keyUsage = "critical,digitalSignature,keyCertSign"
      case .noSigning: plan.keyUsage = "critical,keyAgreement"
      case .noTeam: plan.units = []
      case .twoTeams: plan.units = ["TEAM1", "TEAM2"]
      default: break
      }
    }
    let signer = hasOffice ? try office.signer(change) : try root.signer(change)
    let stranger = try TestAuthority()
    var others: [Certificate] = []
    if hasOffice { others = [office.certificate] }
    if fault == .strangersCertificate { others = [try stranger.signer().chain[0]] }
    let signature = try signer.signature(of: content, with: others)
    let trust = fault == .unknownRoot ? stranger.trust : root.trust
    let signed = fault == .otherContent ? Array("something else".utf8) : content
    let found = finding { _ = try trust.signer(of: signed, by: signature, at: testTime) }
    let (kind, word): (Finding.Kind, String) =
      switch fault {
      case .otherContent: (.signatureMismatch, "")
      case .unknownRoot: (.untrusted, "'Someone': unable to get local issuer certificate")
      case .expiredSigner: (.expired, "'Someone' on 2027-01-15")
      case .expiredRoot: (.expired, "'Test Root' on 2027-01-15")
      case .futureSigner: (.notYetValid, "'Someone' from 2027-01-15")
      case .noPurpose, .otherPurpose, .noSigning: (.wrongPurpose, "'Someone' is not for code signing")
      case .authorityAsSigner: (.wrongPurpose, "'Someone' is a CA certificate")
      case .rootOfOtherPurpose: (.wrongPurpose, "'Test Root' is not for code signing")
      case .officeOfOtherPurpose: (.wrongPurpose, "'Test Office' is not for code signing")
      case .issuedBySigner: (.wrongPurpose, "'Test Office'")
      case .tooLongChain: (.wrongPurpose, "path length")
      case .noTeam: (.teamMismatch, "'Someone' has no team")
      case .twoTeams: (.teamMismatch, "'Someone' has no team, or several")
      case .strangersCertificate: (.malformedSignature, "not in the signer's chain")
      }
    #expect(found?.kind == kind, "\(fault): \(found?.message ?? "nothing")")
    #expect(found?.detail.contains(word) == true, "\(found?.message ?? "nothing")")
  }

  /// Under one root, texts of these could be taken for others, or be the same to some and not to others.
  @Test(arguments: [
    "\u{c9}", "E\u{301}", "TEAM 1", "TEAM\u{200b}1", "TEAM1\n", "\u{422}EAM1", "TEAM/1",
  ])
  func teamsThatNoIdentityHasAreRefused(team: String) throws {
    let root = try TestAuthority()
    let signer = try root.signer { $0.units = [team] }
    let signature = try signer.signature(of: content)
    let found = finding { _ = try root.trust.signer(of: content, by: signature, at: testTime) }
    #expect(found?.kind == .teamMismatch, "\(found?.message ?? "nothing")")
    #expect(found?.detail.contains("the team of 'Someone' is not 1 to 64 letters") == true)
  }

  /// Nothing else is wrong with the signer.
  @Test func keyOnAnotherCurveIsFound() throws {
    let root = try TestAuthority()
    let words = "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384"
    let made = try Program.run(words.split(separator: " ").map(String.init))
    try #require(made.status == 0, "\(made.errors)")
    let key = try PrivateKey.reading(pem: Array(made.output.utf8))
    let plan = CertificatePlan.signer("Someone", team: "TEAM1", from: testTime - day, until: testTime + day)
    let leaf = try plan.issued(for: key, by: root.certificate, with: root.key)
    let signature = try KeyAndChain(key, [leaf, root.certificate]).signature(of: content)
    let found = finding { _ = try root.trust.signer(of: content, by: signature, at: testTime) }
    #expect(found?.kind == .wrongPurpose, "\(found?.message ?? "nothing")")
    #expect(found?.detail.contains("ECDSA key on P-256") == true)
  }

  /// No bit of a signature or of what is signed can be turned without notice.
  ///
  /// A signature by someone below an authority in between, so that everything that can be in one is there.
  @Test func everyBitCounts() throws {
    let root = try TestAuthority { $0.basicConstraints = "critical,CA:TRUE" }
    let office = try root.intermediate()
    let trust = root.trust
    let signature = try office.signer().signature(of: content, with: [office.certificate])
    _ = try trust.signer(of: content, by: signature, at: testTime)
    var tolerated: [String] = []
    func flip(_ bytes: [UInt8], _ what: String, _ check: ([UInt8]) throws -> Void) {
      var bytes = bytes
      for bit in 0..<bytes.count * 8 {
        bytes[bit / 8] ^= 1 << UInt8(bit % 8)
        if (try? check(bytes)) != nil { tolerated.append("\(what): bit \(bit)") }
        bytes[bit / 8] ^= 1 << UInt8(bit % 8)
      }
    }
    flip(signature, "signature") { _ = try trust.signer(of: content, by: $0, at: testTime) }
    flip(content, "content") { _ = try trust.signer(of: $0, by: signature, at: testTime) }
    #expect(tolerated == [])
  }

  /// A copy would be bits that change nothing.
  @Test func certificateMayNotBeThereTwice() throws {
    let root = try TestAuthority()
    let signer = try root.signer()
    var signature = try signer.signature(of: content)
    let certificate = signer.chain[0].der
    let place = try #require(signature.firstRange(of: certificate))
    signature.insert(contentsOf: certificate, at: place.lowerBound)
    // The message, what wraps it, its fields, and the list of certificates: each has a length of two bytes.
    for start in [0, 15, 19, 54] {
      #expect(signature[start + 1] == 0x82)
      let length = Int(signature[start + 2]) << 8 + Int(signature[start + 3]) + certificate.count
      signature[start + 2] = UInt8(length >> 8)
      signature[start + 3] = UInt8(length & 0xff)
    }
    let found = finding { _ = try root.trust.signer(of: content, by: signature, at: testTime) }
    #expect(found?.detail == "it has too many certificates, or they are not in order")
  }

  @Test func cutOffAndLongerSignaturesAreRefused() throws {
    let root = try TestAuthority()
    let trust = root.trust
    let signature = try root.signer().signature(of: content)
    for count in 0..<signature.count {
      #expect(
        finding { _ = try trust.signer(of: content, by: Array(signature[..<count]), at: testTime) } != nil)
    }
    #expect(finding { _ = try trust.signer(of: content, by: signature + [0], at: testTime) } != nil)
    let long = signature + [UInt8](repeating: 0, count: Trust.maximumSignatureSize)
    #expect(finding { _ = try trust.signer(of: content, by: long, at: testTime) }?.detail == "it is too long")
  }

  /// DER by way of libcrypto, with and without the shape that it has to pass before.
  @Test(arguments: [1, 2, 3, 4] as [UInt64])
  func noInputStopsTheReaders(seed: UInt64) throws {
    let root = try TestAuthority()
    let trust = root.trust
    let chain = try root.signer()
    let samples = [try chain.signature(of: content), chain.chain[0].der, try chain.chain[0].pem()]
    var random = SeededRandom(seed: seed)
    let inputs = fuzzInputs(usually: 100_000)
    for _ in 0..<inputs / 4 {
      let kind = Int.random(in: 0..<3, using: &random)
      var bytes = samples[kind]
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        guard !bytes.isEmpty else { continue }
        let at = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<5, using: &random) {
        case 0: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 1: bytes[at] = [0, 1, 0x30, 0x7f, 0x80, 0x84, 0xff].randomElement(using: &random) ?? 0
        case 2: bytes.removeSubrange(at..<min(bytes.count, at + 6))
        case 3: bytes.insert(contentsOf: bytes[at..<min(bytes.count, at + 40)], at: at)
        default: bytes = Array(bytes.prefix(at))
        }
      }
      guard bytes != samples[kind] else { continue }
      switch kind {
      case 0:
        #expect(finding { _ = try trust.signer(of: content, by: bytes, at: testTime) } != nil)
        _ = try? SignedMessage.reading(bytes)
      case 1:
        if let certificate = try? Certificate(der: bytes) { #expect(certificate.der == bytes) }
      default:
        _ = try? Certificate.all(inPEM: bytes)
      }
    }
  }
}
