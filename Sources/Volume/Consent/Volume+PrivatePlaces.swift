// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
internal import Policy

extension Volume {
  /// Makes the directories that are missing on the way to a private place in a home: whether there is
  /// anything in it is not to be told by whether it is there.
  ///
  /// In its user's name, since the home is theirs to change meanwhile.
  package func makePrivatePlace(at path: [[UInt8]], uid: UInt32, gid: UInt32) throws(Errno) {
    // Users, and the home, are not made here.
    var directory = try tree.openDirectory(at: path.prefix(2))
    for name in path.dropFirst(2) {
      do throws(Errno) {
        directory = try directory.fd.openDirectory(name)
      } catch .ENOENT {
        let parent = directory.fd
        var other = try otherSpelling(of: name, in: parent)
        if other == nil {
          try changeNames(in: parent) { () throws(Errno) in
            // From here on nobody else makes one.
            other = try otherSpelling(of: name, in: parent)
            if other == nil { try makePrivateDirectory(name, in: parent, uid, gid) }
          }
        }
        directory = try directory.fd.openDirectory(other ?? name)
      }
    }
  }

  private func makePrivateDirectory(
    _ name: [UInt8], in parent: FD, _ uid: UInt32, _ gid: UInt32
  ) throws(Errno) {
    guard settings.isSystem else { return try parent.makeDirectory(name, mode: 0o700) }
    try ThreadIdentity.with(uid: uid, gid: gid, lasting: false) { () throws(Errno) in
      try parent.makeDirectory(name, mode: 0o700)
    }
  }

  /// How a directory spells a name that it does not have as it is, where case makes no difference.
  private func otherSpelling(of name: [UInt8], in directory: FD) throws(Errno) -> [UInt8]? {
    guard spellings != nil else { return nil }
    return try name.withUnsafeBufferPointer { (bytes) throws(Errno) in
      guard let key = NameKey(bytes) else { return nil }
      return try searchedSpelling(of: key, in: directory).found
    }
  }
}
