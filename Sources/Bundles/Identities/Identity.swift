// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CCrypto

/// Someone who can sign: a private key, and the chain of certificates that says whose it is.
package struct Identity: ~Copyable {
  /// What it is called where it is kept.
  package let name: String
  /// From its own certificate to the root, which others must trust.
  package let chain: [Certificate]
  package let leaf: Certificate
  package let team: String
  let key: PrivateKey

  /// Puts an identity together, if its parts belong together.
  init(name: String, _ parts: consuming KeyAndChain) throws(IdentityFailure) {
    let chain = parts.chain
    guard Self.isAllowed(name: name) else { throw .badName(name) }
    guard let leaf = chain.first else { throw .damaged(name, "it has no certificate") }
    guard chain.count <= SignedMessageShape.maximumCertificates else {
      throw .damaged(name, "its chain of certificates is too long")
    }
    guard let team = leaf.team, Self.isAllowed(team: team) else {
      throw .damaged(name, "its certificate has no team (organizational unit)")
    }
    guard !leaf.isAuthority, leaf.isForCode, leaf.hasP256Key else {
      throw .damaged(name, "its first certificate is not for code signing with ECDSA on P-256")
    }
    do throws(CryptoFailure) {
      guard try parts.key.belongs(to: leaf) else {
        throw CryptoFailure("use the key", "it does not match the first certificate")
      }
    } catch {
      throw .damaged(name, error.description)
    }
    self.name = name
    self.chain = chain
    self.leaf = leaf
    self.team = team
    key = parts.key
  }

  /// Takes an identity from a PEM text that has the key, its certificate and then the chain; no part of it
  /// encrypted.
  package static func reading(pem: [UInt8], name: String) throws(IdentityFailure) -> Identity {
    let found: KeyAndChain
    do throws(CryptoFailure) {
      found = try KeyAndChain.reading(pem: pem)
    } catch {
      throw .damaged(name, error.description)
    }
    return try Identity(name: name, found)
  }

  /// Signs bytes, now; what comes out is what lies in `_CodeSignature/CodeSignature`.
  package borrowing func signature(of content: [UInt8]) throws(CryptoFailure) -> [UInt8] {
    let message = try SignedMessage.signing(content, with: key, chain: chain)
    return try message.encoded()
  }

  /// The certificates as PEM, the identity's own first and the root last.
  package borrowing func certificatesPEM() throws(CryptoFailure) -> [UInt8] {
    var text: [UInt8] = []
    for certificate in chain { text += try certificate.pem() }
    return text
  }

  /// Key and certificates as PEM, unprotected: what is kept in a file of its owner's.
  borrowing func pem() throws(CryptoFailure) -> [UInt8] { try key.pem() + certificatesPEM() }

  /// Whether it can be the name of an identity, which is a file's name and a common name at once.
  package static func isAllowed(name: String) -> Bool {
    (1...64).contains(name.utf8.count) && name.utf8.first != UInt8(ascii: ".")
      && name.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7f && $0 != "/" }
  }

  /// Whether it can be the name of a team: letters, digits, hyphens and dots, as in Apple's.
  package static func isAllowed(team: String) -> Bool {
    (1...64).contains(team.utf8.count)
      && team.utf8.allSatisfy {
        (0x30...0x39).contains($0) || (0x41...0x5a).contains($0) || (0x61...0x7a).contains($0) || $0 == 0x2d
          || $0 == 0x2e
      }
  }
}

// Identities on their way to another machine.
extension Identity {
  /// How often a passphrase is hashed into a key, so that guessing costs.
  private static let iterations: Int32 = 600_000

  /// Key and certificates under a passphrase.
  ///
  /// Corresponds to PKCS#12; `openssl pkcs12` reads it.
  package borrowing func exported(passphrase: String) throws(CryptoFailure) -> [UInt8] {
    let doing = "export the identity"
    guard !passphrase.isEmpty else { throw CryptoFailure(doing, "the passphrase is empty") }
    guard !passphrase.utf8.contains(0) else {
      throw CryptoFailure(doing, "the passphrase contains a zero byte")
    }
    let own = try CertificateObject.reading(leaf.der)
    let others = try CertificateList.holding(chain.dropFirst())
    guard
      let container = PKCS12_create(
        passphrase, name, key.pointer, own.pointer, others.pointer, 0, 0, Self.iterations, Self.iterations, 0)
    else { throw CryptoFailure(doing: doing) }
    defer { PKCS12_free(container) }
    return try encodedDER(doing) { i2d_PKCS12(container, $0) }
  }

  /// Takes an identity out of PKCS#12.
  package static func imported(
    _ bytes: [UInt8], passphrase: String, name: String
  ) throws(IdentityFailure) -> Identity {
    let found: KeyAndChain
    do throws(CryptoFailure) {
      found = try KeyAndChain.reading(pkcs12: bytes, passphrase: passphrase)
    } catch {
      throw .damaged(name, error.description)
    }
    return try Identity(name: name, found)
  }
}
