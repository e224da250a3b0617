// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy

/// Something that stays although what it was in is removed.
package struct LeftBehind: Codable, Equatable, Sendable {
  /// Where it is now, below the root of the tree.
  package let path: String
  package let reason: String

  package init(path: String, reason: String) {
    self.path = path
    self.reason = reason
  }
}

/// Removes a tree for the user whose it is: of their own things those that no flag protects.
///
/// Each object is looked at by itself, so it makes no difference how it got there. What stays keeps its place
/// in the tree.
struct OwnersRemoval {
  /// What stays, by its path from the top; the first ``most`` of it.
  private(set) var kept: [(path: [[UInt8]], reason: KeptReason)] = []
  /// What became free by what is gone.
  private(set) var freed = FreedSpace()
  private let owner: UInt32
  private let metadata: Metadata
  private let device: UInt64
  private let rest: Pause
  private var moved = 0

  static let most = 100
  /// Directories that are open at a time; what lies deeper is first moved to the top.
  private static let deepest = 64
  /// How many names of each of them are known at a time.
  private static let portion = 2048

  /// `device` is the filesystem that everything is on.
  init(for owner: UInt32, _ metadata: Metadata, device: UInt64, rest: @escaping Pause = {}) {
    self.owner = owner
    self.metadata = metadata
    self.device = device
    self.rest = rest
  }

  /// Removes what has that name, and tells whether all of it is gone.
  mutating func remove(_ name: Name, in parent: FD) throws(Errno) -> Bool {
    try removeEntry(name, in: parent, top: nil, [])
  }

  /// `top` is the directory to which what lies too deep is moved; nil for itself.
  private mutating func removeEntry(
    _ name: Name, in parent: FD, top: FD?, _ path: [[UInt8]]
  ) throws(Errno) -> Bool {
    let status = try parent.status(of: name)
    if let reason = try reasonToKeep(name, status, in: parent) {
      keep(path, reason)
      return false
    }
    guard status.isDirectory else {
      try parent.remove(name, directory: false)
      try note(status)
      return true
    }
    let directory = try openToEmpty(name, status, in: parent)
    guard try removeContents(of: directory.fd, top: top ?? directory.fd, path) else { return false }
    do throws(Errno) {
      try parent.remove(name, directory: true)
      try note(status)
      return true
    } catch .ENOTEMPTY {
      keep(path, .changing)
      return false
    }
  }

  private mutating func note(_ gone: FileStatus) throws(Errno) {
    freed.add(gone)
    try rest()
  }

  private mutating func removeContents(of directory: FD, top: FD, _ path: [[UInt8]]) throws(Errno) -> Bool {
    var isEmpty = true
    // What stays. Others can have made more of it than there is memory for their names.
    var known: Set<Int> = []
    // Again, for what was moved here meanwhile; whoever has it open and fills it again and again does not
    // keep us for ever.
    for _ in 0..<(path.isEmpty ? 10_000 : 100) {
      var isNew = false
      try directory.inPortions(of: Self.portion) { (entries) throws(Errno) in
        for (name, _) in entries where !known.contains(name.hashValue) {
          isNew = true
          guard try !removeEntry(name, of: directory, top: top, path) else { continue }
          isEmpty = false
          known.insert(name.hashValue)
        }
      }
      if !isNew { return isEmpty }
    }
    keep(path, .changing)
    return false
  }

  private mutating func removeEntry(
    _ entry: [UInt8], of directory: FD, top: FD, _ path: [[UInt8]]
  ) throws(Errno) -> Bool {
    try entry.withName { (name) throws(Errno) in
      do throws(Errno) {
        if path.count >= Self.deepest, try moveUp(name, in: directory, to: top) { return true }
        return try removeEntry(name, in: directory, top: top, path + [entry])
      } catch .ENOENT {
        // Someone else has removed it.
        return true
      } catch .EPERM, .EACCES, .EBUSY, .EXDEV {
        keep(path + [entry], .refused)
        return false
      }
    }
  }

  private func reasonToKeep(_ name: Name, _ status: FileStatus, in parent: FD) throws(Errno) -> KeptReason? {
    guard UInt64(status.st_dev) == device else { throw .EXDEV }
    var flags: FileFlags = []
    if !metadata.isBare(name, in: parent) {
      let object = try parent.child(name)
      flags = ((try? metadata.security(of: object.fd)) ?? .unreadable).flags
    }
    let kind: Object.Kind = status.isDirectory ? .directory : status.isSymlink ? .symlink : .file
    return Policy.reasonToKeep(uid: status.st_uid, kind: kind, flags: flags, whenRemovedFor: owner)
  }

  /// The status of what would go; nil for what would stay.
  func statusIfRemoved(_ name: Name, in parent: FD) -> FileStatus? {
    do throws(Errno) {
      let status = try parent.status(of: name)
      return try reasonToKeep(name, status, in: parent) == nil ? status : nil
    } catch {
      return nil
    }
  }

  private mutating func keep(_ path: [[UInt8]], _ reason: KeptReason) {
    if kept.count < Self.most { kept.append((path, reason)) }
  }

  /// Moves a directory that lies deep to the top, where its turn comes; false for what is no directory, or
  /// stays.
  private mutating func moveUp(_ name: Name, in directory: FD, to top: FD) throws(Errno) -> Bool {
    let status = try directory.status(of: name)
    guard status.isDirectory, try reasonToKeep(name, status, in: directory) == nil else { return false }
    // Its own parent entry changes too, which needs the right to write in it.
    _ = try openToEmpty(name, status, in: directory)
    while true {
      moved += 1
      do throws(Errno) {
        try ".removing-\(moved)".withName { (free) throws(Errno) in
          try directory.rename(name, to: top, free, flags: UInt32(CLX_RENAME_NOREPLACE))
        }
        return true
      } catch .EEXIST {
        continue
      }
    }
  }

  private func openToEmpty(_ name: Name, _ status: FileStatus, in parent: FD) throws(Errno) -> OwnedFD {
    let directory = try parent.child(name)
    // Another one by now is looked at again.
    guard try directory.fd.status().isSameObject(as: status) else { throw .ENOENT }
    // Its owner may have taken the rights away from himself.
    if status.permissions & 0o700 != 0o700 { try? directory.fd.changeMode(0o700) }
    return try directory.fd.reopened(O_RDONLY | O_DIRECTORY)
  }
}

extension KeptReason {
  /// As words that follow "stays, because".
  var words: String {
    switch self {
    case .owner(let uid): "it belongs to \(Account.numbered(uid)?.name ?? "uid \(uid)")"
    case .flags(let flags): "it has the flags \(flags.words)"
    case .refused: "the backing filesystem refuses to remove it"
    case .changing: "new files are constantly created in it"
    }
  }
}
