// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CCrypto

/// SHA-256 of many short pieces, one after another in one context: making one for each takes longer than the
/// digest itself.
struct PageDigests: ~Copyable {
  private let function: OpaquePointer
  private let context: OpaquePointer
  private static let length = 32

  /// The digests of all pieces, one behind the other.
  private(set) var bytes: [UInt8] = []

  init() throws(CryptoFailure) {
    guard let function = EVP_MD_fetch(nil, "SHA256", nil) else { throw CryptoFailure(doing: "digest") }
    guard let context = EVP_MD_CTX_new() else {
      EVP_MD_free(function)
      throw CryptoFailure(doing: "digest")
    }
    self.function = function
    self.context = context
  }

  deinit {
    EVP_MD_CTX_free(context)
    EVP_MD_free(function)
  }

  mutating func append(_ piece: UnsafeRawBufferPointer) throws(CryptoFailure) {
    let start = bytes.count
    bytes.append(contentsOf: repeatElement(0, count: Self.length))
    let isDone = bytes.withUnsafeMutableBufferPointer { digests in
      EVP_DigestInit_ex(context, function, nil) == 1
        && EVP_DigestUpdate(context, piece.baseAddress, piece.count) == 1
        && EVP_DigestFinal_ex(context, digests.baseAddress.map { $0 + start }, nil) == 1
    }
    guard isDone else { throw CryptoFailure(doing: "digest") }
  }
}
