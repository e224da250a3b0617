// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CCrypto

/// A private key for ECDSA on the curve P-256.
///
/// It stays in libcrypto's memory, which is overwritten when the key goes.
package struct PrivateKey: ~Copyable {
  let pointer: OpaquePointer

  init(owning pointer: OpaquePointer) { self.pointer = pointer }

  deinit { EVP_PKEY_free(pointer) }

  /// Makes a new one.
  package static func generated() throws(CryptoFailure) -> PrivateKey {
    guard let pointer = ccrypto_generate_p256() else { throw CryptoFailure(doing: "create a key") }
    return PrivateKey(owning: pointer)
  }

  /// Takes the first private key of a PEM text that is not encrypted.
  package static func reading(pem: some Collection<UInt8>) throws(CryptoFailure) -> PrivateKey {
    let stream = try MemoryStream.holding(pem)
    guard let pointer = PEM_read_bio_PrivateKey(stream.pointer, nil, noPassphrase, nil) else {
      throw CryptoFailure(doing: "read a private key")
    }
    return PrivateKey(owning: pointer)
  }

  /// The key as PKCS#8 in PEM, not encrypted.
  package func pem() throws(CryptoFailure) -> [UInt8] {
    let stream = try MemoryStream()
    guard PEM_write_bio_PKCS8PrivateKey(stream.pointer, pointer, nil, nil, 0, nil, nil) == 1 else {
      throw CryptoFailure(doing: "write a private key")
    }
    return stream.contents
  }

  /// Whether it is the key that a certificate speaks of.
  package func belongs(to certificate: Certificate) throws(CryptoFailure) -> Bool {
    let object = try CertificateObject.reading(certificate.der)
    let matches = X509_check_private_key(object.pointer, pointer) == 1
    if !matches { ERR_clear_error() }
    return matches
  }
}
