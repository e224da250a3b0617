// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CCrypto

extension Certificate {
  /// All certificates of a PEM text, in its order.
  ///
  /// Text around them is passed over, as everywhere; a certificate that can't be read is not.
  package static func all(inPEM text: some Collection<UInt8>) throws(CryptoFailure) -> [Certificate] {
    let stream = try MemoryStream.holding(text)
    var found: [Certificate] = []
    ERR_clear_error()
    while let pointer = PEM_read_bio_X509(stream.pointer, nil, noPassphrase, nil) {
      let object = CertificateObject(owning: pointer)
      found.append(try Certificate(object.pointer))
    }
    let error = ERR_peek_last_error()
    guard ERR_GET_REASON(error) == PEM_R_NO_START_LINE else {
      throw CryptoFailure(doing: "read a certificate")
    }
    ERR_clear_error()
    return found
  }

  /// The certificate as PEM.
  package func pem() throws(CryptoFailure) -> [UInt8] {
    let object = try CertificateObject.reading(der)
    let stream = try MemoryStream()
    guard PEM_write_bio_X509(stream.pointer, object.pointer) == 1 else {
      throw CryptoFailure(doing: "write a certificate")
    }
    return stream.contents
  }
}
