// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// The daemon that holds a store's lock, as it introduced itself in the lock file.
package struct StoreHolder: Equatable, Sendable, CustomStringConvertible {
  package let pid: Int32
  /// Empty while the daemon is still mounting.
  package let mountPoint: String

  package init(pid: Int32, mountPoint: String) {
    self.pid = pid
    self.mountPoint = mountPoint
  }

  package var description: String {
    mountPoint.isEmpty ? "insula, pid \(pid), not mounted" : "insula, pid \(pid), mounted at \(mountPoint)"
  }

  var unmountCommand: String {
    mountPoint.isEmpty ? "or wait until pid \(pid) has ended" : "'insula unmount \(mountPoint)'"
  }

  /// The text of the lock file: the pid's line, then the mount point, which may hold any character.
  var text: String { "\(pid)\n\(mountPoint)" }

  init?(text: String) {
    let parts = text.parts(between: "\n", max: 1, keepingEmpty: true)
    guard let first = parts.first, let pid = Int32(first), pid > 0 else { return nil }
    self.init(pid: pid, mountPoint: parts.count > 1 ? String(parts[1]) : "")
  }
}

/// The lock of a store: `state/lock`, locked for as long as a daemon or a command works on the store.
final class StoreLock: Sendable {
  static let fileName = "lock"

  private let file: OwnedFD
  /// Whether nobody else has the lock, not even to read.
  let isExclusive: Bool

  /// Takes the lock, or says who has it.
  init(state: FD, path: String, readOnly: Bool) throws(StoreError) {
    file = try explaining("lock", path) { () throws(Errno) in
      try Self.fileName.withName { (name) throws(Errno) in
        readOnly
          ? try state.open(name, O_RDONLY)
          : try state.open(name, O_RDWR | O_CREAT, mode: 0o600)
      }
    }
    isExclusive = !readOnly
    let fd = file.fd
    let locked = try explaining("lock", path) { () throws(Errno) in
      try fd.tryLock(exclusive: !readOnly)
    }
    guard locked else { throw .inUse(path: path, holder: Self.holder(in: fd)) }
    announce(StoreHolder(pid: ProcessID.own, mountPoint: ""))
  }

  /// Goes on with the lock that another program has taken in this process, or in another that has ended.
  init(adopting lock: FD, state: FD, path: String) throws(StoreError) {
    let writable = try explaining("lock", path) { () throws(Errno) in
      let (held, named) = (try lock.status(), try state.status(of: Self.fileName))
      guard held.st_dev == named.st_dev, held.st_ino == named.st_ino else { throw .ESTALE }
      let writable = try check(fcntl(lock.raw, F_GETFL)) & O_ACCMODE == O_RDWR
      // It is ours already, unless somebody has let go of it.
      guard try lock.tryLock(exclusive: writable) else { throw .EBUSY }
      return writable
    }
    file = OwnedFD(owning: lock.raw)
    isExclusive = writable
  }

  /// What has the lock.
  var fd: FD { file.fd }

  // Closing the file would not do: a program that another of our threads starts at this moment has it too,
  // until it runs.
  deinit { unlock() }

  func unlock() { try? file.fd.unlock() }

  /// Tells those who find the store locked whom to turn to.
  func announce(_ holder: StoreHolder) {
    // Only the wording of a message depends on it, so a full disk is no reason to fail.
    let fd = file.fd
    guard isExclusive, (try? fd.truncate(to: 0)) != nil, (try? fd.seek(0, 0)) != nil else { return }
    try? fd.writeAll(holder.text.utf8)
  }

  /// Whether anybody has the lock, be it to read alone.
  static func isTaken(state: FD) -> Bool {
    let opened = try? state.open(fileName, O_RDONLY)
    guard let file = opened else { return false }
    return (try? file.fd.isLockedByAnother(atAll: true)) == true
  }

  /// Who has the lock, or nil if nobody has; looking doesn't disturb anyone.
  static func currentHolder(state: FD) -> StoreHolder? {
    let opened = try? state.open(fileName, O_RDONLY)
    guard let file = opened, (try? file.fd.isLockedByAnother()) == true else { return nil }
    return holder(in: file.fd) ?? StoreHolder(pid: 0, mountPoint: "")
  }

  private static func holder(in file: FD) -> StoreHolder? {
    guard (try? file.seek(0, 0)) != nil, let bytes = try? file.readToEnd(limit: 8192) else { return nil }
    return StoreHolder(text: String(decoding: bytes, as: UTF8.self))
  }
}
