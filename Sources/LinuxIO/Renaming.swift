// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

// Clients of clusters and of other servers know no flags of renameat2 (EINVAL). There other calls keep the
// promise, for a caller who sees to it that nobody else changes the names meanwhile, as the store's lock and
// the locks of names do.

extension FD {
  /// Corresponds to `renameat2(2)`.
  ///
  /// Where the filesystem knows no flags, an exchange takes three steps, and a machine that stops between
  /// them leaves the first object under a name that begins with ``exchangePrefix``.
  ///
  /// `mayLink` is false where another name is another object, as for programs that know files by their paths.
  package func rename(
    _ name: Name, to newParent: FD, _ newName: Name, flags: UInt32, mayLink: Bool = true
  ) throws(Errno) {
    try requireOneName(name)
    try newParent.requireOneName(newName)
    do throws(Errno) {
      try check(clx_renameat2(raw, name.bytes, newParent.raw, newName.bytes, flags))
    } catch .EINVAL where flags != 0 {
      switch flags {
      case UInt32(CLX_RENAME_NOREPLACE): try renameKeeping(name, to: newParent, newName, mayLink: mayLink)
      case UInt32(CLX_RENAME_EXCHANGE) where !knowsRenameFlags:
        try exchange(name, with: newName, in: newParent)
      default: throw .EINVAL
      }
    }
  }

  package static let exchangePrefix = ".insula-exchange-"

  /// Renames if the new name is free.
  private func renameKeeping(
    _ name: Name, to newParent: FD, _ newName: Name, mayLink: Bool
  ) throws(Errno) {
    if mayLink, try !status(of: name).isDirectory {
      do throws(Errno) {
        // It fails if the name is there, whoever has made it.
        try check(linkat(raw, name.bytes, newParent.raw, newName.bytes, 0))
        return try remove(name, directory: false)
      } catch {
        // Not all have links, nor may every file have one more.
        guard [.EPERM, .EOPNOTSUPP, .ENOSYS].contains(error) else { throw error }
      }
    }
    guard !newParent.has(newName) else { throw .EEXIST }
    try check(clx_renameat2(raw, name.bytes, newParent.raw, newName.bytes, 0))
  }

  private func exchange(_ name: Name, with newName: Name, in newParent: FD) throws(Errno) {
    guard newParent.has(newName) else { throw .ENOENT }
    try freeName(Self.exchangePrefix).withName { (aside) throws(Errno) in
      try check(clx_renameat2(raw, name.bytes, raw, aside.bytes, 0))
      var isHalfDone = false
      do throws(Errno) {
        try check(clx_renameat2(newParent.raw, newName.bytes, raw, name.bytes, 0))
        isHalfDone = true
        // It fails for a directory that is to go into itself.
        try check(clx_renameat2(raw, aside.bytes, newParent.raw, newName.bytes, 0))
      } catch {
        if isHalfDone { _ = clx_renameat2(raw, name.bytes, newParent.raw, newName.bytes, 0) }
        _ = clx_renameat2(raw, aside.bytes, raw, name.bytes, 0)
        throw error
      }
    }
  }

  /// Whether the filesystem that this directory is on has such flags.
  package var knowsRenameFlags: Bool {
    let (old, new) = (freeName(".insula-try-"), freeName(".insula-try-"))
    guard (try? open(old, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)) != nil else { return true }
    defer { for name in [old, new] { try? remove(name, directory: false) } }
    let result = try? old.withName { (old) throws(Errno) in
      try new.withName { (new) throws(Errno) in
        try check(clx_renameat2(raw, old.bytes, raw, new.bytes, UInt32(CLX_RENAME_NOREPLACE)))
      }
    }
    return result != nil
  }

  /// What a stop has left has such a name too, and must stay; nobody can guess it.
  private func freeName(_ prefix: String) -> String {
    while true {
      let name = prefix + String(UInt64.random(in: 0...UInt64.max), radix: 16)
      if !has(name) { return name }
    }
  }
}
