// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO
internal import Store

/// The mode of something that its owner has closed to themselves, in a backup that was brought back.
///
/// Root backs it up, and a home is restored by its owner, who could not read it. So it is opened for that,
/// and an attribute, which is not copied, says what its mode is to be.
package enum ClosedMode {
  package static let attribute = "user.org.insula.mode"

  /// Opens something to its owner, if it was closed.
  package static func open(_ object: FD, _ status: FileStatus) throws(Errno) {
    // A link has no mode, and attributes of users are not for other things.
    guard status.isDirectory || status.isRegular else { return }
    let needed: FileMode = status.isDirectory ? 0o500 : 0o400
    guard status.permissions & needed != needed else { return }
    // Attributes are set by who may write.
    try object.changeMode(status.permissions | (status.isDirectory ? 0o700 : 0o600))
    try AttributesCopy.set(attribute, to: Array(String(status.permissions, radix: 8).utf8), on: object)
  }

  /// Opens all of a tree, for its owner.
  package static func open(tree: FD) throws(Errno) {
    try DeepWalk.through(tree) { (entry) throws(Errno) in
      let child = try entry.directory.child(entry.name)
      let status = try child.fd.status()
      try open(child.fd, status)
      return status.isDirectory
    }
  }

  /// What the mode of a copy is to be.
  static func mode(of object: FD, _ status: FileStatus) throws(Errno) -> FileMode {
    let text: [UInt8]
    do throws(Errno) {
      text = try object.attribute(attribute, limit: 8)
    } catch {
      guard error == .ENODATA || error == .EOPNOTSUPP || error == .ERANGE else { throw error }
      return status.permissions
    }
    return FileMode(String(decoding: text, as: UTF8.self), radix: 8).map { $0 & 0o7777 } ?? status.permissions
  }
}
