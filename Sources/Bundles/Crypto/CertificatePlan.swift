// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CCrypto

/// What a new certificate is to say.
package struct CertificatePlan: Sendable {
  package var name: String
  /// The organizational units; a signer has one, which is the team.
  package var units: [String]
  /// Seconds since 1970.
  package var validFrom: Int64
  package var validUntil: Int64
  /// The values of extensions as in OpenSSL's configuration files.
  package var basicConstraints: String
  package var keyUsage: String
  package var extendedKeyUsage: String?

  /// The root of a chain: it may issue certificates for signing code, and nothing else.
  package static func authority(_ name: String, from: Int64, until: Int64) -> CertificatePlan {
    CertificatePlan(
      name: name, units: [], validFrom: from, validUntil: until,
      basicConstraints: "critical,CA:TRUE,pathlen:0",
      keyUsage: "critical,keyCertSign,cRLSign", extendedKeyUsage: "codeSigning")
  }

  /// The end of a chain: it signs code for a team.
  package static func signer(_ name: String, team: String, from: Int64, until: Int64) -> CertificatePlan {
    CertificatePlan(
      name: name, units: [team], validFrom: from, validUntil: until, basicConstraints: "critical,CA:FALSE",
      keyUsage: "critical,digitalSignature", extendedKeyUsage: "critical,codeSigning")
  }

  /// Makes the certificate for `key`; without an issuer it is its own, and `issuerKey` is the same key.
  package func issued(
    for key: borrowing PrivateKey, by issuer: Certificate?, with issuerKey: borrowing PrivateKey
  ) throws(CryptoFailure) -> Certificate {
    let doing = "create a certificate"
    guard let pointer = X509_new() else { throw CryptoFailure(doing: doing) }
    let made = CertificateObject(owning: pointer)
    let issuerObject: CertificateObject
    if let issuer {
      issuerObject = try CertificateObject.reading(issuer.der)
    } else {
      guard X509_up_ref(pointer) == 1 else { throw CryptoFailure(doing: doing) }
      issuerObject = CertificateObject(owning: pointer)
    }

    try setSerial(of: made.pointer)
    guard X509_set_version(made.pointer, Int(X509_VERSION_3)) == 1,
      let subject = X509_get_subject_name(made.pointer)
    else { throw CryptoFailure(doing: doing) }
    try add(name, as: NID_commonName, to: subject)
    for unit in units { try add(unit, as: NID_organizationalUnitName, to: subject) }
    guard X509_set_issuer_name(made.pointer, X509_get_subject_name(issuerObject.pointer)) == 1,
      let from = X509_getm_notBefore(made.pointer), let until = X509_getm_notAfter(made.pointer),
      ASN1_TIME_set(from, Int(validFrom)) != nil, ASN1_TIME_set(until, Int(validUntil)) != nil,
      X509_set_pubkey(made.pointer, key.pointer) == 1
    else { throw CryptoFailure(doing: doing) }

    var context = X509V3_CTX()
    X509V3_set_ctx(&context, issuerObject.pointer, made.pointer, nil, nil, 0)
    try addExtension(NID_basic_constraints, basicConstraints, to: made.pointer, &context)
    try addExtension(NID_key_usage, keyUsage, to: made.pointer, &context)
    if let extendedKeyUsage {
      try addExtension(NID_ext_key_usage, extendedKeyUsage, to: made.pointer, &context)
    }
    // The issuer's identifier is taken from the issuer's subject identifier, which must be there before.
    try addExtension(NID_subject_key_identifier, "hash", to: made.pointer, &context)
    try addExtension(NID_authority_key_identifier, "keyid:always", to: made.pointer, &context)

    guard X509_sign(made.pointer, issuerKey.pointer, EVP_sha256()) > 0 else {
      throw CryptoFailure(doing: doing)
    }
    return try Certificate(der: made.encoded())
  }

  /// A random number of 127 bits: no two certificates of an issuer may have the same.
  private func setSerial(of certificate: OpaquePointer) throws(CryptoFailure) {
    let doing = "choose a serial number"
    var bytes = [UInt8](repeating: 0, count: 16)
    guard RAND_bytes(&bytes, Int32(bytes.count)) == 1, let number = BN_new() else {
      throw CryptoFailure(doing: doing)
    }
    defer { BN_free(number) }
    // Positive, and never zero.
    bytes[0] = bytes[0] & 0x7f | 0x40
    guard BN_bin2bn(bytes, Int32(bytes.count), number) != nil,
      BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nil
    else { throw CryptoFailure(doing: doing) }
  }

  private func add(_ text: String, as field: Int32, to name: OpaquePointer) throws(CryptoFailure) {
    let bytes = Array(text.utf8)
    guard
      X509_NAME_add_entry_by_NID(name, field, MBSTRING_UTF8, bytes, Int32(clamping: bytes.count), -1, 0) == 1
    else { throw CryptoFailure(doing: "put '\(text)' into a certificate") }
  }

  private func addExtension(
    _ kind: Int32, _ value: String, to certificate: OpaquePointer, _ context: inout X509V3_CTX
  ) throws(CryptoFailure) {
    guard let made = X509V3_EXT_nconf_nid(nil, &context, kind, value) else {
      throw CryptoFailure(doing: "create the extension '\(value)'")
    }
    defer { X509_EXTENSION_free(made) }
    guard X509_add_ext(certificate, made, -1) == 1 else {
      throw CryptoFailure(doing: "create the extension '\(value)'")
    }
  }
}
