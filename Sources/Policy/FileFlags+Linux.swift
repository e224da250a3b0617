// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// The flags that Linux knows too, as `lsattr` shows and `chattr` sets them. Linux has no flags of the owner:
// each of its flags is root's.

extension FileFlags {
  /// Corresponds to `FS_IMMUTABLE_FL`, `FS_APPEND_FL` and `FS_NODUMP_FL`.
  private static let linuxImmutable: UInt32 = 0x10
  private static let linuxAppend: UInt32 = 0x20
  private static let linuxNoDump: UInt32 = 0x40

  /// The flags of Linux that mean something here.
  package static let knownToLinux: UInt32 = linuxImmutable | linuxAppend | linuxNoDump

  /// What `lsattr` shows: one flag for the owner's kind and root's.
  package var linuxFlags: UInt32 {
    var shown: UInt32 = 0
    if !isDisjoint(with: .immutable) { shown |= Self.linuxImmutable }
    if !isDisjoint(with: .appendOnly) { shown |= Self.linuxAppend }
    if contains(.noDump) { shown |= Self.linuxNoDump }
    return shown
  }

  /// What flags become where `chattr` asks for these.
  ///
  /// A flag that is asked for and shown already stays as it is; a new one is root's kind; one that is not
  /// asked for goes in both kinds. What Linux does not know stays.
  package init(linux asked: UInt32, changing flags: FileFlags = []) {
    let shown = flags.linuxFlags
    var result = flags
    func change(_ linux: UInt32, set: FileFlags, clear: FileFlags) {
      if asked & linux == 0 {
        result.subtract(clear)
      } else if shown & linux == 0 {
        result.formUnion(set)
      }
    }
    change(Self.linuxImmutable, set: .systemImmutable, clear: .immutable)
    change(Self.linuxAppend, set: .systemAppend, clear: .appendOnly)
    change(Self.linuxNoDump, set: .noDump, clear: .noDump)
    self = result
  }
}
