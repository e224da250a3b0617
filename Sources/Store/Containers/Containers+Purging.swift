// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
package import Policy

// What an app can make again is thrown away in two steps. First its directory changes places with an empty
// one, at once and while the app does not run. Then what was in it is removed, which may take its time:
// nobody sees it any more, and the app may run again. What is open stays so, as it does with any file.
//
// What is not the user's, and what a flag protects, comes back to where it was.
//
// Where not all of it has to go, only the files that were used longest ago are moved out of sight.

extension Containers {
  /// What came of the contents of a directory.
  package struct Purge: Sendable {
    package fileprivate(set) var freed = FreedSpace()
    /// What stays, and why; the directory itself if nothing was touched.
    package fileprivate(set) var left: [LeftBehind] = []
  }

  /// Allows the one step that nobody may see half done.
  package typealias WhileClosed = (_ step: () throws(Errno) -> Void) throws(Errno) -> Void

  /// When the app of a container was last begun or ended, in seconds since 1970; nil if that is not known.
  package func lastRun(_ record: ContainerRecord) -> Int64? {
    guard let container = try? tree.fd.openDirectory(at: record.path) else { return nil }
    return metadata.lastRun(of: container.fd)
  }

  /// When something was put into one of its directories last, or taken away; for ever where that can't be
  /// told.
  package func lastChange(of place: PurgePlace, in record: ContainerRecord) -> Int64 {
    guard let status = try? tree.fd.status(at: "\(record.path)/\(place.path)") else { return .max }
    return Int64(status.st_mtim.tv_sec)
  }

  /// What a purge would free; nothing where it would not touch the directory.
  package func measure(
    _ place: PurgePlace, of record: ContainerRecord, pause: Pause = {}
  ) throws(Errno) -> FreedSpace {
    var size = FreedSpace()
    try withDirectory(place, of: record) { (_, _, directory, stays) throws(Errno) in
      guard stays == nil else { return }
      let removal = OwnersRemoval(
        for: record.user, metadata, device: UInt64(try directory.status().st_dev))
      try DeepWalk.through(directory, mostWaiting: StorageUsage.mostWaiting) { (entry) throws(Errno) in
        try pause()
        guard entry.depth > 0 || !CacheDirectoryTag.isName(entry.name),
          let status = try entry.name.withName({ (name) throws(Errno) in
            removal.statusIfRemoved(name, in: entry.directory)
          })
        else { return false }
        size.add(status)
        return status.isDirectory
      }
    }
    return size
  }

  /// Throws away what is in one of an app's directories.
  ///
  /// With `enough` it is only so much that as many bytes become free, if that is less than all.
  package func purge(
    _ place: PurgePlace, of record: ContainerRecord, enough: Int64? = nil, rest: @escaping Pause,
    whileClosed: WhileClosed
  ) throws(Errno) -> Purge {
    let own: Containers?
    do throws(StoreError) { own = try forHome(of: record.path) } catch { throw .EIO }
    return try own?.purgeHere(place, of: record, enough, rest, whileClosed) ?? Purge()
  }

  private func purgeHere(
    _ place: PurgePlace, of record: ContainerRecord, _ enough: Int64?, _ rest: @escaping Pause,
    _ whileClosed: WhileClosed
  ) throws(Errno) -> Purge {
    let contents = PurgedContents(place, of: record)
    return try contents.inTurn(rest) { () throws(Errno) in
      // What somebody was stopped in.
      var purge = try remove(contents, of: record, rest)
      try withDirectory(place, of: record) { (parent, name, directory, stays) throws(Errno) in
        if let stays { return purge.left.append(stays) }
        guard try directory.hasContents() else { return }
        let selection = try enough.flatMap { (bytes) throws(Errno) in
          try PurgeSelection(
            freeing: bytes, of: directory, owner: record.user, isBare: metadata.isBare(_:in:), pause: rest)
        }
        try whileClosed { () throws(Errno) in
          guard let selection else { return try take(contents, directory, name, in: parent) }
          try take(contents, selection, from: directory)
        }
      }
      let now = try remove(contents, of: record, rest)
      purge.freed.add(now.freed)
      purge.left += now.left
      return purge
    }
  }

  /// Removes what others were stopped in, in the store itself or in the home outside of it that a path leads
  /// into; not what somebody is just removing, nor that of users of whom `begins` does not say so.
  package func finishPurges(
    in home: String? = nil, begins: (_ user: UInt32) -> Bool = { _ in true }, rest: @escaping Pause = {}
  ) throws(StoreError) {
    guard let home else { return try finishPurgesHere(begins, rest) }
    try forHome(of: home)?.finishPurgesHere(begins, rest)
  }

  private func finishPurgesHere(
    _ begins: (_ user: UInt32) -> Bool, _ rest: @escaping Pause
  ) throws(StoreError) {
    let listing = try explaining("list", path) { () throws(Errno) in
      try workshop.directory.reopened(O_RDONLY | O_DIRECTORY)
    }
    let names = try explaining("list", path) { () throws(Errno) in try listing.fd.entries().map(\.name) }
    let unfinished = names.filter { PurgedContents.isName($0) }
    guard !unfinished.isEmpty else { return }
    let records = try registry.containers(kind: .data)
    var failure: StoreError?
    // Not always in the same order, where one takes too long.
    for name in unfinished.shuffled() {
      let contents = PurgedContents(name: name)
      let record = records.first { $0.uuid == contents?.container }
      do throws(Errno) {
        let user: UInt32
        if let record { user = record.user } else { user = try workshop.directory.status(of: name).st_uid }
        guard begins(user) else { continue }
        if let contents, let record {
          _ = try contents.inTurn(nil) { () throws(Errno) in try remove(contents, of: record, rest) }
        } else {
          // Its container is gone. What others have in it waits for them.
          let device = UInt64(try workshop.directory.status().st_dev)
          var removal = OwnersRemoval(for: user, metadata, device: device, rest: rest)
          _ = try name.withName { (name) throws(Errno) in try removal.remove(name, in: workshop.directory) }
        }
      } catch .EBUSY {
        continue
      } catch {
        failure = StoreError(error, doing: "clear", path: path)
      }
    }
    if let failure { throw failure }
  }

  // MARK: The directory

  /// Opens the directory of a container, if the container is the one that was made and has such a directory;
  /// with why it has to stay as it is, if there is a reason.
  private func withDirectory(
    _ place: PurgePlace, of record: ContainerRecord,
    _ body: (_ parent: FD, _ name: String, _ directory: FD, LeftBehind?) throws(Errno) -> Void
  ) throws(Errno) {
    do throws(Errno) {
      let container = try tree.fd.openDirectory(at: record.path)
      let top = try container.fd.status()
      guard isTheOne(container.fd, top, record) else { return }
      try container.fd.withParent(of: place.path) { (parent, name) throws(Errno) in
        let found = try parent.child(name)
        let status = try found.fd.status()
        guard status.isDirectory, status.st_dev == top.st_dev else { return }
        let flags = ((try? metadata.security(of: found.fd)) ?? .unreadable).flags
        let stays = reasonToKeep(
          uid: status.st_uid, kind: .directory, flags: flags, whenRemovedFor: record.user
        ).map { LeftBehind(path: "\(record.path)/\(place.path)", reason: $0.words) }
        try body(parent, name, found.fd, stays)
      }
    } catch .ENOENT, .ENOTDIR, .ELOOP {
      // It is gone, or its owner has put something else in its place.
    }
  }

  /// Puts an empty directory in the place of the one with the contents.
  private func take(
    _ contents: PurgedContents, _ directory: FD, _ name: String, in parent: FD
  ) throws(Errno) {
    func exchange(_ make: (FD, Name) throws(Errno) -> Void) throws(Errno) {
      try workshop.exchange(name, in: parent, taking: contents.name, make)
    }
    let old = try directory.status()
    do throws(Errno) {
      try exchange { (workshop, name) throws(Errno) in
        try makeEmpty(like: directory, old, name, in: workshop)
        let made = try workshop.openDirectory(name)
        try Self.makeTag(in: made.fd, Owner(old))
      }
      let taken = try contents.name.withName { (name) throws(Errno) in
        try workshop.directory.status(of: name)
      }
      // Whoever has put something else there meanwhile gets it back.
      guard taken.isSameObject(as: old) else {
        try exchange { (_, _) in }
        throw .EAGAIN
      }
    } catch {
      // This is the empty one. Should the contents have been taken all the same, they stay for the next time.
      removeTag(contents)
      try? workshop.directory.remove(contents.name, directory: true)
      throw error
    }
  }

  /// Moves some of the files out of sight.
  private func take(
    _ contents: PurgedContents, _ selection: PurgeSelection, from directory: FD
  ) throws(Errno) {
    let status = try directory.status()
    let taken = try contents.name.withName { (name) throws(Errno) in
      try makeEmpty(like: directory, status, name, in: workshop.directory)
      return try workshop.directory.openDirectory(name)
    }
    try selection.move(from: directory, to: taken.fd, workshop.visibly)
  }

  /// Makes a directory with everything that another one has beside its contents.
  private func makeEmpty(like other: FD, _ status: FileStatus, _ name: Name, in workshop: FD) throws(Errno) {
    try workshop.makeDirectory(name, mode: 0o700)
    let made = try workshop.child(name)
    try made.fd.changeOwner(uid: status.st_uid, gid: status.st_gid)
    try AttributesCopy().copy(from: other, to: made.fd) { name in
      ["user.", "trusted.insula.", "system.posix_acl_"].contains { name.starts(with: $0.utf8) }
    }
    try made.fd.changeMode(status.permissions)
  }

  // MARK: What was taken

  /// Whoever's it is: one that was not made to its end is still ours.
  private func removeTag(_ contents: PurgedContents) {
    guard let taken = try? workshop.directory.openDirectory(contents.name) else { return }
    try? taken.fd.remove(CacheDirectoryTag.name, directory: false)
  }

  private func remove(
    _ contents: PurgedContents, of record: ContainerRecord, _ rest: @escaping Pause
  ) throws(Errno) -> Purge {
    removeTag(contents)
    var purge = Purge()
    let device = UInt64(try workshop.directory.status().st_dev)
    var removal = OwnersRemoval(for: record.user, metadata, device: device, rest: rest)
    do throws(Errno) {
      let isGone = try contents.name.withName { (name) throws(Errno) in
        try removal.remove(name, in: workshop.directory)
      }
      purge.freed = removal.freed
      if isGone { return purge }
    } catch .ENOENT {
      return purge
    }
    let place = try putBack(contents, of: record)
    purge.left = removal.kept.map { kept in
      let path = kept.path.map { String(decoding: $0, as: UTF8.self) }
      return LeftBehind(path: ([place] + path).joined(separator: "/"), reason: kept.reason.words)
    }
    return purge
  }

  /// Puts what stays of the contents back to where they were; gives where they are now.
  private func putBack(_ contents: PurgedContents, of record: ContainerRecord) throws(Errno) -> String {
    do throws(Errno) {
      let taken = try workshop.directory.openDirectory(contents.name)
      let place = "\(record.path)/\(contents.place.path)"
      let directory = try tree.fd.openDirectory(at: place)
      // Nobody else's directory gets anything.
      guard try directory.fd.status().st_uid == record.user else { throw .ENOTDIR }
      let flags = UInt32(CLX_RENAME_NOREPLACE)
      try taken.fd.inPortions(of: 1000) { (entries) throws(Errno) in
        try workshop.visibly(directory.fd) { () throws(Errno) in
          for (name, _) in entries {
            do throws(Errno) {
              try taken.fd.rename(name, to: directory.fd, name, flags: flags)
            } catch .EEXIST {
              // Its owner has made another one meanwhile.
              try taken.fd.rename(name, to: directory.fd, ".left-\(UUIDText.random())", flags: flags)
            }
          }
        }
      }
      try directory.fd.synchronize(dataOnly: false)
      try workshop.directory.remove(contents.name, directory: true)
      return place
    } catch {
      // There is no such directory any more, or something can't be moved by itself.
      return try contents.name.withName { (name) throws(Errno) in try putBeside(name, record) }
    }
  }
}

extension FD {
  /// Whether a directory has anything in it but its tag.
  fileprivate func hasContents() throws(Errno) -> Bool {
    do throws(Errno) {
      let listing = try reopened(O_RDONLY | O_DIRECTORY)
      return try !listing.fd.entries(atMost: 1).allSatisfy { CacheDirectoryTag.isName($0.name) }
    } catch .EOVERFLOW {
      return true
    }
  }
}
