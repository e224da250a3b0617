// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import LinuxIO

extension Store {
  /// Makes a new store at `path`, whole or not at all.
  ///
  /// Where nothing is yet, it is made under another name beside and renamed. A directory that is there (it
  /// may be the root of a disk) is used if it is empty, and marked as unfinished until it is done.
  package static func create(at path: String, _ description: StoreDescription) throws(StoreError) {
    let (parentPath, name) = split(path)
    let parent = try explaining("create a store in", parentPath) { () throws(Errno) in
      try openRoot(parentPath)
    }
    let existing = try? parent.fd.status(of: name)
    guard existing != nil else {
      return try explaining("create the store", path) { () throws(Errno) in
        try createBeside(parent.fd, name, description)
      }
    }
    try createInPlace(path, description)
  }

  private static func owners(_ description: StoreDescription) -> StoreLayout.Ownership {
    StoreLayout.Ownership(description, uid: ProcessID.user, gid: ProcessID.group)
  }

  private static func createBeside(
    _ parent: FD, _ name: String, _ description: StoreDescription
  ) throws(Errno) {
    try removeLeftovers(of: name, in: parent)
    let temporary = "\(leftoverPrefix(name))\(ProcessID.own)"
    let root = try parent.makeAndOpenDirectory(temporary)
    do throws(Errno) {
      try StoreLayout.fill(root.fd, description, owners(description))
      try root.fd.synchronize(dataOnly: false)
      try parent.rename(temporary, to: parent, name, flags: UInt32(CLX_RENAME_NOREPLACE))
    } catch {
      try? parent.remove(held: root.fd, named: temporary)
      throw error
    }
    try parent.synchronize(dataOnly: false)
  }

  private static func createInPlace(_ path: String, _ description: StoreDescription) throws(StoreError) {
    do throws(Errno) {
      let root = try openRoot(path)
      if root.fd.has(StoreLayout.descriptionName) { throw .EEXIST }
      if StoreLayout.isUnfinished(root.fd) {
        try root.fd.changeMode(0o700)
      } else {
        try takeOver(root.fd)
        try root.fd.replaceContents(of: StoreLayout.unfinishedName, with: [], mode: 0o600)
      }
      try StoreLayout.fill(root.fd, description, owners(description))
      try root.fd.remove(StoreLayout.unfinishedName, directory: false)
      try root.fd.synchronize(dataOnly: false)
    } catch {
      switch error {
      case .EEXIST: throw .alreadyAStore(path: path)
      case .ENOTEMPTY: throw .notEmpty(path: path)
      case .ENOTDIR: throw .notAStore(path: path, reason: "it is not a directory")
      default: throw StoreError(error, doing: "create the store", path: path)
      }
    }
  }

  /// Makes an empty directory ours alone: from then on nothing gets into it but what we put there.
  ///
  /// It may belong to a user, who can put something there until it is ours: it must be empty after that, too.
  /// If it is not, they get it back.
  private static func takeOver(_ root: FD) throws(Errno) {
    try requireEmpty(root)
    let before = try root.status()
    do throws(Errno) {
      try root.changeOwner(uid: ProcessID.user, gid: ProcessID.group)
      try root.changeMode(0o700)
      if before.st_uid != ProcessID.user { removeACLs(of: root) }
      try requireEmpty(root)
    } catch {
      try? root.changeOwner(uid: before.st_uid, gid: before.st_gid)
      try? root.changeMode(before.permissions)
      throw error
    }
  }

  /// A directory passes rights on to what is made in it, which nobody has given in the store.
  private static func removeACLs(of root: FD) {
    for name in ["system.posix_acl_default", "system.posix_acl_access"] {
      try? root.removeAttribute(name)
    }
  }

  private static func requireEmpty(_ root: FD) throws(Errno) {
    // This one is there when the directory is the root of a disk of its own.
    let names = try root.entries { name, _ in !name.buffer.elementsEqual("lost+found".utf8) }
    guard names.isEmpty else { throw .ENOTEMPTY }
  }

  /// Removes what an earlier attempt left behind when it was killed.
  ///
  /// Where others may rename what is ours, such a name says nothing.
  private static func removeLeftovers(of name: String, in parent: FD) throws(Errno) {
    let above = try parent.status()
    let isSticky = above.permissions & 0o1000 != 0
    guard above.st_uid == ProcessID.user || above.st_uid == 0, isSticky || above.permissions & 0o022 == 0
    else { return }
    let prefix = Array(leftoverPrefix(name).utf8)
    for entry in try parent.entries() where entry.name.starts(with: prefix) {
      let pid = String(decoding: entry.name.dropFirst(prefix.count), as: UTF8.self)
      // One whose maker still runs is not left over.
      guard let number = Int32(pid), ProcessID.isGone(number),
        try parent.status(of: entry.name).st_uid == ProcessID.user
      else { continue }
      try parent.removeTree(entry.name)
    }
  }

  private static func leftoverPrefix(_ name: String) -> String { ".\(name).unfinished-" }

  /// Splits a path into its parent and its last name.
  private static func split(_ path: String) -> (parent: String, name: String) {
    let parts = path.parts(between: "/")
    guard let last = parts.last else { return ("/", ".") }
    let parent = (path.begins(with: "/") ? "/" : "") + parts.dropLast().joined(separator: "/")
    return (parent.isEmpty ? "." : parent, String(last))
  }
}
