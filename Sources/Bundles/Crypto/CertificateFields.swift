// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CCrypto
internal import Glibc

// Fields of a certificate, taken out of libcrypto's objects.

/// Seconds since 1970; nil where it is no time.
func seconds(_ time: UnsafePointer<ASN1_TIME>) -> Int64? {
  var parts = tm()
  guard ASN1_TIME_to_tm(time, &parts) == 1 else { return nil }
  return Int64(timegm(&parts))
}

/// What a name says of one thing, in its order.
func texts(_ field: Int32, in name: OpaquePointer) -> [String] {
  var found: [String] = []
  var index = X509_NAME_get_index_by_NID(name, field, -1)
  while index >= 0 {
    let value = X509_NAME_get_entry(name, index).flatMap { X509_NAME_ENTRY_get_data($0) }
    if let text = value.flatMap({ text(of: $0) }) { found.append(text) }
    index = X509_NAME_get_index_by_NID(name, field, index)
  }
  return found
}

/// All that a name says, in one line.
func wholeText(of name: OpaquePointer) -> String {
  guard let stream = try? MemoryStream(),
    X509_NAME_print_ex(stream.pointer, name, 0, ccrypto_name_in_one_line) >= 0
  else { return "" }
  return String(decoding: stream.contents, as: UTF8.self)
}

private func text(of string: UnsafePointer<ASN1_STRING>) -> String? {
  var bytes: UnsafeMutablePointer<UInt8>?
  let count = ASN1_STRING_to_UTF8(&bytes, string)
  guard count >= 0, let bytes else { return nil }
  defer { ccrypto_free(bytes) }
  return String(validating: UnsafeBufferPointer(start: bytes, count: Int(count)), as: UTF8.self)
}

/// Whether the key of a certificate is one of ECDSA on P-256.
func hasP256Key(_ certificate: OpaquePointer) -> Bool {
  guard let key = X509_get0_pubkey(certificate) else { return false }
  var name = [CChar](repeating: 0, count: 64)
  var count = 0
  guard EVP_PKEY_get_group_name(key, &name, name.count, &count) == 1, count < name.count else {
    ERR_clear_error()
    return false
  }
  return name[..<count].elementsEqual("prime256v1".utf8.map { CChar(bitPattern: $0) })
}
