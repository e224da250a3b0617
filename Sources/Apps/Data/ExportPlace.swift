// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// Where an export is made before it gets its name, in a directory that may be somebody else's.
///
/// Whoever owns that can give any name in it to anything. So what is made is filled, and removed again, by
/// its own descriptor and never by its name; and what earlier exports have left, as far as a name tells that,
/// is left alone.
struct ExportPlace {
  let parent: FD
  let name: String

  /// Makes a directory, has it filled, and gives it its name; without flags it replaces an empty directory
  /// of that name.
  func put(
    flags: UInt32 = UInt32(CLX_RENAME_NOREPLACE), _ fill: (FD) throws(Errno) -> Void
  ) throws(Errno) {
    let temporary = Workshop(directory: parent, prefix: ".\(name).export-").newName()
    let made = try parent.makeAndOpenDirectory(temporary)
    do throws(Errno) {
      try fill(made.fd)
      let status = try parent.status(of: temporary)
      // Somebody else has taken the name for something of theirs.
      guard try made.fd.status().isSameObject(as: status) else { throw .ESTALE }
      try parent.rename(temporary, to: parent, name, flags: flags)
      try parent.synchronize(dataOnly: false)
    } catch {
      try? parent.remove(held: made.fd, named: temporary)
      throw error
    }
  }
}
