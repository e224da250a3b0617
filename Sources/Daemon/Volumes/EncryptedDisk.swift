// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO

/// The disk of an encrypted volume that has a size: an image in the directory of its user, which is root's.
///
/// The kernel mounts it, and trusts what is on it. So it is told by a mark that only root can make, with the
/// number of the user, and neither by its name nor by its place. Its user can read it, and throw it away.
struct EncryptedDisk {
  /// As large as that, and not so small that the filesystem itself takes most of it.
  static let sizes: ClosedRange<Int64> = 16 << 20...1 << 50
  private static let mark = "trusted.insula.disk"

  let image: SharedFD

  /// Nil if there is none; throws for what is none of ours.
  init?(in directory: SharedFD, of user: UInt32) throws(VolumeFailure) {
    do throws(Errno) {
      let opened = try directory.use { (directory) throws(Errno) in
        try directory.open(EncryptedFiles.disk, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
      }
      guard try Self.isTrusted(opened.fd, user) else { throw .EPERM }
      image = SharedFD(opened)
    } catch .ENOENT {
      return nil
    } catch {
      throw .configuration(
        "its \(EncryptedFiles.disk) is no disk that was made for this user here; of copies, only those that "
          + "root has made with all attributes ('cp -a') can be used")
    }
  }

  private static func isTrusted(_ image: FD, _ user: UInt32) throws(Errno) -> Bool {
    let status = try image.status()
    guard status.isRegular, status.st_uid == 0, status.st_mode & 0o022 == 0 else { return false }
    return try image.attribute(mark, limit: 16).elementsEqual("\(user)".utf8)
  }

  /// Makes one; `serve` reserves its room, formats it, and mounts it to see that it works.
  static func make(
    in directory: SharedFD, for user: UInt32,
    _ serve: (SharedFD) throws(VolumeFailure) -> ServedEngine
  ) throws(VolumeFailure) {
    let image = try create(in: directory)
    do throws(VolumeFailure) {
      _ = try serve(image)
      do throws(Errno) { try trust(image, user) } catch { throw .mount(error) }
    } catch {
      remove(from: directory)
      throw error
    }
  }

  private static func create(in directory: SharedFD) throws(VolumeFailure) -> SharedFD {
    do throws(Errno) {
      return try directory.use { (directory) throws(Errno) in
        let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW
        let image = try directory.open(EncryptedFiles.disk, flags, mode: 0o600)
        // Where changed blocks go elsewhere (btrfs), those of the image would be reserved for nothing.
        let noCopies: UInt32 = 0x0080_0000
        if let known = try? image.fd.inodeFlags() { try? image.fd.setInodeFlags(known | noCopies) }
        return SharedFD(image)
      }
    } catch {
      throw .configuration("its disk can't be made there: \(error.message)")
    }
  }

  private static func trust(_ image: SharedFD, _ user: UInt32) throws(Errno) {
    try image.use { (image) throws(Errno) in
      // Where that is not possible, only root can copy it.
      try? image.setAttribute("system.posix_acl_access", to: readable(by: user))
      try image.setAttribute(mark, to: Array("\(user)".utf8))
    }
  }

  /// A POSIX ACL, as the kernel takes it: a version, and for each entry a tag, rights, and a number.
  private static func readable(by user: UInt32) -> [UInt8] {
    let (owner, other, group, mask, others): (UInt16, UInt16, UInt16, UInt16, UInt16) = (1, 2, 4, 16, 32)
    let entries: [(tag: UInt16, rights: UInt16, number: UInt32)] = [
      (owner, 6, .max), (other, 4, user), (group, 0, .max), (mask, 4, .max), (others, 0, .max),
    ]
    return entries.reduce(into: [2, 0, 0, 0]) { bytes, entry in
      for half in [entry.tag, entry.rights] {
        bytes += [UInt8(truncatingIfNeeded: half), UInt8(truncatingIfNeeded: half >> 8)]
      }
      bytes += (0..<4).map { UInt8(truncatingIfNeeded: entry.number >> (8 * UInt32($0))) }
    }
  }

  static func remove(from directory: SharedFD) {
    _ = try? directory.use { (directory) throws(Errno) in
      try directory.remove(EncryptedFiles.disk, directory: false)
    }
  }

  /// Whether the kernel has one of these mounted.
  static func isInUse(in directory: FD) -> Bool {
    guard let file = try? directory.open(EncryptedFiles.disk, O_RDONLY | O_NOFOLLOW | O_NONBLOCK) else {
      return false
    }
    return flock(file.fd.raw, LOCK_SH | LOCK_NB) != 0 && Errno.last == .EAGAIN
  }
}
