// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization

/// A directory in which only the daemon works, where objects are made that must not be seen before they are
/// whole.
final class Staging: Sendable {
  let directory: FD
  private let last = Atomic<UInt64>(0)

  /// `directory` outlives this.
  init(_ directory: FD) { self.directory = directory }

  /// A name that nothing has.
  func newName() -> String { "\(last.wrappingAdd(1, ordering: .relaxed).newValue)" }
}

/// An object that is about to be made.
struct NewObject {
  /// The ACL that it inherits, if any.
  let acl: AccessControlList?
  let isDirectory: Bool
  let mode: FileMode
  let gid: UInt32
}

extension View {
  /// What something that is made in a directory gets of its ACL; nil if it gets none.
  func inheritedACL(in directory: Object, to kind: Object.Kind) -> AccessControlList? {
    guard case .acl(let acl) = directory.acl, kind != .symlink else { return nil }
    // See Metadata: there is no place to keep it.
    if kind == .special, !volume.settings.isSystem { return nil }
    return acl.inherited(byDirectory: kind == .directory)
  }

  /// Creates an object that has its ACL before anyone can find it, even if the machine stops at any moment.
  ///
  /// It is created in the staging directory and renamed into place. Where that is impossible (a part of the
  /// tree on another filesystem, or a filesystem without RENAME_NOREPLACE), it is created in place with mode
  /// 0 (see `unfinishedMode`) until it has its ACL.
  func makeWithACL<Made: ~Copyable>(
    _ acl: AccessControlList, _ new: NewObject, as name: Name, in directory: FD, by caller: Caller,
    isOnVolume: Bool, _ make: (FD, Name, FileMode) throws(Errno) -> Made
  ) throws(Errno) -> Made {
    if !isOnVolume, let staging = volume.staging {
      do throws(Errno) {
        return try staging.newName().withName { (temporary) throws(Errno) in
          try makeStaged(acl, new, temporary, in: staging.directory, as: name, in: directory, make)
        }
      } catch .EXDEV, .EINVAL {
        // Below.
      }
    }
    let made = try make(directory, name, unfinishedMode(new, in: try directory.status()))
    do throws(Errno) {
      try finish(new, as: name, in: directory, by: caller, isOnVolume: isOnVolume)
    } catch .ESTALE {
      // What has the name now is not ours to remove.
      throw .ESTALE
    } catch {
      try? directory.remove(name, directory: new.isDirectory)
      throw error
    }
    return made
  }

  /// Gives an object that was made in place the ACL that it inherits; another worker may have made it, and
  /// died then.
  ///
  /// On a volume others may have put something in its place: only what is the caller's and still as it was
  /// made is changed, which nobody would mind.
  func finish(
    _ new: NewObject, as name: Name, in directory: FD, by caller: Caller, isOnVolume: Bool
  ) throws(Errno) {
    guard let acl = new.acl else { return }
    let object = try nodes.openWithRoom { () throws(Errno) in try directory.child(name) }
    if isOnVolume { guard try isJustMade(object.fd, new, by: caller) else { throw .ESTALE } }
    try applyGroup(of: object.fd, new.gid)
    try volume.metadata.setACL(acl, on: object.fd)
    try object.fd.changeMode(new.mode)
    // Someone may have looked at it meanwhile.
    volume.securities.changed(Identity(try object.fd.status(), of: object.fd))
  }

  /// What an object that is created in place is like until it has its ACL: nobody may use it.
  ///
  /// A program that serves a volume may judge the one who creates a file by the mode that it gets. So there
  /// it is one by which its maker may use it, and which no other file has.
  private func unfinishedMode(_ new: NewObject, in status: FileStatus) -> FileMode {
    let device = UInt32(truncatingIfNeeded: status.st_dev)
    return !new.isDirectory && volume.attached.queue(ofDevice: device) != nil ? S_ISVTX | 0o600 : 0
  }

  /// Whether this can be what was made just now for a caller, with no mode yet and nothing in it.
  private func isJustMade(_ object: FD, _ new: NewObject, by caller: Caller) throws(Errno) -> Bool {
    let status = try object.status()
    guard !volume.settings.isSystem || status.st_uid == caller.uid && status.st_gid == new.gid,
      status.permissions & ~S_ISGID == unfinishedMode(new, in: status), status.isDirectory == new.isDirectory
    else { return false }
    return new.isDirectory || status.st_nlink == 1 && (!status.isRegular || status.st_size == 0)
  }

  private func makeStaged<Made: ~Copyable>(
    _ acl: AccessControlList, _ new: NewObject, _ temporary: Name, in staging: FD, as name: Name,
    in directory: FD,
    _ make: (FD, Name, FileMode) throws(Errno) -> Made
  ) throws(Errno) -> Made {
    // Without privilege a directory can be moved to another parent only if its owner may write to it.
    let late = new.isDirectory && !volume.settings.isSystem
    let made = try make(staging, temporary, late ? 0o700 : new.mode)
    do throws(Errno) {
      let object = try nodes.openWithRoom { () throws(Errno) in try staging.child(temporary) }
      try applyGroup(of: object.fd, new.gid)
      // Where the filesystem gives the group of the directory, that was the staging directory's.
      if volume.settings.isSystem, try object.fd.status().st_gid != new.gid {
        try object.fd.changeOwner(uid: nil, gid: new.gid)
        if !new.isDirectory { try object.fd.changeMode(new.mode) }
      }
      try volume.metadata.setACL(acl, on: object.fd)
      // mkdir(2) does not give it, and the staging directory has none to inherit.
      if new.isDirectory, !late, new.mode & S_ISGID != 0 { try object.fd.changeMode(new.mode) }
      try staging.rename(temporary, to: directory, name, flags: UInt32(CLX_RENAME_NOREPLACE))
      if late { try object.fd.changeMode(new.mode) }
    } catch {
      try? staging.remove(temporary, directory: new.isDirectory)
      throw error
    }
    return made
  }
}
