// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The `who` of an NFSv4 entry: a text, and a flag that makes it a group's.
struct NFS4Who: Equatable {
  let text: String
  let isGroup: Bool
}

extension NFS4Who {
  /// No account of a machine has a longer name (`LOGIN_NAME_MAX`).
  static let maximumLength = 256

  private static let owner = "OWNER@"
  private static let group = "GROUP@"
  private static let everyone = "EVERYONE@"

  /// Those of RFC 7530, section 6.2.1.5, that nobody here can be told to be.
  private static let others: Set<String> = [
    "INTERACTIVE@", "NETWORK@", "DIALUP@", "BATCH@", "ANONYMOUS@", "AUTHENTICATED@", "SERVICE@",
  ]

  /// How NFSv4 calls `principal`.
  ///
  /// A user or a group goes by name if the name leads back to it, and by number otherwise.
  init(_ principal: Principal, names: AccountNames, index: Int) throws(MalformedACL) {
    switch principal.meaning {
    case .owner: self.init(text: Self.owner, isGroup: false)
    // The flag is what servers send with it, and nfs4_setfacl sets it by itself.
    case .owningGroup: self.init(text: Self.group, isGroup: true)
    case .everyone: self.init(text: Self.everyone, isGroup: false)
    case .user(let uid): self.init(id: uid, name: names.userName(uid), isGroup: false, names: names)
    case .group(let gid): self.init(id: gid, name: names.groupName(gid), isGroup: true, names: names)
    case .nobody: throw .inexpressible("entry \(index) is for nobody")
    case .foreign: throw .inexpressible("entry \(index) is for an account of another machine")
    }
  }

  private init(id: UInt32, name: String?, isGroup: Bool, names: AccountNames) {
    if let name, !name.isEmpty, !name.hasSuffix("@"), name.utf8.count <= Self.maximumLength {
      let who = NFS4Who(text: name, isGroup: isGroup)
      if who.account(in: names) == id {
        self = who
        return
      }
    }
    self.init(text: String(id), isGroup: isGroup)
  }

  /// Whom it is about.
  ///
  /// With the special names the flag says nothing and must be ignored, says RFC 7530 (6.2.1.4).
  func principal(names: AccountNames, index: Int) throws(MalformedACL) -> Principal {
    switch text {
    case Self.owner: return .owner
    case Self.group: return .owningGroup
    case Self.everyone: return .everyone
    default: break
    }
    guard !Self.others.contains(text) else {
      throw .inexpressible("entry \(index) is for \(text), which exists only on a network")
    }
    guard let id = account(in: names) else {
      throw .malformed("entry \(index) is for an account that this machine does not have")
    }
    return isGroup ? .group(id) : .user(id)
  }

  /// The account of that name, if there is one.
  ///
  /// Digits are always a number, even if an account has them as its name, so that numbers round-trip. The
  /// machine is asked for the whole text first, since directory services have accounts with an at sign.
  /// `name@domain` is the local `name` only in the machine's own domain: otherwise a local user would get the
  /// rights of an unrelated user with the same name.
  private func account(in names: AccountNames) -> UInt32? {
    if text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
      guard let number = UInt32(text), String(number) == text else { return nil }
      return number
    }
    let find = isGroup ? names.gid : names.uid
    if let id = find(text) { return id }
    guard let at = text.lastIndex(of: "@"), at != text.startIndex else { return nil }
    guard names.isOwnDomain(String(text[text.index(after: at)...])) else { return nil }
    return find(String(text[..<at]))
  }
}
