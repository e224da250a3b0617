// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

/// A person or service that this machine knows.
package struct Account: Equatable, Sendable {
  package let name: String
  package let uid: UInt32
  package let gid: UInt32
  package let home: String

  package init(name: String, uid: UInt32, gid: UInt32, home: String) {
    self.name = name
    self.uid = uid
    self.gid = gid
    self.home = home
  }

  /// Corresponds to `getpwnam_r(3)`; nil if there is no such account.
  package static func named(_ name: String) -> Account? {
    lookUp { entry, buffer, size, result in getpwnam_r(name, entry, buffer, size, result) }
  }

  /// Corresponds to `getpwuid_r(3)`; nil if nobody has that number.
  package static func numbered(_ uid: UInt32) -> Account? {
    lookUp { entry, buffer, size, result in getpwuid_r(uid, entry, buffer, size, result) }
  }

  /// The same for whoever takes something from nobody: throws where that can't be told, since a service may
  /// be away that knows accounts.
  package static func numbered(
    ifCertain uid: UInt32, services: @autoclosure () -> AccountServices = .configured
  ) throws(Errno) -> Account? {
    let (account, error) = ask { entry, buffer, size, result in
      getpwuid_r(uid, entry, buffer, size, result)
    }
    if let account { return account }
    // Those two say as well that there is none; some services give them for a server that is away.
    guard [0, ENOENT, ESRCH].contains(error) else { throw Errno(error) }
    guard services().areLocal else { throw .EAGAIN }
    return nil
  }

  /// The groups besides the first one.
  ///
  /// Corresponds to `getgrouplist(3)`.
  package var groups: [UInt32] {
    var count: Int32 = 64
    while count <= 1 << 16 {
      var found = [gid_t](repeating: 0, count: Int(count))
      var filled = count
      if getgrouplist(name, gid, &found, &filled) >= 0 {
        return found.prefix(Int(max(0, filled))).filter { $0 != gid }
      }
      count = max(filled, count * 2)
    }
    return []
  }

  private typealias Call = (
    UnsafeMutablePointer<passwd>, UnsafeMutablePointer<CChar>, Int,
    UnsafeMutablePointer<UnsafeMutablePointer<passwd>?>
  ) -> Int32

  private static func lookUp(_ call: Call) -> Account? { ask(call).account }

  private static func ask(_ call: Call) -> (account: Account?, error: Int32) {
    var error: Int32 = 0
    let account: Account? = withAccountBuffer { buffer, size in
      var entry = passwd()
      var found: UnsafeMutablePointer<passwd>?
      error = call(&entry, buffer, size, &found)
      guard error == 0, found != nil, let name = entry.pw_name else { return (nil, error) }
      let home = entry.pw_dir.map { String(cString: $0) } ?? "/"
      let uid = entry.pw_uid
      return (Account(name: String(cString: name), uid: uid, gid: entry.pw_gid, home: home), 0)
    }
    return (account, error)
  }
}

/// A group that this machine knows.
package struct AccountGroup: Equatable, Sendable {
  package let name: String
  package let gid: UInt32
  /// Whom the group's own entry names; those who have it as their first group are not among them.
  package let members: [String]

  package init(name: String, gid: UInt32, members: [String] = []) {
    self.name = name
    self.gid = gid
    self.members = members
  }

  /// Corresponds to `getgrnam_r(3)`; nil if there is no such group.
  package static func named(_ name: String) -> AccountGroup? {
    lookUp { entry, buffer, size, result in getgrnam_r(name, entry, buffer, size, result) }
  }

  /// Corresponds to `getgrgid_r(3)`; nil if no group has that number.
  package static func numbered(_ gid: UInt32) -> AccountGroup? {
    lookUp { entry, buffer, size, result in getgrgid_r(gid, entry, buffer, size, result) }
  }

  private typealias Call = (
    UnsafeMutablePointer<group>, UnsafeMutablePointer<CChar>, Int,
    UnsafeMutablePointer<UnsafeMutablePointer<group>?>
  ) -> Int32

  private static func lookUp(_ call: Call) -> AccountGroup? {
    withAccountBuffer { buffer, size in
      var entry = group()
      var found: UnsafeMutablePointer<group>?
      let error = call(&entry, buffer, size, &found)
      guard error == 0, found != nil, let name = entry.gr_name else { return (nil, error) }
      var members: [String] = []
      var next = entry.gr_mem
      while let member = next?.pointee {
        members.append(String(cString: member))
        next = next?.successor()
      }
      return (AccountGroup(name: String(cString: name), gid: entry.gr_gid, members: members), 0)
    }
  }
}

/// Lends a buffer to `body`, a larger one for as long as it answers ERANGE (a group of many members).
private func withAccountBuffer<Value>(
  _ body: (UnsafeMutablePointer<CChar>, Int) -> (value: Value?, error: Int32)
) -> Value? {
  var size = 4096
  while size <= 1 << 24 {
    let buffer = UnsafeMutablePointer<CChar>.allocate(capacity: size)
    defer { buffer.deallocate() }
    let result = body(buffer, size)
    guard result.error == ERANGE || result.error == EINTR else { return result.value }
    if result.error == ERANGE { size *= 4 }
  }
  return nil
}
