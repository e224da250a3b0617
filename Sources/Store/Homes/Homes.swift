// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
internal import Policy

/// The homes in a tree: the store's own, or the mounted one, so that a running daemon sees every change.
package final class Homes: Sendable {
  /// One home, as `insula user list` shows it.
  package struct Home: Codable, Equatable, Sendable {
    package let name: String
    package let uid: UInt32
    /// The owner's account; nil if the machine has none with this number any more.
    package let account: String?
    /// Which of the standard directories are missing.
    package let missing: [String]
    /// Whether it is on a disk or server that is not there; then nothing else is known of it.
    package var isAway = false
    /// Why nobody can see what is missing; nil if that was seen.
    package var problem: String?
  }

  let users: OwnedFD
  /// Where what is being made or removed has its name.
  let workshop: OwnedFD
  /// Where the tree is, for messages.
  package let path: String
  private let mode: StoreDescription.Mode
  let access: SecurityAccess

  /// Opens the `Users` directory of a tree.
  package init(
    tree: FD, path: String, mode: StoreDescription.Mode, isMounted: Bool = false
  ) throws(StoreError) {
    self.path = path + "/Users"
    self.mode = mode
    access = isMounted ? .mount : .store(Metadata(isSystem: mode == .system))
    users = try explaining("open", path + "/Users") { () throws(Errno) in
      try tree.openDirectory("Users")
    }
    workshop = try explaining("open", path + "/Users") { () throws(Errno) in
      try tree.openDirectory("Users")
    }
  }

  /// Those in a directory outside of the tree; nobody else gets into `workshop`.
  init(
    in directory: FD, path: String, mode: StoreDescription.Mode, workshop: consuming OwnedFD
  ) throws(StoreError) {
    self.workshop = workshop
    self.path = path
    self.mode = mode
    access = .store(Metadata(isSystem: mode == .system))
    users = try explaining("open", path) { () throws(Errno) in
      try directory.open(Name.here, O_RDONLY | O_DIRECTORY)
    }
  }

  /// Makes the home of an account, or what is missing of one that is there and theirs.
  func addOrComplete(_ name: String) throws(StoreError) {
    let account = try self.account(for: name)
    let place = "\(path)/\(name)"
    guard users.fd.has(name) else { return try add(name) }
    let home = try explaining("open the home", place) { () throws(Errno) in try users.fd.openDirectory(name) }
    let status = try explaining("examine", place) { () throws(Errno) in try home.fd.status() }
    guard status.st_uid == account.uid else {
      throw .notAdoptable(path: place, reasons: ["it belongs to uid \(status.st_uid), not to \(name)"])
    }
    let care = HomeCare(home, uid: account.uid, gid: account.gid, owners: nil, access: access)
    let faults = care.faults()
    let reasons = faults.compactMap { fault -> String? in
      switch fault.kind {
      case .owner(let uid), .othersDirectory(let uid): "\(fault.path) belongs to uid \(uid)"
      default: fault.isMendable ? nil : "\(fault.path) must be a directory"
      }
    }
    guard reasons.isEmpty else { throw .notAdoptable(path: place, reasons: reasons) }
    try explaining("complete", place) { () throws(Errno) in
      for fault in faults { try care.mend(fault) }
    }
  }

  /// Throws if there is a home of that name, or can't be one.
  package func requireFree(_ name: String) throws(StoreError) {
    _ = try account(for: name)
    if has(name) {
      throw .homeExists(path: "\(path)/\(name)")
    }
  }

  /// Makes a home for an account, whole or not at all.
  package func add(_ name: String) throws(StoreError) {
    let account = try self.account(for: name)
    clearRemainders()
    let temporary = ".\(name)\(Self.newMark)\(ProcessID.own)"
    do throws(Errno) {
      try make(temporary, for: account)
    } catch {
      discard(temporary)
      throw failure(error, doing: "create the home", name)
    }
    do throws(Errno) {
      try temporary.withName { (temporary) throws(Errno) in
        try name.withName { (name) throws(Errno) in
          try workshop.fd.rename(temporary, to: users.fd, name, flags: UInt32(CLX_RENAME_NOREPLACE))
          // Before, the ACL would forbid its owner to give it its name.
          do throws(Errno) {
            let home = try users.fd.child(name)
            try access.give(HomeDirectory.staying, to: home.fd)
          } catch {
            try? access.removeTree(name, in: users.fd)
            throw error
          }
        }
      }
    } catch {
      discard(temporary)
      if error == .EEXIST { throw .homeExists(path: "\(path)/\(name)") }
      throw failure(error, doing: "create the home", name)
    }
  }

  /// All homes, by name.
  package func list() throws(StoreError) -> [Home] {
    try explaining("list the homes in", path) { () throws(Errno) in
      var homes: [Home] = []
      for entry in try users.fd.entries() {
        let name = String(decoding: entry.name, as: UTF8.self)
        guard name != "Shared", !name.hasPrefix(".") else { continue }
        if let home = home(name) { homes.append(home) }
      }
      return homes.inOrder { $0.name < $1.name }
    }
  }

  /// The names of all homes, and whose they are; nil for those that lie elsewhere, on disks and servers that
  /// may not answer: nothing in any home is looked at.
  func owners() throws(StoreError) -> [(name: String, owner: UInt32?)] {
    try explaining("list the homes in", path) { () throws(Errno) in
      var homes: [(name: String, owner: UInt32?)] = []
      for entry in try users.fd.entries() {
        let name = String(decoding: entry.name, as: UTF8.self)
        guard name != "Shared", !name.begins(with: "."), let status = try? users.fd.status(of: name) else {
          continue
        }
        if status.isDirectory {
          homes.append((name, status.st_uid))
        } else if HomeLink.isOne(name, in: users.fd) {
          homes.append((name, nil))
        }
      }
      return homes.inOrder { $0.name < $1.name }
    }
  }

  /// The first home of a user, by name; nothing in any home is looked at.
  ///
  /// Root has none elsewhere but one of its own name: nobody's disk gets what root's apps write.
  func name(ofHomeOf user: UInt32) throws(StoreError) -> String? {
    try explaining("list the homes in", path) { () throws(Errno) in
      let names = try users.fd.entries().map { String(decoding: $0.name, as: UTF8.self) }
      return names.inOrder(by: <).first { name in
        guard name != "Shared", !name.begins(with: "."), let status = try? users.fd.status(of: name) else {
          return false
        }
        if status.isDirectory { return status.st_uid == user }
        return user != 0 && RedirectedNames.target(of: Array(name.utf8), in: users.fd)?.owner == user
      }
    }
  }

  /// The home of that name; nothing in any other one is looked at.
  package func home(_ name: String) -> Home? {
    guard let status = try? users.fd.status(at: name), status.isDirectory else {
      return isAway(name) ? Home(name: name, uid: 0, account: nil, missing: [], isAway: true) : nil
    }
    let account = Account.numbered(status.st_uid)?.name
    do throws(Errno) {
      return Home(name: name, uid: status.st_uid, account: account, missing: try missingDirectories(in: name))
    } catch {
      return Home(name: name, uid: status.st_uid, account: account, missing: [], problem: error.message)
    }
  }

  /// Whether a home is on a disk or server that is not there: without a daemon that has it the store has a
  /// link of ours, and a mount says that there is no medium.
  private func isAway(_ name: String) -> Bool {
    do throws(Errno) {
      let object = try users.fd.child(name)
      return HomeLink.isOne(object.fd)
    } catch {
      return error == .ENOMEDIUM
    }
  }

  /// Whether something has that name: a home, or what stands for one elsewhere.
  package func has(_ name: String) -> Bool { users.fd.has(name) || HomeLink.isOne(name, in: users.fd) }

  /// Makes sure that a home is there.
  package func require(_ name: String) throws(StoreError) {
    try Self.checkName(name)
    guard let home = home(name) else { throw .noHome(path: "\(path)/\(name)") }
    if home.isAway { throw .homeIsAway(path: "\(path)/\(name)") }
    // A mount that ignores case finds another account's home, whose name differs by case alone.
    let isItsName = try explaining("list the homes in", path) { () throws(Errno) in
      try users.fd.entries().contains { $0.name.elementsEqual(name.utf8) }
    }
    guard isItsName else { throw .noHome(path: "\(path)/\(name)") }
  }

  /// Whether others than the caller, who is root then, get to the homes: through a mount, of many users.
  var isForSeveralUsers: Bool {
    guard case .mount = access else { return false }
    return mode == .system && ProcessID.user == 0
  }

  /// Removes a home and all that is in it.
  package func remove(_ name: String) throws(StoreError) {
    try destroy(try take(name), of: name)
  }

  /// The same for one that was closed for that; one that can't be taken from its place is opened again.
  package func remove(_ name: String, closed: ClosedHome?) throws(StoreError) {
    let taken: String
    do throws(StoreError) { taken = try take(name) } catch {
      if let closed { try? reopen(closed) }
      throw error
    }
    try destroy(taken, of: name, closed)
  }

  /// Removes what was taken.
  func destroy(_ taken: String, of name: String, _ closed: ClosedHome? = nil) throws(StoreError) {
    disownTree(taken, closed)
    do throws(Errno) {
      try taken.withName { (taken) throws(Errno) in try access.removeTree(taken, in: workshop.fd) }
    } catch {
      let why = error == .ENOTEMPTY ? " (a program keeps making files in it; end it and try again)" : ""
      throw failure(error, doing: "remove all of what was the home\(why)", name)
    }
  }

  /// Takes a home from its place in one step, so that it is none any more; gives its name among what is
  /// removed.
  ///
  /// What is left of it when we are stopped, the next one removes.
  func take(_ name: String) throws(StoreError) -> String {
    try require(name)
    clearRemainders()
    let going = ".\(name)\(Self.removedMark)\(ProcessID.own)"
    do throws(Errno) {
      try? going.withName { (going) throws(Errno) in try access.removeTree(going, in: workshop.fd) }
      try going.withName { (going) throws(Errno) in
        try name.withName { (name) throws(Errno) in
          // Through a mount its ACL forbids that to its owner, and flags to everyone.
          let home = try users.fd.child(name)
          let before = try door(of: home.fd, named: String(decoding: name.buffer, as: UTF8.self))
          access.clear(home.fd)
          // Its new name begins with a dot and is no secret.
          disown(home.fd, 0o700)
          do throws(Errno) {
            try users.fd.rename(name, to: workshop.fd, going, flags: UInt32(CLX_RENAME_NOREPLACE))
          } catch {
            try? giveBack(home.fd, as: before)
            throw error
          }
        }
      }
      return going
    } catch {
      throw failure(error, doing: "remove the home", name)
    }
  }

  func failure(_ error: Errno, doing: String, _ name: String) -> StoreError {
    if error == .EROFS, case .mount = access { return .mountedReadOnly }
    return StoreError(error, doing: doing, path: "\(path)/\(name)")
  }

  private static let newMark = ".new-"
  private static let removedMark = ".removed-"

  /// Whether that is the name of a home that is being made or removed; gives the number of the process.
  static func unfinished(_ name: [UInt8]) -> Int32? {
    let name = String(decoding: name, as: UTF8.self)
    guard name.hasPrefix(".") else { return nil }
    guard let hyphen = name.lastIndex(of: "-"),
      [newMark, removedMark].contains(where: { name[...hyphen].hasSuffix($0) })
    else { return nil }
    return Int32(name[hyphen...].dropFirst())
  }

  /// Removes what was left by commands that were stopped; what can't be removed stays, and 'insula check'
  /// finds it.
  func clearRemainders() {
    let listing = try? workshop.fd.reopened(O_RDONLY | O_DIRECTORY)
    guard let listing, let entries = try? listing.fd.entries() else { return }
    let left = entries.map(\.name).filter { Self.unfinished($0).map(ProcessID.isGone) == true }
    try? Leftovers.ofProcess.remove(left, from: listing) { [access] (directory, name) throws(Errno) in
      // What can't be removed keeps none of the others.
      try? access.removeTree(name, in: directory)
    }
  }

  /// The name of the home that a path below the root of the tree leads into; nil for one that leads
  /// elsewhere.
  package static func name(in path: String) -> String? {
    let names = path.parts(between: "/")
    return names.count > 1 && names[0] == "Users" ? String(names[1]) : nil
  }

  /// The names that a home can have are those that an account and a path can have.
  package static func checkName(_ name: String) throws(StoreError) {
    let reason: String? =
      if name.isEmpty {
        "it is empty"
      } else if name == "Shared" {
        "this is the directory that all users share"
      } else if name.begins(with: ".") || name.begins(with: "-") {
        "it starts with '\(name.prefix(1))'"
      } else if name.utf8.contains(where: { $0 == UInt8(ascii: "/") || $0 < 0x20 || $0 == 0x7f }) {
        "it contains a slash or a control character"
      } else if name.utf8.count > 200 {
        "it is longer than 200 bytes"
      } else {
        nil
      }
    if let reason { throw .badHomeName(name: name, reason: reason) }
  }

  func account(for name: String) throws(StoreError) -> Account {
    try Self.checkName(name)
    guard let account = Account.named(name) else { throw .unknownAccount(name: name) }
    guard mode == .system || account.uid == ProcessID.user else { throw .otherAccount(name: name) }
    return account
  }

  private func make(_ temporary: String, for account: Account) throws(Errno) {
    discard(temporary)
    try temporary.withName { (name) throws(Errno) in
      try workshop.fd.makeDirectory(name, mode: 0o700)
      let home = try workshop.fd.openDirectory(name)
      for directory in HomeDirectory.all {
        try home.fd.withParent(of: directory.path) { (parent, name) throws(Errno) in
          try StoreLayout.makeDirectory(
            name, in: parent, mode: directory.mode, uid: account.uid, gid: account.gid)
          let made = try parent.openDirectory(name)
          if directory.isLocalized { try StoreLayout.mark(made.fd, uid: account.uid, gid: account.gid) }
          try access.give(directory.acl(owner: account.uid), directory.flags, to: made.fd)
        }
      }
      // Last, so that nobody could touch what was not finished.
      try home.fd.changeOwner(uid: account.uid, gid: account.gid)
      try home.fd.changeMode(HomeDirectory.homeMode)
      try home.fd.synchronize(dataOnly: false)
    }
  }

  /// What is wrong with a home's standard directories, and who can put it right.
  ///
  /// `owners` are those of all homes of the store; see `HomeCare`.
  func care(for home: Home, owners: Set<UInt32>?) -> HomeCare? {
    guard let status = try? users.fd.status(at: home.name), status.isDirectory,
      let directory = try? users.fd.openDirectory(home.name)
    else { return nil }
    return HomeCare(directory, uid: status.st_uid, gid: status.st_gid, owners: owners, access: access)
  }

  private func discard(_ name: String) { try? access.removeTree(name, in: workshop.fd) }

  private func missingDirectories(in home: String) throws(Errno) -> [String] {
    let fd = try users.fd.openDirectory(home)
    return HomeDirectory.all.map(\.path).filter { path in
      (try? fd.fd.status(at: path))?.isDirectory != true
    }
  }
}
