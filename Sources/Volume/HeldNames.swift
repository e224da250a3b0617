// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy
internal import Store

/// What names stood for when the view of a backup first had them, until that ends.
///
/// Programs that back up list a directory, and look its names up much later. Who may rename what is there can
/// so have them miss it, by giving it a name that they are past, and the former one afterwards.
final class HeldNames: Sendable {
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

  private let state = OrderedMutex(.leaf, [Key: Identity]())
  private let budget: Budget
  private let payer: Payer
  private let most: Int
  /// What one takes, with the room that a table has in reserve.
  private static let weight = 160

  /// `payer` is charged for them; those over budget are not held.
  init(_ budget: Budget, by payer: Payer, most: Int = 1 << 20) {
    self.budget = budget
    self.payer = payer
    self.most = most
  }

  deinit { giveBack() }

  func find(_ name: Name, in directory: ObjectNumber) -> Identity? {
    let key = Key(name, in: directory)
    return state.withLock { $0[key] }
  }

  func hold(_ name: Name, in directory: ObjectNumber, _ identity: Identity) {
    let key = Key(name, in: directory)
    let isNew = state.withLock { $0[key] == nil && $0.count < most }
    guard isNew, budget.takeQuietly(.memory, Self.weight, by: payer) else { return }
    let isAdded = state.withLock { names in
      guard names[key] == nil else { return false }
      names[key] = identity
      return true
    }
    if !isAdded { budget.give(.memory, Self.weight, by: payer) }
  }

  /// What it stood for is gone for good.
  func forget(_ name: Name, in directory: ObjectNumber) {
    let key = Key(name, in: directory)
    if state.withLock({ $0.removeValue(forKey: key) }) != nil {
      budget.give(.memory, Self.weight, by: payer)
    }
  }

  func giveBack() {
    let count = state.withLock { names in
      defer { names = [:] }
      return names.count
    }
    budget.give(.memory, count * Self.weight, by: payer)
  }
}

extension View {
  /// What has a name in the view of a backup: what had it first, if it is still there.
  ///
  /// A file that has another name by now is found by the former one as well. ESTALE for a directory, which
  /// has one place, and for others than root, who might not get to where it is.
  func heldChild(
    _ name: Name, of directory: borrowing NodeTable.Reference, _ held: HeldNames, by user: UInt32
  ) throws(Errno) -> OwnedFD {
    let known = held.find(name, in: directory.number)
    let parent = directory.fd
    let object: OwnedFD
    do throws(Errno) {
      object = try nodes.openWithRoom { () throws(Errno) in try parent.child(name) }
    } catch {
      guard error == .ENOENT, let known else { throw error }
      if let former = try former(known, named: name, in: directory, held, by: user) { return former }
      throw error
    }
    let status = try object.fd.status()
    let identity = Identity(status, of: object.fd)
    if let known, !known.isSame(as: identity),
      let former = try former(known, named: name, in: directory, held, by: user)
    {
      return former
    }
    if try mayBeRenamed(status, in: directory) { held.hold(name, in: directory.number, identity) }
    return object
  }

  /// An object that had a name first, if it has any now; nil also where that can't be told.
  private func former(
    _ known: Identity, named name: Name, in directory: borrowing NodeTable.Reference, _ held: HeldNames,
    by user: UInt32
  ) throws(Errno) -> OwnedFD? {
    if let object = try nodes.find(known.handle, on: directory.volume, directory.zone) {
      let status = try object.fd.status()
      if status.st_nlink > 0, UInt64(status.st_ino) == known.inode {
        guard !status.isDirectory, user == 0 else { throw .ESTALE }
        return object
      }
    }
    held.forget(name, in: directory.number)
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
  /// An object that is there still; nil also where that can't be told.
  fileprivate func find(_ handle: FileHandle, on volume: UInt32, _ zone: Zone) throws(Errno) -> OwnedFD? {
    guard handle.length > 0 else { return nil }
    do throws(Errno) { return try open(handle, on: volume, zone) } catch {
      guard error == .ESTALE || error == .ENOENT else { throw error }
      return nil
    }
  }
}
