// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension CodeBundle {
  /// Pins the signature, all of it, in 32 bytes: what has the same one is the same bundle, whoever has signed
  /// it and however long its certificates last.
  ///
  /// The code directory, its signature and the seal of the resources say what every other file must be.
  package func sealDigest() throws(Finding) -> [UInt8] {
    try Self.sealDigest { (name) throws(Finding) in try signaturePart(name) }
  }

  /// Like ``sealDigest()``, of parts that have been read already.
  static func sealDigest(_ part: (String) throws(Finding) -> [UInt8]?) throws(Finding) -> [UInt8] {
    var bytes: [UInt8] = []
    for name in SealLayout.parts {
      // Each is a digest and whether there is such a part at all, so no bytes can pass from one to the next.
      let part = try part(name)
      bytes.append(part == nil ? 0 : 1)
      bytes += try Digest.sha256(of: part ?? [])
    }
    return try Digest.sha256(of: bytes)
  }
}
