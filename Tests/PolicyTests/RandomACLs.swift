// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import TestSupport

extension SeededRandom {
  /// An ACL of up to `maximumCount` entries about `principals`, with nothing in it but what is named here.
  mutating func acl(
    of principals: [Principal], rights: Rights = .known, flags: AccessControlList.Flags = .known,
    maximumCount: Int = 8
  ) -> AccessControlList {
    let count = Int.random(in: 0...maximumCount, using: &self)
    let entries = (0..<count).map { _ in entry(of: principals, rights: rights) }
    return AccessControlList(
      entries,
      flags: AccessControlList.Flags(
        rawValue: UInt32.random(in: .min ... .max, using: &self) & flags.rawValue))
  }

  mutating func entry(of principals: [Principal], rights: Rights) -> AccessControlEntry {
    let kinds: [AccessControlEntry.Kind] = [.permit, .deny, .audit, .alarm]
    return AccessControlEntry(
      kinds.randomElement(using: &self) ?? .permit,
      principals.randomElement(using: &self) ?? .everyone,
      Rights(rawValue: UInt32.random(in: .min ... .max, using: &self) & rights.rawValue),
      AccessControlEntry.Inheritance(
        rawValue: UInt32.random(in: .min ... .max, using: &self)
          & AccessControlEntry.Inheritance.known.rawValue))
  }

  /// The same bytes with something done to them that an ACL's bytes may suffer.
  mutating func mutated(_ bytes: [UInt8]) -> [UInt8] {
    var result = bytes
    for _ in 0..<Int.random(in: 1...3, using: &self) {
      guard !result.isEmpty else { return result }
      let at = Int.random(in: 0..<result.count, using: &self)
      switch Int.random(in: 0..<6, using: &self) {
      case 0: result[at] ^= 1 << UInt8.random(in: 0..<8, using: &self)
      case 1: result[at] = UInt8.random(in: .min ... .max, using: &self)
      case 2: result.removeLast(result.count - at)
      case 3: result.insert(UInt8.random(in: .min ... .max, using: &self), at: at)
      case 4:
        // A word becomes one that a counter might stumble over.
        let words: [UInt32] = [.max, .max - 3, 1 << 31, 129, 128, 0x1000_0000, 0]
        let word = words.randomElement(using: &self) ?? 0
        let start = at / 4 * 4
        for (offset, byte) in withUnsafeBytes(of: word.bigEndian, Array.init).enumerated()
        where start + offset < result.count {
          result[start + offset] = byte
        }
      default: result.append(contentsOf: result[at...])
      }
    }
    return result
  }
}
