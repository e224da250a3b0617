// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO

// What a kernel knows of names in a store that ignores case.
//
//  1. What it keeps of missing names is noted, and withdrawn when another spelling is made (``Absences``).
//  2. A spelling that is not the stored one is looked up each time that it is used.
//  3. When somebody removes a file by such a spelling, the kernel forgets that spelling, and not the stored
//     one. So from the first lookup of another spelling on, all names of that file are looked up each time.
//     What the kernel was told before is dropped then (`Connection.dropUnused`). Where it is in use, that
//     is noted, and a removal withdraws the names in the directory.
//  4. A directory has one name in a kernel, which becomes the one that was looked up last.

/// In which spellings a kernel knows a file.
enum KnownSpellings: UInt16 {
  case stored
  case several
  /// The stored one is in use by one that was told to keep it.
  case severalAndKept
}

extension Node {
  /// In the place of what only directories have.
  fileprivate(set) var knownSpellings: KnownSpellings {
    get { flags.contains(.isDirectory) ? .stored : KnownSpellings(rawValue: namesEpoch) ?? .severalAndKept }
    set { if !flags.contains(.isDirectory) { namesEpoch = newValue.rawValue } }
  }
}

extension View {
  /// What a name in a directory stands for, if need be in another spelling.
  ///
  /// `changed` is when names in the directory were last changed.
  func entryInAnySpelling(
    _ name: Name, in directory: borrowing NodeTable.Reference, _ validity: Double,
    changed: Int64, by caller: Caller
  ) throws(Errno) -> Entry {
    do throws(Errno) {
      let entry = try volume.names(in: directory.number).shared(in: directory.number) { () throws(Errno) in
        do throws(Errno) {
          return try unchangedEntry(name, in: directory, validity, by: caller)
        } catch .ENOENT where mayKeepAbsence(of: name, in: directory, validity, changed: changed) {
          volume.names(in: directory.number).remember(missing: name, in: directory.number)
          return absence(validity)
        }
      }
      if let retries = volume.spellings?.retries, retries.areUnderWay, entry.node != nil {
        retries.note(
          .init(name, stored: name, in: directory.number, entry), by: caller.pid,
          call: ThreadCall.rename)
      }
      if let node = entry.node { dropOtherSpellings(of: node) }
      return entry
    } catch .ENOENT {
      // In another spelling it may be there, or nothing is known of the directory yet.
    }
    _ = volume.learnSpellings(
      in: directory.fd, directory.number, changed: changed, for: caller.uid)
    var lookup: RenameRetries.Lookup?
    let entry = try volume.names(in: directory.number).shared(in: directory.number) { () throws(Errno) in
      let stored = try volume.stored(
        name, in: directory.fd, directory.number, directory.zone, addingFor: nil,
        changed: changed, for: caller.request)
      if stored.isFree {
        // Who adds a name that is known to be missing is not asked whether there is room.
        if !stored.isOther, stored.hasRoom {
          volume.names(in: directory.number).remember(missing: name, in: directory.number)
        }
        guard !stored.isOther, stored.hasRoom, mayKeepAbsence(of: name, in: directory, validity) else {
          throw .ENOENT
        }
        return absence(validity)
      }
      let entry = try unchangedEntry(stored.name, in: directory, stored.isOther ? 0 : validity, by: caller)
      if stored.isOther { lookup = .init(name, stored: stored.name, in: directory.number, entry) }
      return entry
    }
    guard let lookup, let node = entry.node else { return entry }
    noteOtherSpelling(of: node)
    let answer = volume.spellings?.retries.answer(
      lookup, by: caller.pid, of: caller.uid, call: ThreadCall.rename)
    if let answer, answer != .found {
      nodes.forget(node, count: 1)
      throw answer == .again ? .ESTALE : .ENOENT
    }
    return entry
  }

  /// Whether the kernel may keep that there is no such name, by whoever holds the names.
  ///
  /// Where a rule knows a spelling of it, what is added gets that one, whatever the kernel calls it. With
  /// `changed`, only if the index knows that no other spelling is there.
  private func mayKeepAbsence(
    of name: Name, in directory: borrowing NodeTable.Reference, _ validity: Double, changed: Int64? = nil
  ) -> Bool {
    // Once a mark that leaves something out of a backup is taken away, it is to be found.
    guard validity > 0, !isForBackup, let spellings = volume.spellings,
      seals.absence(of: name, in: directory) == .ENOENT, let key = NameKey(name.buffer),
      directory.zone.standardName(of: key) == nil
    else { return false }
    return spellings.noteMissing(key, in: directory.number, changed: changed)
  }

  private func absence(_ validity: Double) -> Entry {
    .absent(validity: min(memory.absenceValidity(validity), Absences.validity))
  }

  /// How many directories of one user wait to be read; the kernel holds each of them meanwhile.
  private static let mostReadings = 16

  /// Has a request wait until its large directories are read, in its user's turn.
  func waitForSpellings(_ request: PostponableRequest) -> Bool {
    guard let spellings = volume.spellings,
      let kept = try? request.keep(for: payer(request.caller), in: volume.budget)
    else { return false }
    let (directories, user) = (request.nodes, payer(request.caller).user)
    for node in directories {
      if let number = nodes.number(of: node), spellings.wait(kept, for: number) { return true }
    }
    let isAdded = volume.slow.add(user, UInt64(number), .names, limit: Self.mostReadings) {
      [volume, nodes] in
      for node in directories {
        guard let directory = try? nodes.reference(to: node),
          !volume.learnSpellings(in: directory.fd, directory.number, for: user)
        else { continue }
        volume.readSpellings(in: directory.fd, directory.number, for: user)
      }
      spellings.giveTurn(to: kept.caller.request)
      kept.serveAgain()
    }
    if !isAdded { kept.refuse(.EBUSY) }
    return true
  }

  /// For how long the kernel may keep a name of a node.
  func validity(_ validity: Double, ofNameOf node: NodeID) -> Double {
    guard validity > 0, volume.spellings != nil else { return validity }
    return nodes.with(node) { $0.knownSpellings == .stored } == false ? 0 : validity
  }

  /// The kernel is about to know a file by another spelling than the stored one.
  private func noteOtherSpelling(of node: NodeID) {
    guard nodes.with(node, { !$0.flags.contains(.isDirectory) && $0.knownSpellings == .stored }) == true
    else { return dropOtherSpellings(of: node) }
    let isDropped = connection.map { $0.dropUnused([node]) && !$0.has(node) } ?? true
    _ = nodes.with(node) { $0.knownSpellings = isDropped ? .several : .severalAndKept }
  }

  /// Lets the kernel forget by which other spellings it was asked for a file, unless they are in use.
  ///
  /// A rename that changes the spelling asks for the second one only if it is not known (``RenameRetries``).
  private func dropOtherSpellings(of node: NodeID) {
    guard nodes.with(node, { $0.knownSpellings != .stored }) == true else { return }
    _ = connection?.dropUnused([node])
  }

  /// An object has lost its name in a directory by another spelling.
  func forgetSpelling(of object: ObjectNumber, in directory: ObjectNumber) {
    guard nodes.with(object, { $1.knownSpellings == .severalAndKept }) == true else { return }
    memory.invalidate(.names, of: directory)
  }
}
