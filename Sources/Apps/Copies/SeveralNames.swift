// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import LinuxIO
internal import Policy

/// Files with several names, of which one at least has been found: the further ones become names of the copy.
///
/// Each costs a descriptor until all of its names are found, so there is a bound to them; a name beyond it
/// becomes a file of its own.
struct SeveralNames: ~Copyable {
  private struct Key: Hashable {
    let device: UInt64
    let inode: UInt64
  }

  private final class Known {
    let copy: OwnedFD
    let flags: FileFlags
    var missing: UInt64

    init(_ copy: consuming OwnedFD, _ flags: FileFlags, missing: UInt64) {
      self.copy = copy
      self.flags = flags
      self.missing = missing
    }
  }

  private static let most = 256
  private var known: [Key: Known] = [:]

  /// Gives the copy of a file one more name, if there is one; the last one lets it have its flags.
  mutating func link(
    _ status: FileStatus, into target: FD, as name: Name,
    _ setFlags: (FD, FileFlags) throws(Errno) -> Void
  ) throws(Errno) -> Bool {
    guard status.st_nlink > 1, let found = known[Self.key(status)] else { return false }
    do throws(Errno) {
      try found.copy.fd.link(into: target, as: name)
    } catch .ENOENT {
      // The copy was removed meanwhile, with all of its names.
      known[Self.key(status)] = nil
      return false
    }
    found.missing -= 1
    guard found.missing == 0 else { return true }
    known[Self.key(status)] = nil
    if !found.flags.isEmpty { try setFlags(found.copy.fd, found.flags) }
    return true
  }

  /// Notes the copy of a file that has other names; false if it has none, or can't be noted.
  mutating func note(_ status: FileStatus, _ copy: FD, _ flags: FileFlags) throws(Errno) -> Bool {
    guard status.st_nlink > 1, known.count < Self.most else { return false }
    known[Self.key(status)] = Known(try copy.duplicated(), flags, missing: UInt64(status.st_nlink) - 1)
    return true
  }

  /// The rest of their names is elsewhere.
  mutating func finish(_ setFlags: (FD, FileFlags) throws(Errno) -> Void) throws(Errno) {
    let rest = known.values
    known = [:]
    for file in rest where !file.flags.isEmpty { try setFlags(file.copy.fd, file.flags) }
  }

  private static func key(_ status: FileStatus) -> Key {
    Key(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
  }
}
