// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import PropertyLists

extension CodeBundle {
  /// What the signature of an installed bundle says that its app may do; empty without entitlements.
  ///
  /// `seal` is ``sealDigest()`` as it was when the signature was last verified: it stands for all parts of
  /// it.
  package func entitlements(installed seal: [UInt8]) throws(Finding) -> PropertyList.Dictionary {
    var parts: [String: [UInt8]] = [:]
    let found = try Self.sealDigest { (name) throws(Finding) in
      let part = try signaturePart(name)
      parts[name] = part
      return part
    }
    guard found == seal else { throw Finding(.signatureMismatch) }
    guard let entitlements = parts[SealLayout.codeEntitlements] else { return PropertyList.Dictionary() }
    return try Self.entitlements(entitlements)
  }
}
