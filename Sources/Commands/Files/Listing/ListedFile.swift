// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy

/// One file of a listing, with as much as is wanted of it.
struct ListedFile {
  let name: [UInt8]
  let status: FileStatus
  /// Where a symbolic link leads.
  private(set) var target: [UInt8]?
  private(set) var acl: AccessControlList?
  private(set) var flags: FileFlags = []
  /// Names and sizes of the attributes that somebody has given to it.
  private(set) var attributes: [(name: String, size: Int)] = []
  /// What a person sees of it, where that is wanted.
  var shown: FinderView.Shown?
  /// What could not be found out, and why.
  private(set) var problems: [CommandFailure] = []

  init(_ name: [UInt8], _ fd: FD, _ options: ListingOptions, _ aliases: XattrAliases) throws(Errno) {
    self.name = name
    status = try fd.status()
    guard options.needsDetails else { return }
    if status.isSymlink { target = try? Self.target(of: fd) }
    let security = ObjectSecurity(fd: fd, aliases: aliases)
    acl = attempt { () throws(CommandFailure) in try security.acl() }
    flags = attempt { () throws(CommandFailure) in try security.flags() } ?? []
    for attribute in (try? fd.attributeNames()) ?? [] where !aliases.contains(attribute) {
      let size = try? attribute.withName { (name) throws(Errno) in
        try fd.attribute(name.bytes, into: UnsafeMutableRawBufferPointer(start: nil, count: 0))
      }
      attributes.append((attribute, size ?? 0))
    }
    attributes = attributes.inOrder { $0.name < $1.name }
  }

  /// Elsewhere there are neither ACLs nor flags, which is nothing to be told of in a listing.
  private mutating func attempt<Value>(_ body: () throws(CommandFailure) -> Value?) -> Value? {
    do throws(CommandFailure) {
      return try body()
    } catch {
      if !error.meansNotOurs { problems.append(error) }
      return nil
    }
  }

  private static func target(of fd: FD) throws(Errno) -> [UInt8] {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(PATH_MAX), alignment: 1)
    defer { buffer.deallocate() }
    return Array(buffer[..<(try fd.readLink(into: buffer))])
  }

  /// `-rwxr-xr-x`.
  var mode: String {
    let mode = status.permissions
    func triple(_ bits: FileMode, _ special: FileMode, _ letter: String) -> String {
      let isExecutable = bits & 1 != 0
      let last =
        mode & special == 0 ? (isExecutable ? "x" : "-") : (isExecutable ? letter : letter.uppercased())
      return (bits & 4 != 0 ? "r" : "-") + (bits & 2 != 0 ? "w" : "-") + last
    }
    return kind.letter + triple(mode >> 6, S_ISUID, "s") + triple(mode >> 3, S_ISGID, "s")
      + triple(mode, S_ISVTX, "t")
  }

  /// What kind of object it is: the letter in front of its mode, the sign behind its name, the word for
  /// programs.
  var kind: (letter: String, sign: String, word: String) {
    switch status.type {
    case S_IFDIR: ("d", "/", "directory")
    case S_IFLNK: ("l", "@", "symlink")
    case S_IFIFO: ("p", "|", "fifo")
    case S_IFSOCK: ("s", "=", "socket")
    case S_IFBLK: ("b", "", "block device")
    case S_IFCHR: ("c", "", "character device")
    default: ("-", status.permissions & 0o111 == 0 ? "" : "*", "file")
    }
  }

  /// What it is called in the listing.
  var listedName: [UInt8] { shown.map { Array($0.name.sanitized.utf8) } ?? name }

  /// The character behind the mode.
  var suffix: String { !attributes.isEmpty ? "@" : acl?.entries.isEmpty == false ? "+" : " " }
}
