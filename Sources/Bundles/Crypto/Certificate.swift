// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CCrypto
internal import Policy

/// An X.509 certificate: its bytes, and what people and rules want to know of it.
package struct Certificate: Sendable {
  package let der: [UInt8]
  /// The common name, or all that the subject says where it has none.
  package let name: String
  /// The organizational unit, which is the team; nil where there is none or more than one.
  package let team: String?
  /// Seconds since 1970.
  package let validFrom: Int64
  package let validUntil: Int64
  /// The SHA-256 of its bytes, by which it is told from all others.
  package let fingerprint: [UInt8]
  /// Whether its basic constraints let it issue certificates.
  package let isAuthority: Bool
  /// Whether it says that it has issued itself.
  package let isSelfIssued: Bool
  /// Whether its key usages let it sign code, or in an authority's case issue certificates for that.
  package let isForCode: Bool
  /// Whether its key is one of ECDSA on the curve P-256.
  package let hasP256Key: Bool

  /// Reads DER.
  package init(der: some Collection<UInt8>) throws(CryptoFailure) {
    let object = try CertificateObject.reading(der)
    try self.init(object.pointer)
  }

  /// Copies what it must know from libcrypto's object, which stays its owner's.
  init(_ object: OpaquePointer) throws(CryptoFailure) {
    der = try encodedDER("write a certificate") { i2d_X509(object, $0) }
    // An extension that libcrypto can't read makes it an invalid one, as does a version that doesn't exist.
    guard X509_check_purpose(object, -1, 0) == 1,
      X509_get_extension_flags(object) & UInt32(EXFLAG_INVALID) == 0
    else { throw CryptoFailure("read a certificate", "it has an invalid extension") }
    guard let subject = X509_get_subject_name(object),
      let from = X509_get0_notBefore(object).flatMap(seconds),
      let until = X509_get0_notAfter(object).flatMap(seconds)
    else { throw CryptoFailure(doing: "read a certificate") }
    name = texts(NID_commonName, in: subject).first ?? wholeText(of: subject)
    let units = texts(NID_organizationalUnitName, in: subject)
    team = units.count == 1 ? units.first : nil
    validFrom = from
    validUntil = until
    fingerprint = try Digest.whole(der)
    isAuthority = X509_check_ca(object) == 1
    isSelfIssued = X509_get_extension_flags(object) & UInt32(EXFLAG_SI) != 0
    hasP256Key = Bundles.hasP256Key(object)
    // Both are all ones where the certificate has no such extension.
    let usage = X509_get_key_usage(object)
    let purposes = X509_get_extended_key_usage(object)
    if isAuthority {
      // An authority without purposes may issue for all of them.
      isForCode =
        usage & UInt32(KU_KEY_CERT_SIGN) != 0
        && purposes & UInt32(XKU_CODE_SIGN | XKU_ANYEKU) != 0
    } else {
      isForCode =
        usage & UInt32(KU_DIGITAL_SIGNATURE) != 0
        && purposes != .max && purposes & UInt32(XKU_CODE_SIGN) != 0
    }
  }

  /// Whether it is valid at a time, in seconds since 1970.
  package func isValid(at time: Int64) -> Bool { (validFrom...max(validFrom, validUntil)).contains(time) }

  /// The fingerprint as people compare it.
  package var fingerprintText: String { fingerprint.asHexadecimal }
}

extension Certificate: Hashable {
  package static func == (left: Certificate, right: Certificate) -> Bool { left.der == right.der }
  package func hash(into hasher: inout Hasher) { hasher.combine(fingerprint) }
}
