// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CCrypto

/// A digest of bytes that come piece by piece, by libcrypto.
///
/// It is safe to send: the context is this digest's own, and a digest is one thread's at a time, since it
/// can't be copied.
package struct Digest: ~Copyable, @unchecked Sendable {
  /// The functions that seals use.
  package enum Algorithm: Sendable {
    /// Only to read seals of old bundles; nothing is trusted because of it.
    case sha1
    case sha256
    case sha384
    case sha512
  }

  private let context: OpaquePointer
  private let length: Int

  /// Throws only where libcrypto has no memory or refuses the function (a machine's policy may forbid SHA-1).
  package init(_ algorithm: Algorithm) throws(CryptoFailure) {
    let function =
      switch algorithm {
      case .sha1: EVP_sha1()
      case .sha256: EVP_sha256()
      case .sha384: EVP_sha384()
      case .sha512: EVP_sha512()
      }
    guard let context = EVP_MD_CTX_new() else { throw CryptoFailure(doing: "digest") }
    guard EVP_DigestInit_ex(context, function, nil) == 1 else {
      EVP_MD_CTX_free(context)
      throw CryptoFailure(doing: "digest")
    }
    self.context = context
    length = Int(EVP_MD_get_size(function))
  }

  deinit { EVP_MD_CTX_free(context) }

  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    _ = EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
  }

  /// The digest of all that came.
  package consuming func finish() -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { bytes, count in
      var written: UInt32 = 0
      count = EVP_DigestFinal_ex(context, bytes.baseAddress, &written) == 1 ? min(Int(written), length) : 0
    }
  }
}
