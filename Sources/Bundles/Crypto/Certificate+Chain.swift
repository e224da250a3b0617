// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CCrypto

extension Certificate {
  /// Puts certificates that come in any order behind the first one, each behind the one that it has issued.
  static func chain(of certificates: [Certificate]) throws(CryptoFailure) -> [Certificate] {
    guard var last = certificates.first else { return [] }
    var chain = [last]
    var rest = certificates.dropFirst()
    while !last.isSelfIssued {
      let child = try CertificateObject.reading(last.der)
      var issuer: Certificate?
      for candidate in rest {
        let object = try CertificateObject.reading(candidate.der)
        if X509_check_issued(object.pointer, child.pointer) == X509_V_OK { issuer = candidate }
      }
      guard let issuer else { break }
      rest.removeAll { $0 == issuer }
      chain.append(issuer)
      last = issuer
    }
    return chain
  }

  /// Whether it has signed itself, and its key and that signature have 112 bits of strength, as all of a
  /// chain must.
  func isSoundRoot() throws(CryptoFailure) -> Bool {
    let object = try CertificateObject.reading(der)
    guard let key = X509_get0_pubkey(object.pointer) else {
      throw CryptoFailure(doing: "read a certificate's key")
    }
    var strength: Int32 = 0
    let isSound =
      X509_check_issued(object.pointer, object.pointer) == X509_V_OK && X509_verify(object.pointer, key) == 1
      && X509_get_signature_info(object.pointer, nil, nil, &strength, nil) == 1 && strength >= 112
      && EVP_PKEY_get_security_bits(key) >= 112
    ERR_clear_error()
    return isSound
  }
}
