// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension Digest {
  /// The SHA-256 of bytes that are all there.
  static func whole(_ bytes: [UInt8]) throws(CryptoFailure) -> [UInt8] {
    var digest = try Digest(.sha256)
    bytes.withUnsafeBytes { digest.update($0) }
    let result = digest.finish()
    guard result.count == CodeDirectory.digestSize else { throw CryptoFailure(doing: "digest") }
    return result
  }
}
