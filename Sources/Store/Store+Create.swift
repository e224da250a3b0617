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
    try parent.makeDirectory(temporary, mode: 0o700)
    do throws(Errno) {
      let root = try parent.openDirectory(temporary)
      try StoreLayout.fill(root.fd, description, owners(description))
      try root.fd.synchronize(dataOnly: false)
      try parent.rename(temporary, to: parent, name, flags: UInt32(CLX_RENAME_NOREPLACE))
    } catch {
      try? parent.removeTree(temporary)
      throw error
    }
    try parent.synchronize(dataOnly: false)
  }

  private static func createInPlace(_ path: String, _ description: StoreDescription) throws(StoreError) {
    do throws(Errno) {
      let root = try openRoot(path)
      let names = Set(try root.fd.entries().map { String(decoding: $0.name, as: UTF8.self) })
      if names.contains(StoreLayout.descriptionName) { throw .EEXIST }
      // lost+found is there when the directory is the root of a disk of its own.
      let unfinished = names.contains(StoreLayout.unfinishedName)
      guard unfinished || names.subtracting(["lost+found"]).isEmpty else { throw .ENOTEMPTY }
      try root.fd.replaceContents(of: StoreLayout.unfinishedName, with: [], mode: 0o600)
      try root.fd.changeOwner(uid: ProcessID.user, gid: ProcessID.group)
      try root.fd.changeMode(0o700)
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

  /// Removes what an earlier attempt left behind when it was killed.
  private static func removeLeftovers(of name: String, in parent: FD) throws(Errno) {
    let prefix = Array(leftoverPrefix(name).utf8)
    for entry in try parent.entries() where entry.name.starts(with: prefix) {
      let pid = String(decoding: entry.name.dropFirst(prefix.count), as: UTF8.self)
      // One whose maker still runs is not left over.
      guard let number = Int32(pid), ProcessID.isGone(number) else { continue }
      try parent.removeTree(entry.name)
    }
  }

  private static func leftoverPrefix(_ name: String) -> String { ".\(name).unfinished-" }

  /// Splits a path into its parent and its last name.
  private static func split(_ path: String) -> (parent: String, name: String) {
    let parts = path.split(separator: "/")
    guard let last = parts.last else { return ("/", ".") }
    let parent = (path.hasPrefix("/") ? "/" : "") + parts.dropLast().joined(separator: "/")
    return (parent.isEmpty ? "." : parent, String(last))
  }
}
