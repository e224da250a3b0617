// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy

// Renames in which a name is not spelled as it is stored: they give the new spelling.

extension View {
  /// Renames what has a name in some spelling to what may be there in another one.
  ///
  /// What is there is replaced under its own name, at once for all who look. It gets the new spelling after
  /// that (``respell(_:_:as:in:by:)``).
  func renameInOtherSpelling(
    _ source: borrowing StoredName, in from: borrowing NodeTable.Reference, to target: borrowing StoredName,
    called newName: Name, in to: borrowing NodeTable.Reference, _ flags: UInt32,
    _ change: borrowing DirectoryChange, by caller: Caller
  ) throws(Errno) -> Renamed {
    let isExchange = flags == Self.exchange
    if !isExchange, change.isWithinOneDirectory, !source.isFree, source.name.isEqual(to: target.name) {
      return try respell(source, as: newName, in: from, change, by: caller)
    }
    let isReplaced = flags == 0 && target.isOther && !target.isFree
    let isKept = isReplaced || !target.isOther && !(isExchange && source.isOther)
    var done = try carryOut(
      source.name, in: from, to: target.name, in: to, flags, change, isKept: isKept, by: caller)
    if source.isOther { forgetSpelling(of: done.moved, in: change.from.number) }
    if target.isOther, let replaced = done.replaced { forgetSpelling(of: replaced, in: change.to.number) }
    done.isToBeRespelled = isReplaced
    return done
  }

  /// Gives something that has a name the same name in another spelling.
  private func respell(
    _ source: borrowing StoredName, as newName: Name, in directory: borrowing NodeTable.Reference,
    _ change: borrowing DirectoryChange, by caller: Caller
  ) throws(Errno) -> Renamed {
    let spelling = StoredName(volume.spelling(of: newName, in: change.from.zone))
    // Nothing is to be done, as where two names of one file are renamed to each other.
    if spelling.name.isEqual(to: source.name) {
      return Renamed(moved: try find(source.name, in: change.from, by: caller).number)
    }
    let done = try carryOut(
      source.name, in: directory, to: spelling.name, in: directory, Self.noReplace, change,
      isKept: spelling.name.isEqual(to: newName), by: caller)
    if source.isOther { forgetSpelling(of: done.moved, in: change.from.number) }
    return done
  }

  /// Gives an object that has just replaced another one the spelling that was asked for.
  ///
  /// If it may not have that, the kernel forgets that it has.
  func respell(
    _ object: ObjectNumber, _ name: Name, as newName: Name, in directory: borrowing NodeTable.Reference,
    by caller: Caller
  ) {
    let spelling = StoredName(volume.spelling(of: newName, in: directory.zone))
    do throws(Errno) {
      let change = try DirectoryChange(from: directory, to: directory, of: self, for: .none)
      guard try find(name, in: change.from, by: caller).number == object,
        // What an app may do beside a file that it was granted depends on the names.
        !change.from.object.isBesideGranted
      else { throw .EBUSY }
      _ = try carryOut(
        name, in: directory, to: spelling.name, in: directory, Self.noReplace, change,
        isKept: spelling.name.isEqual(to: newName), by: caller)
    } catch {
      memory.invalidate(.names, of: directory.number)
    }
  }
}

extension Volume {
  /// How a name would be spelled in a directory of that zone that does not have it.
  fileprivate func spelling(of name: Name, in zone: Zone) -> [UInt8] {
    NameKey(name.buffer).flatMap { zone.standardName(of: $0) } ?? Array(name.buffer)
  }
}

extension Name {
  fileprivate func isEqual(to other: Name) -> Bool { buffer.elementsEqual(other.buffer) }
}
