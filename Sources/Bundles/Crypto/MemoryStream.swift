// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CCrypto

/// Memory that libcrypto reads from or writes to.
///
/// Corresponds to `BIO_s_mem(3)`.
struct MemoryStream: ~Copyable {
  let pointer: OpaquePointer

  /// Makes an empty one, to write to.
  init() throws(CryptoFailure) {
    guard let pointer = BIO_new(BIO_s_mem()) else { throw CryptoFailure(doing: "allocate memory") }
    self.pointer = pointer
  }

  /// Makes one that holds a copy of `bytes`.
  static func holding(_ bytes: some Collection<UInt8>) throws(CryptoFailure) -> MemoryStream {
    let stream = try MemoryStream()
    let bytes = Array(bytes)
    var written = 0
    guard
      bytes.isEmpty
        || (BIO_write_ex(stream.pointer, bytes, bytes.count, &written) == 1 && written == bytes.count)
    else { throw CryptoFailure(doing: "allocate memory") }
    return stream
  }

  deinit { BIO_free_all(pointer) }

  /// A copy of what was written and not yet read.
  var contents: [UInt8] {
    var start: UnsafeMutablePointer<CChar>?
    let count = ccrypto_memory(pointer, &start)
    guard let start, count > 0 else { return [] }
    return Array(UnsafeRawBufferPointer(start: start, count: count))
  }
}

/// Lets libcrypto write DER: it is asked for the length first, then writes behind a pointer that it moves.
///
/// Corresponds to the functions `i2d_*(3)`.
func encodedDER(
  _ doing: String, _ write: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32
) throws(CryptoFailure) -> [UInt8] {
  let length = write(nil)
  guard length > 0 else { throw CryptoFailure(doing: doing) }
  var written: Int32 = 0
  let bytes = [UInt8](unsafeUninitializedCapacity: Int(length)) { buffer, count in
    var position = buffer.baseAddress
    written = write(&position)
    count = written == length ? Int(length) : 0
  }
  guard written == length else { throw CryptoFailure(doing: doing) }
  return bytes
}

/// Gives libcrypto bytes to read; nil where it makes nothing of them.
///
/// Corresponds to the functions `d2i_*(3)`.
func decodedDER(
  _ bytes: some Collection<UInt8>,
  _ read: (UnsafeMutablePointer<UnsafePointer<UInt8>?>, Int) -> OpaquePointer?
) -> OpaquePointer? {
  Array(bytes).withUnsafeBufferPointer { buffer in
    var position = buffer.baseAddress
    return read(&position, buffer.count)
  }
}

/// What libcrypto calls for a passphrase that nobody gave; without it, it would ask on the terminal.
let noPassphrase:
  @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32 = {
    _, _, _, _ in -1
  }
