// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CCrypto

/// A private key and certificates, of which the first is the key's own and the others lead to a root.
struct KeyAndChain: ~Copyable {
  let key: PrivateKey
  let chain: [Certificate]

  init(_ key: consuming PrivateKey, _ chain: [Certificate]) {
    self.key = key
    self.chain = chain
  }

  /// Reads both from one PEM text.
  static func reading(pem: [UInt8]) throws(CryptoFailure) -> KeyAndChain {
    let chain = try Certificate.all(inPEM: pem)
    return KeyAndChain(try PrivateKey.reading(pem: pem), chain)
  }

  /// Opens what `Identity.exported(passphrase:)` or another program has made.
  static func reading(pkcs12 bytes: [UInt8], passphrase: String) throws(CryptoFailure) -> KeyAndChain {
    let doing = "read the export"
    guard let container = decodedDER(bytes, { d2i_PKCS12(nil, $0, $1) }) else {
      throw CryptoFailure(doing: doing)
    }
    defer { PKCS12_free(container) }
    var keyPointer: OpaquePointer?
    var leafPointer: OpaquePointer?
    var othersPointer: OpaquePointer?
    let isRead = PKCS12_parse(container, passphrase, &keyPointer, &leafPointer, &othersPointer) == 1
    // Each has an owner before anything can fail.
    let others = othersPointer.map { CertificateList(owning: $0) }
    let leaf = leafPointer.map { CertificateObject(owning: $0) }
    let key = keyPointer.map { PrivateKey(owning: $0) }
    guard isRead else { throw CryptoFailure(doing: doing) }
    guard let key else { throw CryptoFailure(doing, "it has no private key") }
    guard let leaf else { throw CryptoFailure(doing, "it has no certificate for the key") }
    var found = [try Certificate(leaf.pointer)]
    if let others { found += try others.certificates() }
    return KeyAndChain(key, try Certificate.chain(of: found))
  }
}
