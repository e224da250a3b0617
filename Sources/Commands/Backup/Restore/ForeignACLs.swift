// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store

/// ACLs in a backup that belong to files of another owner.
///
/// A program that backs up reads what a file contains by a descriptor, and its attributes by its path.
/// Meanwhile the owner of the directory may give that name to a file of their own, whose ACL lets them read.
/// So the view of a backup has each ACL say whose file it is (``AccessControlList/filesec(ownedBy:)``).
struct ForeignACLs {
  private(set) var removed = Sample()

  /// Takes them out of what root has brought back, which has its owners and is out of everybody's reach.
  ///
  /// Those of earlier versions don't say whose they are, and stay.
  init(removedFrom tree: FD) throws(Errno) {
    var removed = Sample()
    try DeepWalk.through(tree) { (entry) throws(Errno) in
      let child = try entry.directory.child(entry.name)
      let status = try child.fd.status()
      // A link has none, and attributes of users are not for other things.
      guard status.isDirectory || status.isRegular else { return false }
      let access = SecurityAccess.package
      if let owner = try access.aclOwner(of: child.fd), owner != .user(status.st_uid) {
        try access.setACL(nil, on: child.fd)
        removed.add(entry.path.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/"))
      }
      return status.isDirectory
    }
    self.removed = removed
  }

  /// Says which.
  func tell(_ console: Console) {
    guard removed.count > 0 else { return }
    console.note(
      "the ACLs of these were left out, since they belong to files of other users that had the same name "
        + "while the backup was made: \(removed.words.sanitized)")
  }
}
