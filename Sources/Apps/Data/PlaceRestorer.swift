// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
internal import Policy
package import Store

/// Brings back what is in the directories of a tree that stay where they are: each thing in them is made
/// beside, and takes the place of what has its name in one step.
///
/// What is there and not in the backup stays. Both sides are reached by descriptors and single names, so no
/// link in either leads anywhere.
package final class PlaceRestorer {
  /// What is done about something in the backup.
  package enum Step: Sendable {
    /// What is in a directory is brought back, one by one, if there is such a directory.
    case merge
    /// The same, and the directory keeps its own mode, ACL and times: it is a standard one.
    case fill
    /// It is brought back as a whole; but what is in a directory one by one, if that may not be renamed.
    case replace
    /// It is brought back if nothing has its name: every home begins with the same.
    case keep
    case skip
  }

  /// Something that was not brought back, and why; the rest was.
  package struct Failure: Sendable {
    package let path: String
    package let reason: String
  }

  package var count: TreeCopy.Count { copy.count }
  package var omissions: [DataCopy.Omission] { copy.omissions + unfinished }
  package private(set) var failures: [Failure] = []
  /// How many things there were already.
  package private(set) var replaced = 0

  private let access: SecurityAccess
  private let step: ([[UInt8]]) -> Step
  private let isMeant: ([[UInt8]], FD) -> Bool
  private let keepsOwners: Bool
  /// One for all, so that a file has its several names again wherever they are.
  private let copy: DataCopy
  private var unfinished: [DataCopy.Omission] = []
  /// How the names of things begin that are being made.
  package static let prefix = ".insula-restore-"
  private static let depthLimit = 250

  /// `step` is asked about each thing, by the names that lead to it; `isMeant` whether a directory that is
  /// there is still the one that is to be filled.
  package init(
    _ access: SecurityAccess, keepingOwners keepsOwners: Bool, progress: @escaping (TreeCopy.Count) -> Void,
    isMeant: @escaping ([[UInt8]], FD) -> Bool = { _, _ in true }, step: @escaping ([[UInt8]]) -> Step
  ) {
    self.access = access
    self.step = step
    self.isMeant = isMeant
    self.keepsOwners = keepsOwners
    var rules = DataCopy.Rules(from: .package, to: access)
    rules.keepsOwners = keepsOwners
    rules.leavesTopOpen = true
    rules.progress = progress
    copy = DataCopy(rules)
  }

  /// Brings back what is in a directory of the backup.
  ///
  /// A rehearsal only counts what would be replaced.
  package func restore(_ source: FD, to target: FD, isRehearsal: Bool) {
    restore(source, to: target, at: [], isRehearsal, finishing: false)
    do throws(TreeCopyFailure) { try copy.finish() } catch {
      failures.append(.init(path: error.path, reason: "\(error)"))
    }
  }

  private func restore(_ source: FD, to target: FD, at place: [[UInt8]], _ isRehearsal: Bool, finishing: Bool)
  {
    let entries: [(name: [UInt8], type: UInt8)]
    let bench = RestoreBench(in: target, access, isShared: keepsOwners)
    do throws(Errno) {
      for left in isRehearsal ? [] : try bench.clear() {
        fail(
          place + [left],
          "a restore that was stopped may have left it, and others may have something in it; "
            + "remove it when nobody needs it")
      }
      entries = try source.entries()
    } catch {
      return fail(place, "it can't be listed (\(error.message))")
    }
    for entry in entries.inOrder(by: { $0.name.lexicographicallyPrecedes($1.name) }) {
      let path = place + [entry.name]
      let step = step(path)
      let isInBoth = source.hasDirectory(entry.name) && target.hasDirectory(entry.name)
      // As a whole, what is to be skipped in it would come along.
      let isMissing = source.hasDirectory(entry.name) && !target.has(entry.name)
      switch step {
      case .skip: continue
      case .keep where target.has(entry.name): continue
      case .merge where isInBoth, .fill where isInBoth:
        merge(path, from: source, to: target, isRehearsal, finishing: step == .merge)
      case .merge where isMissing, .fill where isMissing:
        if !isRehearsal { fill(path, from: source, in: target) }
      case .merge, .fill, .replace, .keep:
        if isRehearsal {
          if target.has(entry.name) { replaced += 1 }
        } else {
          replace(path, from: source, in: target, bench)
        }
      }
    }
    if let left = bench.close() {
      fail(
        place + [Array(left.utf8)], "it has what others have put into what was replaced; give it back to them"
      )
    }
    if finishing, !isRehearsal { finish(target, as: source, place) }
  }

  private func merge(
    _ path: [[UInt8]], from source: FD, to target: FD, _ isRehearsal: Bool, finishing: Bool
  ) {
    guard let name = path.last else { return }
    do throws(Errno) {
      let below = try source.openDirectory(name)
      let there = try target.openDirectory(name)
      guard isMeant(path, there.fd) else {
        return fail(path, "it is another one by now, maybe another app's")
      }
      // Whose the directory above is can give its name to what another user keeps from them.
      guard try there.fd.status().st_uid == owner(of: below.fd.status()) else {
        return fail(path, "it is another user's by now")
      }
      restore(below.fd, to: there.fd, at: path, isRehearsal, finishing: finishing)
    } catch {
      fail(path, "it can't be opened (\(error.message))")
    }
  }

  /// Makes a directory that is missing, and brings back what is to come of what is in it.
  private func fill(_ path: [[UInt8]], from source: FD, in target: FD) {
    guard let name = path.last else { return }
    do throws(Errno) {
      try target.makeDirectory(name, mode: 0o700)
      if keepsOwners {
        let status = try source.status(of: name)
        let made = try target.openDirectory(name)
        // Something else may have got the name.
        guard try made.fd.status().st_uid == ProcessID.user, try made.fd.entries().isEmpty else {
          throw .ESTALE
        }
        try made.fd.changeOwner(uid: status.st_uid, gid: status.st_gid)
      }
    } catch {
      return fail(path, "it can't be made (\(error.message))")
    }
    merge(path, from: source, to: target, false, finishing: true)
  }

  private func replace(_ path: [[UInt8]], from source: FD, in target: FD, _ bench: RestoreBench) {
    do throws(Errno) {
      try bench.with { (directory, temporary) throws(Errno) in
        let owner = owner(of: try source.status(of: path.last ?? []))
        var held: SharedFD?
        guard replace(path, from: source, in: target, by: temporary, in: directory, &held) else {
          try? bench.discard(temporary, in: directory, held: held)
          return
        }
        for kept in bench.remove(temporary, in: directory, held: held, of: owner) {
          fail(
            path + kept.path,
            "what it has replaced is not its owner's or can't be removed, and is kept as '\(kept.name)' "
              + "beside it")
        }
      }
    } catch {
      fail(path, "nothing can be made beside it (\(error.message))")
    }
  }

  /// False if nothing has got the name; then what was made is to be removed, otherwise what had it before.
  ///
  /// `held` is that, if it is a directory.
  private func replace(
    _ path: [[UInt8]], from source: FD, in target: FD, by temporary: String, in directory: FD,
    _ held: inout SharedFD?
  ) -> Bool {
    guard let name = path.last else { return false }
    do throws(TreeCopyFailure) {
      defer { held = copy.made }
      try copy.copy(
        name, from: source, to: Array(temporary.utf8), in: directory, place: path.dropLast().map(\.text))
    } catch {
      fail(path, "\(error)")
      return false
    }
    // Nothing is made of a pipe.
    guard directory.has(temporary) else { return false }
    do throws(Errno) {
      let before = target.hasDirectory(name) ? SharedFD(try target.child(name)) : nil
      try put(temporary, from: directory, as: name, in: target)
      held = before
    } catch {
      // A directory that must stay is filled.
      let mustStay = error == .EPERM || error == .EACCES
      if mustStay, path.count < Self.depthLimit, source.hasDirectory(name), target.hasDirectory(name) {
        merge(path, from: source, to: target, false, finishing: true)
      } else {
        fail(path, mustStay ? "what is there is protected by its ACL, its flags or its owner" : error.message)
      }
      return false
    }
    do throws(Errno) {
      try secure()
    } catch {
      fail(path, "it is there, but its ACL or flags can't be set (\(error.message))")
    }
    return true
  }

  /// Gives it its name, which what was there may have had before.
  private func put(
    _ temporary: String, from directory: FD, as name: [UInt8], in target: FD
  ) throws(Errno) {
    if let top = copy.top {
      // Somebody else may have taken the name for something of theirs.
      let made = try top.copy.use { (fd) throws(Errno) in try fd.status() }
      guard try directory.status(of: temporary).isSameObject(as: made) else { throw .ESTALE }
    }
    let exists = target.has(name)
    try directory.rename(
      Array(temporary.utf8), to: target, name,
      flags: UInt32(exists ? CLX_RENAME_EXCHANGE : CLX_RENAME_NOREPLACE))
    if exists { replaced += 1 }
  }

  /// Sets what would have stood against the rename: on what was made, whatever has its name by now.
  private func secure() throws(Errno) {
    guard let top = copy.top else { return }
    try top.copy.use { (object) throws(Errno) in
      if let acl = top.acl { try access.setACL(acl, on: object) }
      if !top.flags.isEmpty { try access.setFlags(top.flags, on: object) }
    }
  }

  /// Gives a directory that was there what stands beside its contents, as far as its owner may.
  private func finish(_ target: FD, as source: FD, _ place: [[UInt8]]) {
    do throws(Errno) {
      let status = try source.status()
      try AttributesCopy().copy(from: source, to: target, where: KeptAttributes.contains)
      let mode = try ClosedMode.mode(of: source, status)
      if try target.status().permissions != mode { try target.changeMode(mode) }
      let acl = try SecurityAccess.package.acl(of: source)
      if try access.acl(of: target) != acl { try access.setACL(acl, on: target) }
      try target.changeTimes(access: .set(status.st_atim), modification: .set(status.st_mtim))
    } catch {
      unfinished.append(
        .init(path: place.text, reason: "its mode, ACL or times stay as they were (\(error.message))"))
    }
  }

  /// Whose something is once it is brought back.
  private func owner(of status: FileStatus) -> UInt32 { keepsOwners ? status.st_uid : ProcessID.user }

  private func fail(_ place: [[UInt8]], _ reason: String) {
    failures.append(Failure(path: place.text, reason: reason))
  }
}

extension FD {
  fileprivate func hasDirectory(_ name: [UInt8]) -> Bool { (try? status(of: name))?.isDirectory == true }
}

extension [UInt8] {
  fileprivate var text: String { String(decoding: self, as: UTF8.self) }
}

extension [[UInt8]] {
  fileprivate var text: String { isEmpty ? "the top" : map(\.text).joined(separator: "/") }
}

extension TreeCopy.Count {
  /// Both together.
  package func adding(_ other: Self) -> Self {
    var sum = self
    sum.directories += other.directories
    sum.files += other.files
    sum.links += other.links
    sum.bytes = bytes.adding(clamped: other.bytes)
    return sum
  }
}
