// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

// Who may add names to a directory that has as many as can be known.
//
// Such a directory is read for each name that is missed there, which takes time. A limit for all would let
// one user close a directory for everybody, such as the one that all share. So it is a limit for those alone
// whose names they are.

extension Volume {
  /// Throws ENOSPC if a quarter or more of a directory's names are a user's, by some of them.
  func requireFewNames(of user: UInt32, in directory: FD) throws(Errno) {
    // All are one user's.
    guard ProcessID.user == 0 else { throw .ENOSPC }
    let names = try someNames(in: directory)
    let owners = names.compactMap { try? directory.status(of: $0).st_uid }
    let payer = SubordinateUsers.ofThisMachine.holder(of: user)
    let own = owners.count { SubordinateUsers.ofThisMachine.holder(of: $0) == payer }
    if own * 4 >= owners.count { throw .ENOSPC }
  }

  /// Names from the whole of a directory, as far from each other as that allows.
  private func someNames(in directory: FD) throws(Errno) -> [[UInt8]] {
    var names: [[UInt8]] = []
    var (count, distance) = (0, 1)
    try forEachName(in: directory) { name in
      count += 1
      guard count.isMultiple(of: distance) else { return true }
      names.append(Array(name.buffer))
      if names.count == Self.maxNames {
        names = stride(from: 1, to: names.count, by: 2).map { names[$0] }
        distance *= 2
      }
      return true
    }
    return names
  }

  private static var maxNames: Int { 128 }
}
