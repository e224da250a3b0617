// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CCrypto
internal import Glibc

/// A detached signature, as libcrypto has it.
///
/// Corresponds to `CMS_ContentInfo`.
struct SignedMessage: ~Copyable {
  private let pointer: OpaquePointer

  private init(owning pointer: OpaquePointer) { self.pointer = pointer }

  deinit { CMS_ContentInfo_free(pointer) }

  /// Signs `content`, now; the chain goes along, but for its root, which whoever verifies must have.
  static func signing(
    _ content: [UInt8], with key: borrowing PrivateKey, chain: [Certificate]
  ) throws(CryptoFailure) -> SignedMessage {
    let doing = "sign"
    guard let leaf = chain.first else { throw CryptoFailure(doing, "the identity has no certificate") }
    let stream = try MemoryStream.holding(content)
    let flags = UInt32(CMS_DETACHED | CMS_BINARY | CMS_NOSMIMECAP)
    let others = try CertificateList.holding(chain.dropFirst().filter { !$0.isSelfIssued })
    guard
      let pointer = CMS_sign(nil, nil, others.pointer, stream.pointer, flags | UInt32(CMS_PARTIAL))
    else { throw CryptoFailure(doing: doing) }
    let message = SignedMessage(owning: pointer)
    let signer = try CertificateObject.reading(leaf.der)
    guard CMS_add1_signer(message.pointer, signer.pointer, key.pointer, EVP_sha256(), flags) != nil,
      CMS_final(message.pointer, stream.pointer, nil, flags) == 1
    else { throw CryptoFailure(doing: doing) }
    return message
  }

  /// Reads DER.
  static func reading(_ bytes: [UInt8]) throws(CryptoFailure) -> SignedMessage {
    guard let pointer = decodedDER(bytes, { d2i_CMS_ContentInfo(nil, $0, $1) }) else {
      throw CryptoFailure(doing: "read the signature")
    }
    return SignedMessage(owning: pointer)
  }

  func encoded() throws(CryptoFailure) -> [UInt8] {
    let pointer = pointer
    return try encodedDER("write the signature") { i2d_CMS_ContentInfo(pointer, $0) }
  }

  /// Whether it is a signature of `content` by the certificate that it names; nothing is said of whether that
  /// is trusted.
  func isSignature(of content: [UInt8]) throws(CryptoFailure) -> Bool {
    let stream = try MemoryStream.holding(content)
    let flags = UInt32(CMS_DETACHED | CMS_BINARY | CMS_NO_SIGNER_CERT_VERIFY)
    let isGood = CMS_verify(pointer, nil, nil, stream.pointer, nil, flags) == 1
    ERR_clear_error()
    return isGood
  }

  /// The certificate that it is signed by; known once ``isSignature(of:)`` has said yes.
  func signer() throws(CryptoFailure) -> Certificate? {
    // The list is ours, and what is in it is not.
    guard let list = CMS_get0_signers(pointer) else { return nil }
    defer { ccrypto_certificates_free(list) }
    return try Certificate.all(in: list).first
  }

  /// When the signer says to have signed, in seconds since 1970.
  func signingTime() -> Int64? {
    guard let signers = CMS_get0_SignerInfos(pointer), let one = ccrypto_signers_at(signers, 0) else {
      return nil
    }
    let index = CMS_signed_get_attr_by_NID(one, NID_pkcs9_signingTime, -1)
    guard index >= 0, let attribute = CMS_signed_get_attr(one, index), X509_ATTRIBUTE_count(attribute) == 1,
      let value = X509_ATTRIBUTE_get0_type(attribute, 0)
    else { return nil }
    // Both kinds of time are one structure.
    guard value.pointee.type == V_ASN1_UTCTIME || value.pointee.type == V_ASN1_GENERALIZEDTIME,
      let time = value.pointee.value.asn1_string
    else { return nil }
    return seconds(UnsafePointer(time))
  }
}
