// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization

/// What names stood for when the view of a backup first had them, until that ends.
///
/// Programs that back up list a directory, and look its names up much later. Who may rename what is there can
/// so have them miss it, by giving it a name that they are past, and the former one afterwards.
///
/// They also read what a file contains by a descriptor, and its attributes by its name. So a name that was
/// looked up stands for that object alone: nobody gives its contents the ACL of something else.
final class HeldNames: Sendable {
  struct Held {
    let identity: Identity
    /// Who has the object.
    let owner: UInt32
    /// Whether it was looked up, and not only listed.
    var isTold: Bool
  }

  private struct Key: Hashable {
    let one: Int
    let other: Int

    init(_ name: Name, in directory: ObjectNumber) {
      // By hashes that nobody can know before.
      func hash(_ salt: UInt8) -> Int {
        var hasher = Hasher()
        hasher.combine(salt)
        hasher.combine(directory)
        hasher.combine(bytes: UnsafeRawBufferPointer(name.buffer))
        return hasher.finalize()
      }
      (one, other) = (hash(0), hash(1))
    }
  }

  private struct State {
    var names: [Key: Held] = [:]
    /// How many of them are of what a user has.
    var counts: [UInt32: Int] = [:]
    /// How many names directories have, where they are not few.
    var listed: [ObjectNumber: Int] = [:]

    var count: Int { names.count + listed.count }
  }
  private let state = OrderedMutex(.leaf, State())
  private let budget: Budget
  private let payer: Payer
  private let most: Int
  private let mostListed: Int
  /// What one takes, with the room that a table has in reserve.
  private static let weight = 192
  /// A program that backs up keeps all names of a directory, and of those above it, in its memory.
  ///
  /// restic takes 3 KB for each. An eighth of the machine's memory is for them.
  private static let mostInMemory = min(max(MemoryLimit.ofThisMachine / 8 / 4096, 1 << 15), 1 << 22)
  private static let few = 64

  /// `payer` is charged for them; those over budget are not held.
  ///
  /// `most` is for what one user has: nobody's names take the room of those of others. `mostListed` is for a
  /// directory with all above it.
  init(_ budget: Budget, by payer: Payer, most: Int = 1 << 18, mostListed: Int = HeldNames.mostInMemory) {
    self.budget = budget
    self.payer = payer
    self.most = most
    self.mostListed = mostListed
  }

  deinit { giveBack() }

  func find(_ name: Name, in directory: ObjectNumber) -> Held? {
    let key = Key(name, in: directory)
    return state.withLock { $0.names[key] }
  }

  /// False if it is not held.
  func hold(_ name: Name, in directory: ObjectNumber, _ found: Held) -> Bool {
    let key = Key(name, in: directory)
    let isNew = state.withLock { state -> Bool? in
      guard state.names[key] == nil else {
        if found.isTold { state.names[key]?.isTold = true }
        return false
      }
      return state.counts[found.owner, default: 0] < most ? true : nil
    }
    guard let isNew else { return false }
    guard isNew else { return true }
    guard budget.takeQuietly(.memory, Self.weight, by: payer) else { return false }
    let isAdded = state.withLock { state in
      guard state.names[key] == nil else { return false }
      state.names[key] = found
      state.counts[found.owner, default: 0] += 1
      return true
    }
    if !isAdded { budget.give(.memory, Self.weight, by: payer) }
    return true
  }

  /// What it stood for is gone for good, and was never told.
  func forget(_ name: Name, in directory: ObjectNumber) {
    let key = Key(name, in: directory)
    let isGone = state.withLock { state in
      guard let held = state.names.removeValue(forKey: key) else { return false }
      state.counts[held.owner, default: 1] -= 1
      return true
    }
    if isGone { budget.give(.memory, Self.weight, by: payer) }
  }

  /// A directory has so many names.
  func noteListed(_ count: Int, of directory: ObjectNumber) {
    let isNew = state.withLock { state in
      guard state.listed[directory] != nil else { return count > Self.few }
      state.listed[directory] = count
      return false
    }
    guard isNew, budget.takeQuietly(.memory, Self.weight, by: payer) else { return }
    let isAdded = state.withLock { $0.listed.updateValue(count, forKey: directory) == nil }
    if !isAdded { budget.give(.memory, Self.weight, by: payer) }
  }

  /// How many names a directory may have that is in these.
  func mostNames(in directories: [ObjectNumber]) -> Int {
    let above = state.withLock { state in directories.reduce(0) { $0 + (state.listed[$1] ?? 0) } }
    return max(mostListed - above, 0)
  }

  func giveBack() {
    let count = state.withLock { state in
      defer { state = State() }
      return state.count
    }
    budget.give(.memory, count * Self.weight, by: payer)
  }
}

extension View {
  /// What has a name in the view of a backup: what had it first, if it is still there.
  ///
  /// A file that has another name by now is found by the former one as well. ESTALE for a directory, which
  /// has one place, and for others than root, who might not get to where it is.
  ///
  /// Once it was looked up, ENOENT if it is gone for good, whatever has its name then.
  func heldChild(
    _ name: Name, of directory: borrowing NodeTable.Reference, _ held: HeldNames, by user: UInt32
  ) throws(Errno) -> OwnedFD {
    try heldChild(name, of: directory, held, isTold: true, by: user).take()
  }

  /// Holds a name that is listed; false if it is not held.
  func hold(
    _ name: Name, of directory: borrowing NodeTable.Reference, _ held: HeldNames, by user: UInt32
  ) throws(Errno) -> Bool {
    try heldChild(name, of: directory, held, isTold: false, by: user).isHeld
  }

  private struct Found: ~Copyable {
    let object: OwnedFD
    let isHeld: Bool

    consuming func take() -> OwnedFD { object }
  }

  private func heldChild(
    _ name: Name, of directory: borrowing NodeTable.Reference, _ held: HeldNames, isTold: Bool,
    by user: UInt32
  ) throws(Errno) -> Found {
    let known = held.find(name, in: directory.number)
    let parent = directory.fd
    let object: OwnedFD
    do throws(Errno) {
      object = try nodes.openWithRoom { () throws(Errno) in try parent.child(name) }
    } catch {
      guard error == .ENOENT, let known else { throw error }
      if let former = try former(known, named: name, in: directory, held, by: user) {
        return Found(object: former, isHeld: true)
      }
      throw error
    }
    let status = try object.fd.status()
    let identity = Identity(status, of: object.fd)
    if let known, !known.identity.isSame(as: identity) {
      if let former = try former(known, named: name, in: directory, held, by: user) {
        return Found(object: former, isHeld: true)
      }
      if known.isTold { throw .ENOENT }
    }
    guard try mayBeRenamed(status, in: directory) else { return Found(object: object, isHeld: false) }
    let found = HeldNames.Held(identity: identity, owner: status.st_uid, isTold: isTold)
    return Found(object: object, isHeld: held.hold(name, in: directory.number, found))
  }

  /// An object that had a name first, if it has any now; nil also where that can't be told.
  ///
  /// One that was looked up may have none, while a program has it open.
  private func former(
    _ known: HeldNames.Held, named name: Name, in directory: borrowing NodeTable.Reference,
    _ held: HeldNames, by user: UInt32
  ) throws(Errno) -> OwnedFD? {
    if let object = try nodes.find(known.identity.handle, on: directory.volume, directory.zone) {
      let status = try object.fd.status()
      let isThere = status.st_nlink > 0 || known.isTold && user == 0 && !status.isDirectory
      if isThere, UInt64(status.st_ino) == known.identity.inode {
        guard !status.isDirectory, user == 0 else { throw .ESTALE }
        return object
      }
    }
    if !known.isTold { held.forget(name, in: directory.number) }
    return nil
  }

  /// Whether somebody who does not own something may rename it, or it may have something of others' in it.
  private func mayBeRenamed(
    _ status: FileStatus, in directory: borrowing NodeTable.Reference
  ) throws(Errno) -> Bool {
    if status.isDirectory { return true }
    let above = try directory.fd.status()
    if above.st_uid != status.st_uid || above.permissions & 0o022 != 0 { return true }
    guard case .acl(let list) = security(of: directory).acl else { return false }
    return list.entries.contains { $0.kind == .permit }
  }
}

extension NodeTable {
  /// The directories that something is in, from the nearest on.
  func directories(above id: NodeID) -> [ObjectNumber] {
    state.withLock { state in
      guard var index = state.index(of: id) else { return [] }
      var found: [ObjectNumber] = []
      // No path has more.
      while index != Self.rootIndex, found.count < 4096 {
        index = state.slab[index].pointee.parent
        guard let parent = state.slab.slot(index), parent.pointee.flags.contains(.inUse) else { break }
        found.append(parent.pointee.number)
      }
      return found
    }
  }

  /// An object that is there still; nil also where that can't be told.
  fileprivate func find(_ handle: FileHandle, on volume: UInt32, _ zone: Zone) throws(Errno) -> OwnedFD? {
    guard handle.length > 0 else { return nil }
    do throws(Errno) { return try open(handle, on: volume, zone) } catch {
      guard error == .ESTALE || error == .ENOENT else { throw error }
      return nil
    }
  }
}
