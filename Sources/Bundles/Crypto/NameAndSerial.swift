// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CCrypto

extension Certificate {
  /// How a signature names the certificate it is made by: the issuer's name and the serial number, byte for
  /// byte.
  ///
  /// libcrypto finds it also where case or spacing of the name differ.
  func issuerAndSerial() throws(CryptoFailure) -> [UInt8] {
    let object = try CertificateObject.reading(der)
    let pointer = object.pointer
    let issuer = try encodedDER("name a certificate") { i2d_X509_NAME(X509_get_issuer_name(pointer), $0) }
    let serial = try encodedDER("name a certificate") {
      i2d_ASN1_INTEGER(X509_get0_serialNumber(pointer), $0)
    }
    return issuer + serial
  }
}
