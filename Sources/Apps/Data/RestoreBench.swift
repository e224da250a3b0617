// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// Where things are made that are being brought back to one directory, and where what had their names gets in
/// the same step.
///
/// Root has a directory of its own for that, which nobody else gets into. Of what gets there, only what is
/// the user's is removed whose the thing was in the backup. That user may have it open, and may have moved
/// there what others keep from them.
final class RestoreBench {
  /// Something of others that was in what was replaced.
  struct Kept {
    let path: [[UInt8]]
    /// What it is called in the directory of the restore.
    let name: String
  }

  private let target: FD
  private let access: SecurityAccess
  private let workshop: Workshop
  /// Whether root brings back what is several users'.
  private let isShared: Bool
  /// The directory of root's, with its name.
  private var own: (fd: SharedFD, name: String)?
  private var last = 0

  private static let rounds = 100

  init(in target: FD, _ access: SecurityAccess, isShared: Bool) {
    self.isShared = isShared
    self.target = target
    self.access = access
    workshop = Workshop(directory: target, prefix: PlaceRestorer.prefix)
  }

  /// Removes what a restore has left that was stopped; gives what of that is to be looked at.
  ///
  /// What others have given such a name is nothing to be waited for, and in what root's has left others may
  /// have something. Where others may rename what the user has, the name does not say that it was left.
  func clear() throws(Errno) -> [[UInt8]] {
    var found: [[UInt8]] = []
    for name in try workshop.left() where try target.status(of: name).st_uid == ProcessID.user {
      if !isShared, try access.isAlone(target, of: ProcessID.user) {
        try access.removeTree(name, in: target)
      } else if (try? target.remove(name, directory: true)) == nil {
        found.append(name)
      }
    }
    return found
  }

  /// Lends the directory to make something in, and a name there.
  func with<Result>(_ body: (FD, String) throws(Errno) -> Result) throws(Errno) -> Result {
    guard isShared else { return try body(target, workshop.newName()) }
    let directory = try directory()
    let name = newName()
    return try directory.use { (fd) throws(Errno) in try body(fd, name) }
  }

  private func newName() -> String {
    last += 1
    return "\(last)"
  }

  private func directory() throws(Errno) -> SharedFD {
    if let own { return own.fd }
    let name = workshop.newName()
    try target.makeDirectory(name, mode: 0o700)
    let made = try target.openDirectory(name)
    // Whose the directory above is can have put something else there.
    guard try made.fd.status().st_uid == 0, try made.fd.entries().isEmpty else { throw .ESTALE }
    // It may have inherited an ACL.
    access.clear(made.fd)
    try made.fd.changeMode(0o700)
    let fd = SharedFD(made)
    own = (fd, name)
    return fd
  }

  /// Removes something that was made and has got no name; `held` is that, if it is a directory.
  func discard(_ name: String, in directory: FD, held: SharedFD?) throws(Errno) {
    guard let held else { return try access.remove(held: nil, named: name, in: directory) }
    try held.use { (held) throws(Errno) in try access.remove(held: held, named: name, in: directory) }
  }

  /// Removes what had a name before, of a user's; `held` is that, if it is a directory.
  func remove(_ name: String, in directory: FD, held: SharedFD?, of owner: UInt32) -> [Kept] {
    guard isShared else {
      do throws(Errno) { try discard(name, in: directory, held: held) } catch {
        if error != .ENOENT { return [Kept(path: [], name: name)] }
      }
      return []
    }
    var kept: [Kept] = []
    var pending = [Kept(path: [], name: name)]
    var growth = TreeGrowth()
    while let item = pending.popLast() {
      do throws(Errno) {
        let object = try directory.child(item.name)
        let status = try object.fd.status()
        guard status.st_uid == owner else {
          kept.append(item)
          continue
        }
        access.clear(object.fd)
        guard status.isDirectory else {
          try directory.remove(item.name, directory: false)
          continue
        }
        try growth.count(object.fd)
        try take(item, in: directory, to: &pending)
      } catch {
        // Where nothing had the name before, nothing came here.
        if error != .ENOENT || directory.has(item.name) { kept.append(item) }
      }
    }
    return kept
  }

  /// Takes all out of a directory to beside it, where nobody else gets: only then it is looked at whose it
  /// is.
  private func take(_ item: Kept, in directory: FD, to pending: inout [Kept]) throws(Errno) {
    let opened = try directory.openDirectory(item.name)
    // Whoever has it open can go on putting things there.
    for _ in 0..<Self.rounds {
      do throws(Errno) { return try directory.remove(item.name, directory: true) } catch {
        guard error == .ENOTEMPTY || error == .EEXIST else { throw error }
      }
      for entry in try opened.fd.entries() {
        let taken = Kept(path: item.path + [entry.name], name: newName())
        do throws(Errno) {
          try take(entry.name, from: opened.fd, to: directory, as: taken.name)
        } catch .ENOENT {
          continue
        }
        pending.append(taken)
      }
    }
    throw .ENOTEMPTY
  }

  private func take(_ name: [UInt8], from parent: FD, to directory: FD, as taken: String) throws(Errno) {
    let flags = UInt32(CLX_RENAME_NOREPLACE)
    do throws(Errno) { try parent.rename(name, to: directory, taken, flags: flags) } catch {
      guard error == .EPERM || error == .EACCES else { throw error }
      let object = try parent.child(name)
      // Its owner may protect it from being removed, and root replaces it all the same.
      if try object.fd.status().st_uid == parent.status().st_uid { access.clear(object.fd) }
      try parent.rename(name, to: directory, taken, flags: flags)
    }
  }

  /// Removes the directory of root's; gives its name if something is kept there.
  func close() -> String? {
    guard let own else { return nil }
    self.own = nil
    do throws(Errno) {
      let opened = try own.fd.use { (fd) throws(Errno) in try fd.status() }
      guard try target.status(of: own.name).isSameObject(as: opened) else { return own.name }
      try target.remove(own.name, directory: true)
      return nil
    } catch {
      return own.name
    }
  }
}
