// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

extension AccountNames {
  /// A machine with some accounts that make trouble: names of digits, with an at sign, without a way back,
  /// too long.
  static let sample = {
    let users: [(UInt32, String)] = [
      (0, "root"), (501, "alice"), (502, "bob"), (503, "504"), (504, "carol"),
      (505, "dora@directory.example"),
      (506, "OWNER@"), (508, String(repeating: "x", count: 257)), (509, "élodie"), (510, ""), (511, "alice"),
    ]
    let groups: [(UInt32, String)] = [
      (0, "wheel"), (12, "man"), (20, "staff"), (100, "users"), (501, "alice"),
    ]
    return AccountNames(
      userName: { id in users.first { $0.0 == id }?.1 },
      groupName: { id in groups.first { $0.0 == id }?.1 },
      uid: { name in users.first { $0.1 == name }?.0 },
      gid: { name in groups.first { $0.1 == name }?.0 },
      isOwnDomain: { $0 == "localdomain" })
  }()
}

/// All whom NFSv4 can name, troublesome ones among them.
let nameable: [Principal] =
  [0, 12, 100, 501, 502, 503, 504, 505, 506, 507, 508, 509, 510, 511, 4_000_000_000, .max].flatMap {
    [Principal.user($0), Principal.group($0)]
  } + [.group(10), .group(16), .group(.max - 1), .owner, .owningGroup, .everyone]

extension [UInt8] {
  init(hex: String) {
    let digits = hex.compactMap { $0.hexDigitValue }.map { UInt8($0) }
    self = stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }

  func acl(names: AccountNames = .sample) -> Result<AccessControlList, MalformedACL> {
    withUnsafeBytes { bytes in
      Result { () throws(MalformedACL) in try AccessControlList(nfs4: bytes, names: names) }
    }
  }
}

/// One entry in NFSv4's form, of whatever numbers.
func xdr(
  count: UInt32 = 1, type: UInt32 = 0, flags: UInt32 = 0, mask: UInt32 = 1, length: UInt32? = nil,
  who: [UInt8] = Array("OWNER@".utf8), filling: [UInt8]? = nil
) -> [UInt8] {
  let words = [count, type, flags, mask, length ?? UInt32(who.count)]
  let filling = filling ?? [UInt8](repeating: 0, count: (4 - who.count % 4) % 4)
  return words.flatMap { withUnsafeBytes(of: $0.bigEndian, Array.init) } + who + filling
}
