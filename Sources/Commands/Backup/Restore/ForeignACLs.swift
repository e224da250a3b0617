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

  init() {}

  /// Takes them out of what root has brought back, which has its owners and is out of everybody's reach.
  init(removedFrom tree: FD) throws(Errno) {
    var found = ForeignACLs()
    try DeepWalk.through(tree) { (entry) throws(Errno) in
      let child = try entry.directory.child(entry.name)
      let status = try child.fd.status()
      try found.remove(from: child.fd, status, at: entry.path)
      return status.isDirectory
    }
    self = found
  }

  /// The same with one thing.
  ///
  /// ACLs of earlier versions don't say whose they are, and stay.
  mutating func remove(from object: FD, _ status: FileStatus, at path: [[UInt8]]) throws(Errno) {
    // A link has none, and attributes of users are not for other things.
    guard status.isDirectory || status.isRegular else { return }
    let access = SecurityAccess.package
    guard let owner = try access.aclOwner(of: object), owner != .user(status.st_uid) else { return }
    try access.setACL(nil, on: object)
    removed.add(path.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/"))
  }

  /// Says which.
  func tell(_ console: Console) {
    guard removed.count > 0 else { return }
    console.note(
      "the ACLs of these were left out, since they belong to files of other users that had the same name "
        + "while the backup was made: \(removed.words.sanitized)")
  }
}
