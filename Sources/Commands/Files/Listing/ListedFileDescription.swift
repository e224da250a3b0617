// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy

/// A listed file for programs.
struct ListedFileDescription: Encodable {
  struct Attribute: Encodable {
    let name: String
    let size: Int
  }

  let file: String
  /// What it is called for a person, where that is wanted.
  let name: String?
  let kind: String
  let mode: String
  let number: UInt64
  let links: UInt64
  let uid: UInt32
  let gid: UInt32
  let user: String?
  let group: String?
  let size: Int64
  /// Seconds since 1970.
  let modified: Int64
  let target: String?
  let flags: [String]
  let attributes: [Attribute]
  /// Missing if there is no ACL.
  let entries: [ACLDescription.Entry]?

  init(_ file: ListedFile, in directory: String?, _ names: AccountNames) {
    let name = String(decoding: file.name, as: UTF8.self)
    self.file = directory.map { $0.ends(with: "/") ? $0 + name : "\($0)/\(name)" } ?? name
    self.name = file.shown?.name
    let status = file.status
    kind = file.shown?.isPackage == true ? "package" : file.kind.word
    mode = String(status.permissions, radix: 8)
    number = UInt64(status.st_ino)
    links = UInt64(status.st_nlink)
    uid = status.st_uid
    gid = status.st_gid
    user = names.userName(status.st_uid)
    group = names.groupName(status.st_gid)
    size = Int64(status.st_size)
    modified = Int64(status.st_mtim.tv_sec)
    target = file.target.map { String(decoding: $0, as: UTF8.self) }
    flags = file.flags.wordList
    attributes = file.attributes.map(Attribute.init)
    entries = ACLDescription(name, file.acl, isDirectory: status.isDirectory, names).entries
  }
}
