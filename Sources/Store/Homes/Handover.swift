// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy

/// What of a home changes hands when an account adopts it.
struct Handover {
  let from: UInt32
  let fromGroup: UInt32
  let to: Account
  /// The names that lead there from the home; what is there is left alone.
  let sealed: Set<[[UInt8]]>

  init(from home: FileStatus, to account: Account, sealed: Set<[[UInt8]]>) {
    from = home.st_uid
    fromGroup = home.st_gid
    to = account
    self.sealed = sealed
  }

  /// An object, whatever names it has.
  struct Identity: Hashable {
    let inode: UInt64
    init(_ status: FileStatus) { inode = UInt64(status.st_ino) }
  }

  /// Whether something is to be looked at, and what is in it.
  func concerns(_ entry: DeepWalk.Entry) -> Bool {
    sealed.isEmpty || entry.type != UInt8(DT_DIR) || !sealed.contains(entry.path)
  }

  // MARK: Carrying it out

  func carryOut(in home: FD, _ survey: HomeSurvey, _ adoption: inout Adoption) throws(Errno) {
    try DeepWalk.through(home) { (entry) throws(Errno) in
      guard concerns(entry) else { return false }
      let object: OwnedFD
      do throws(Errno) { object = try entry.directory.child(entry.name) } catch .ENOENT { return false }
      let status = try object.fd.status()
      try give(object.fd, status, survey, &adoption) {
        entry.path.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
      }
      return status.isDirectory
    }
  }

  private func give(
    _ object: FD, _ status: FileStatus, _ survey: HomeSurvey, _ adoption: inout Adoption, _ path: () -> String
  ) throws(Errno) {
    func leave(_ reason: Adoption.Reason) {
      adoption.left[reason, default: .init()].add(
        reason == .othersProperty ? "\(path()) (uid \(status.st_uid))" : path())
    }
    let mayRun = status.isRegular && status.permissions & 0o6111 != 0
    let isProgram = status.isRegular && status.permissions & 0o6000 != 0
    let changes = status.st_uid == from && from != to.uid
    let isTheirs = changes || status.st_uid == to.uid
    if !isTheirs { leave(.othersProperty) }
    guard changes || mayRun else { return }
    if status.isDevice { return leave(.device) }
    guard status.isDirectory || survey.hasAllNames(of: status) else { return leave(.linkedElsewhere) }
    do throws(Errno) {
      // A change of owner takes them as well.
      let hadCapabilities = mayRun ? try object.dropCapabilities() : false
      if changes {
        try object.changeOwner(uid: to.uid, gid: status.st_gid == fromGroup ? to.gid : status.st_gid)
        adoption.given += 1
      }
      if isProgram { try object.changeMode(status.permissions & ~0o6000) }
      if isProgram || hadCapabilities { adoption.tamed.add(path()) }
    } catch .EPERM {
      leave(.protected)
    }
  }
}

/// What must be known of a whole home before anything in it changes.
struct HomeSurvey {
  /// How many names of those that have several are in the home.
  private var names: [Handover.Identity: UInt64] = [:]
  /// What is mounted in it, in words.
  private(set) var mounts: [String] = []

  /// Of more objects with several names than this, none changes hands.
  private static let mostLinked = 1_000_000

  init(of home: FD, _ handover: Handover) throws(Errno) {
    var names = names
    var mounts = mounts
    try DeepWalk.through(home) { (entry) throws(Errno) in
      guard handover.concerns(entry) else { return false }
      do throws(Errno) {
        let status = try entry.directory.child(entry.name).status()
        if !status.isDirectory, status.st_nlink > 1, names.count < Self.mostLinked {
          names[Handover.Identity(status), default: 0] += 1
        }
        return status.isDirectory
      } catch .EXDEV {
        let path = entry.path.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
        mounts.append("something is mounted at \(path)")
      } catch .ENOENT {
        // It was removed just now.
      }
      return false
    }
    self.names = names
    self.mounts = mounts
  }

  func hasAllNames(of status: FileStatus) -> Bool {
    status.st_nlink <= 1 || names[Handover.Identity(status)] == UInt64(status.st_nlink)
  }
}

extension FileStatus {
  fileprivate var isDevice: Bool {
    let type = st_mode & S_IFMT
    return type == S_IFCHR || type == S_IFBLK
  }
}

extension OwnedFD {
  /// Its attributes, while it is open.
  fileprivate borrowing func status() throws(Errno) -> FileStatus { try fd.status() }
}

extension FD {
  /// Takes a program's capabilities away; whether it had any.
  ///
  /// A change of owner takes them too, and nobody but root has given them.
  fileprivate func dropCapabilities() throws(Errno) -> Bool {
    try "security.capability".withName { (name) throws(Errno) in
      do throws(Errno) {
        try removeAttribute(name.bytes)
        return true
      } catch .ENODATA, .EOPNOTSUPP {
        return false
      } catch .EPERM {
        // So it is also where there are none.
        let size = try? attribute(name.bytes, into: UnsafeMutableRawBufferPointer(start: nil, count: 0))
        guard size != nil else { return false }
        throw .EPERM
      }
    }
  }
}
