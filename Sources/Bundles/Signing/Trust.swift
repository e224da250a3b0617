// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Who has signed something, as found out by ``Trust``.
package struct Signer: Equatable, Sendable {
  /// From the signer's own certificate to the root that is trusted.
  package let chain: [Certificate]
  package let name: String
  package let team: String
  /// When the signer says to have signed, in seconds since 1970; nobody has checked that.
  package let signingTime: Int64?
}

/// The roots that are trusted, and the judge of signatures.
///
/// Every certificate of a chain must be valid at the time of verification. When a signature was made is known
/// from the signer alone, and whoever has the key of an expired certificate can say what he likes; nobody
/// stamps the time for us.
package struct Trust: Sendable {
  package let roots: [Certificate]

  package init(roots: [Certificate]) { self.roots = roots }

  /// No longer signature is looked at.
  package static let maximumSignatureSize = 64 << 10

  /// Finds out who has signed `content`, or why it is nobody who counts.
  ///
  /// `time` is in seconds since 1970.
  package func signer(of content: [UInt8], by signature: [UInt8], at time: Int64) throws(Finding) -> Signer {
    guard signature.count <= Self.maximumSignatureSize else {
      throw Finding(.malformedSignature, detail: "it is too long")
    }
    let shape = try SignedMessageShape(signature)
    let result: Result<Signer, Finding>
    do throws(CryptoFailure) {
      result = try judge(signature, shape, of: content, at: time)
    } catch {
      throw Finding(.malformedSignature, detail: error.description)
    }
    return try result.get()
  }

  private func judge(
    _ signature: [UInt8], _ shape: SignedMessageShape, of content: [UInt8], at time: Int64
  ) throws(CryptoFailure) -> Result<Signer, Finding> {
    let message = try SignedMessage.reading(signature)
    // libcrypto verifies what it would write, and reads more than DER: all of it must be what lies in the
    // file.
    guard try message.encoded() == signature else {
      return .failure(Finding(.malformedSignature, detail: "it is not DER"))
    }
    guard try message.isSignature(of: content), let leaf = try message.signer() else {
      return .failure(Finding(.signatureMismatch))
    }
    guard try leaf.issuerAndSerial().elementsEqual(shape.signer) else {
      return .failure(
        Finding(.malformedSignature, detail: "it spells the signer's name differently from the certificate"))
    }

    var certificates: [Certificate] = []
    for bytes in shape.certificates { certificates.append(try Certificate(der: bytes)) }
    let chain: [Certificate]
    switch try ChainVerification(roots: roots, time: time).chain(of: leaf, among: certificates) {
    case .failure(let finding): return .failure(finding)
    case .success(let found): chain = found
    }
    // Others would be bits that nobody has looked at.
    guard certificates.allSatisfy(chain.contains) else {
      return .failure(
        Finding(.malformedSignature, detail: "it has a certificate that is not in the signer's chain"))
    }
    guard let team = leaf.team else {
      return .failure(Finding(.teamMismatch, detail: "'\(leaf.name)' has no team, or several"))
    }
    // Texts of other characters can look the same, or be the same to some and not to others.
    guard Identity.isAllowed(team: team) else {
      return .failure(
        Finding(
          .teamMismatch,
          detail: "the team of '\(leaf.name)' is not 1 to 64 letters (A to Z), digits, hyphens and dots"))
    }
    return .success(
      Signer(chain: chain, name: leaf.name, team: team, signingTime: message.signingTime()))
  }
}
