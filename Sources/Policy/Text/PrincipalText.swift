// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension Principal {
  /// What a name in front of an entry is the name of.
  package enum NameKind: Sendable {
    case user
    case group
    /// Nothing was said: a user, or else a group.
    case either
  }

  /// The groups that are none of the machine's: a group of that name can be meant by its number only.
  private static let specialGroups: [(name: String, principal: Principal)] = [
    ("everyone", .everyone), ("owner", .owner), ("group", .owningGroup), ("nobody", .nobody),
  ]

  /// Finds whom a name means; nil if it means no one.
  ///
  /// A number is an id where there is no such name; a UUID is the principal itself, be it known here or not.
  package init?(name: String, _ kind: NameKind, names: AccountNames) {
    let special = Self.specialGroups.first { $0.name == name }?.principal
    let found: Principal? =
      switch kind {
      case .user: names.uid(name).map(Principal.user) ?? Self.id(name).map(Principal.user)
      case .group: special ?? (names.gid(name) ?? Self.id(name)).map(Principal.group)
      case .either:
        // `nobody` is a user of every machine's.
        (special == .nobody ? nil : special) ?? names.uid(name).map(Principal.user) ?? special
          ?? names.gid(name).map(Principal.group)
      }
    guard let principal = found ?? Principal(uuid: name) else { return nil }
    self = principal
  }

  /// As `ls -le` prints it: with the name, or where there is none or it is not wanted, the UUID.
  package func text(names: AccountNames, numeric: Bool = false) -> String {
    if numeric { return uuid }
    switch meaning {
    case .user(let uid): return names.userName(uid).map { "user:" + $0 } ?? uuid
    case .group(let gid):
      guard let name = names.groupName(gid), !Self.specialGroups.contains(where: { $0.name == name }) else {
        return uuid
      }
      return "group:" + name
    case .everyone, .owner, .owningGroup, .nobody:
      return Self.specialGroups.first { $0.principal == self }.map { "group:" + $0.name } ?? uuid
    case .foreign: return uuid
    }
  }

  /// The number of this principal in the usual writing, upper case.
  package var uuid: String {
    var text = ""
    for (index, byte) in bytes.enumerated() {
      if [4, 6, 8, 10].contains(index) { text += "-" }
      text += String(byte >> 4, radix: 16, uppercase: true) + String(byte & 15, radix: 16, uppercase: true)
    }
    return text
  }

  /// Reads the usual writing of such a number, in either case.
  package init?(uuid: String) {
    var digits: [UInt64] = []
    for (index, unit) in uuid.utf8.enumerated() {
      if [8, 13, 18, 23].contains(index) {
        guard unit == UInt8(ascii: "-") else { return nil }
      } else {
        // Not UInt64("+f", radix: 16), which takes a sign too.
        guard let digit = Character(UnicodeScalar(unit)).hexDigitValue else { return nil }
        digits.append(UInt64(digit))
      }
    }
    guard digits.count == 32 else { return nil }
    self.init(high: digits[..<16].reduce(0) { $0 << 4 | $1 }, low: digits[16...].reduce(0) { $0 << 4 | $1 })
  }

  private var bytes: [UInt8] {
    [high, low].flatMap { half in (0..<8).map { UInt8(truncatingIfNeeded: half >> (56 - 8 * $0)) } }
  }

  /// A decimal number that an account can have: all ones means "no one" to the kernel.
  private static func id(_ text: String) -> UInt32? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return UInt32(text).flatMap { $0 == .max ? nil : $0 }
  }
}
