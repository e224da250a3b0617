// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Testing

@Suite struct DigestTests {
  /// The examples of FIPS 180-4.
  @Test(
    arguments: [
      (.sha1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
      (.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    ] as [(Digest.Algorithm, String)])
  func abcHasItsKnownDigest(algorithm: Digest.Algorithm, expected: String) throws {
    var digest = try Digest(algorithm)
    for byte in Array("abc".utf8) { withUnsafeBytes(of: byte) { digest.update($0) } }
    let hex = digest.finish().map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    #expect(hex == expected)
  }
}
