// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CCrypto

/// libcrypto's own object for a certificate.
///
/// Corresponds to `X509(3)`.
struct CertificateObject: ~Copyable {
  let pointer: OpaquePointer

  init(owning pointer: OpaquePointer) { self.pointer = pointer }

  /// Reads DER, of which the certificate must be all.
  static func reading(_ der: some Collection<UInt8>) throws(CryptoFailure) -> CertificateObject {
    guard let pointer = decodedDER(der, { d2i_X509(nil, $0, $1) }) else {
      throw CryptoFailure(doing: "read a certificate")
    }
    let object = CertificateObject(owning: pointer)
    // The reader takes what DER forbids, and leaves what follows; what it has understood is what it would
    // write.
    guard try object.encoded().elementsEqual(der) else {
      throw CryptoFailure("read a certificate", "it is not DER")
    }
    return object
  }

  deinit { X509_free(pointer) }

  func encoded() throws(CryptoFailure) -> [UInt8] {
    let pointer = pointer
    return try encodedDER("write a certificate") { i2d_X509(pointer, $0) }
  }
}

/// libcrypto's list of certificates, with what is in it.
struct CertificateList: ~Copyable {
  let pointer: OpaquePointer

  init(owning pointer: OpaquePointer) { self.pointer = pointer }

  static func holding(_ certificates: some Sequence<Certificate>) throws(CryptoFailure) -> CertificateList {
    guard let pointer = ccrypto_certificates_new() else { throw CryptoFailure(doing: "create a list") }
    let list = CertificateList(owning: pointer)
    for certificate in certificates {
      let object = try CertificateObject.reading(certificate.der)
      // The list frees what is in it.
      guard X509_up_ref(object.pointer) == 1 else { throw CryptoFailure(doing: "create a list") }
      guard ccrypto_certificates_push(pointer, object.pointer) > 0 else {
        X509_free(object.pointer)
        throw CryptoFailure(doing: "create a list")
      }
    }
    return list
  }

  deinit { ccrypto_certificates_free_all(pointer) }

  func certificates() throws(CryptoFailure) -> [Certificate] {
    try Certificate.all(in: pointer)
  }
}

extension Certificate {
  /// Copies what is in a list that someone else owns.
  static func all(in list: OpaquePointer) throws(CryptoFailure) -> [Certificate] {
    var found: [Certificate] = []
    for index in 0..<max(0, ccrypto_certificates_count(list)) {
      guard let object = ccrypto_certificates_at(list, index) else { continue }
      found.append(try Certificate(object))
    }
    return found
  }
}
