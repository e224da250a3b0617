// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The one shape that a signature may have: CMS allows many, and leaves much of each unsigned.
///
/// What is signed in a CMS message are its attributes. Its frame (versions, names of algorithms, the number
/// and place of things) is not, and readers of CMS are forgiving. So that no bit of the file is without
/// meaning, each must be where this shape has it: it is constant, or part of a certificate, of the signer's
/// name, of the signed attributes or of the signature, which are checked in other ways. `openssl cms -sign`
/// writes this shape, and libcrypto for us.
struct SignedMessageShape {
  /// The certificates that come with it, each DER.
  let certificates: [ArraySlice<UInt8>]
  /// By which of them it is signed: issuer and serial number, one after the other, as DER.
  let signer: ArraySlice<UInt8>

  private static let signedData: [UInt8] = [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 2]
  private static let data: [UInt8] = [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 1]
  private static let sha256: [UInt8] = [6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1]
  private static let ecdsaWithSHA256: [UInt8] = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]
  private static let versionOne: [UInt8] = [2, 1, 1]

  static let maximumCertificates = 8

  /// Looks at the frame; the reason is what it stumbled over.
  init(_ bytes: [UInt8]) throws(Finding) {
    func malformed(_ reason: String) -> Finding { Finding(.malformedSignature, detail: reason) }

    var file = DERReader(bytes[...])
    guard let outer = file.next(DERReader.sequence), file.isAtEnd else { throw malformed("it is not DER") }
    var message = outer.reader
    guard message.skip(Self.signedData), let wrapper = message.next(DERReader.context0), message.isAtEnd
    else {
      throw malformed("it is not a signed message")
    }
    var wrapped = wrapper.reader
    guard let body = wrapped.next(DERReader.sequence), wrapped.isAtEnd else {
      throw malformed("it is not a signed message")
    }

    var fields = body.reader
    guard fields.skip(Self.versionOne) else { throw malformed("it has an unknown version") }
    guard let algorithms = fields.next(DERReader.set), Self.isAlgorithm(algorithms.contents, Self.sha256)
    else {
      throw malformed("it uses a digest other than SHA-256")
    }
    guard let content = fields.next(DERReader.sequence), content.contents.elementsEqual(Self.data) else {
      throw malformed("it is not a detached signature of data")
    }
    guard let list = fields.next(DERReader.context0) else { throw malformed("it has no certificates") }
    certificates = try Self.ordered(list)
    guard let signers = fields.next(DERReader.set), fields.isAtEnd else {
      throw malformed("it has more than certificates and signers")
    }

    var all = signers.reader
    guard let one = all.next(DERReader.sequence), all.isAtEnd else {
      throw malformed("it does not have exactly one signer")
    }
    var parts = one.reader
    guard parts.skip(Self.versionOne), let name = parts.next(DERReader.sequence) else {
      throw malformed("its signer is not identified by issuer and serial number")
    }
    signer = name.contents
    guard let digest = parts.next(DERReader.sequence), Self.isAlgorithm(digest.whole, Self.sha256) else {
      throw malformed("it uses a digest other than SHA-256")
    }
    guard parts.next(DERReader.context0) != nil else { throw malformed("it has no signed attributes") }
    guard let method = parts.next(DERReader.sequence), method.contents.elementsEqual(Self.ecdsaWithSHA256)
    else {
      throw malformed("it is not an ECDSA signature with SHA-256")
    }
    guard parts.next(DERReader.octets) != nil, parts.isAtEnd else {
      throw malformed("it has more than one signature")
    }
  }

  /// Whether it is this algorithm, alone; some programs write that it has no parameters.
  private static func isAlgorithm(_ bytes: ArraySlice<UInt8>, _ name: [UInt8]) -> Bool {
    var reader = DERReader(bytes)
    guard let algorithm = reader.next(DERReader.sequence), reader.isAtEnd else { return false }
    return algorithm.contents.elementsEqual(name) || algorithm.contents.elementsEqual(name + [5, 0])
  }

  /// The elements of a set, which DER has in the order of their bytes and none of them twice.
  private static func ordered(_ list: DERReader.Element) throws(Finding) -> [ArraySlice<UInt8>] {
    var reader = list.reader
    var found: [ArraySlice<UInt8>] = []
    while !reader.isAtEnd {
      guard let next = reader.next(DERReader.sequence), found.count < maximumCertificates,
        found.last.map({ $0.lexicographicallyPrecedes(next.whole) }) ?? true
      else {
        throw Finding(.malformedSignature, detail: "it has too many certificates, or they are not in order")
      }
      found.append(next.whole)
    }
    return found
  }
}
