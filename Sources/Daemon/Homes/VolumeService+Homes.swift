// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Volume

// Homes outside of the store:
//
//  1. A home is the directory of its name in a directory of this machine, on a disk or on a server, where
//     nobody but us makes names. It is a volume whose place is /Users, with the rules of a home.
//  2. In the store a link has its name (`HomeLink`), which leads nowhere. As long as the home is there, this
//     process finds it at its path in the tree (`RedirectedNames`).
//  3. While it is away its name gives ENOMEDIUM, and nothing is made in its place.
//  4. Whose it is was noted when root added it. What its disk or server says of that must be the same.

extension VolumeService {
  /// Throws unless a home of that name can be made for whoever asks.
  func prepareHome(_ name: String?) throws(ControlFailure) {
    guard let name else { throw ControlFailure("a home has the name of its account", .EINVAL) }
    do throws(StoreError) {
      try Homes(tree: store.tree, path: store.path + "/tree", mode: store.description.mode).requireFree(name)
    } catch {
      throw ControlFailure(error)
    }
  }

  /// Gives a home its name in the store.
  func link(_ record: VolumeRecord) throws(VolumeFailure) {
    try changeLink(of: record) { (name) throws(Errno) in
      if store.liesElsewhere(name) { return }
      try store.link(name, to: String(decoding: record.path, as: UTF8.self))
    }
  }

  /// Throws for a home that is another one's by now than whose root has added; notes whose it is when it is
  /// there for the first time.
  ///
  /// Whoever has its disk or server says there whose it is: everybody's apps, and root's, would be theirs.
  /// Earlier versions have noted the owner whom they found, or nobody: then it is the account's of its name.
  func requireOwner(of attached: AttachedVolume) throws(VolumeFailure) {
    guard let home = attached.home else { return }
    let name = String(decoding: attached.record.name, as: UTF8.self)
    let noted: UInt32?
    do throws(StoreError) { noted = try registry(false)?.owner(ofHome: attached.record.id) } catch {
      throw .store(error)
    }
    guard home.owner == noted ?? Account.named(name)?.uid else {
      throw .homeOfOther(name: name, owner: home.owner, noted: noted)
    }
    guard noted == nil, !isReadOnly else { return }
    do throws(StoreError) { try registry(true)?.note(owner: home.owner, ofHome: attached.record.id) } catch {
      DaemonLog.write("can't note whose home \(name.sanitized) is: \(error)")
    }
  }

  /// Takes its name away again.
  func unlink(_ record: VolumeRecord) throws(VolumeFailure) {
    try changeLink(of: record) { (name) throws(Errno) in try store.unlink(name) }
  }

  private func changeLink(
    of record: VolumeRecord, _ change: (_ name: String) throws(Errno) -> Void
  ) throws(VolumeFailure) {
    guard record.place == .users, !isReadOnly else { return }
    let name = String(decoding: record.name, as: UTF8.self)
    do throws(Errno) {
      let users = try volume.tree.openDirectory("Users")
      try volume.changeNames(in: users.fd) { () throws(Errno) in try change(name) }
    } catch {
      throw error == .EEXIST ? .nameIsTaken : .mount(error)
    }
  }

  /// Ends a deletion that another process has begun, if that was in a directory of this machine.
  ///
  /// On a disk or a server, whoever makes or deletes the next home there does that.
  ///
  /// `held` are the removed containers of the home.
  func endDeletion(of record: VolumeRecord, with held: [String]) {
    guard record.kind == .directory else { return }
    let thread = try? JoinableThread(name: "homes") { [store] in
      guard let directory = try? record.openDirectory(),
        let source = try? store.source(of: record, SharedFD(directory)),
        (try? source.requireOwn(closed: true)) != nil
      else { return }
      source.clearRemainders(with: held)
    }
    thread?.detach()
  }

  /// Takes a home from its place that is to be deleted; nothing of it may be used elsewhere.
  func take(_ home: RedirectedNames.Target, of record: VolumeRecord) throws(ControlFailure)
    -> (TakenHome, ContainerHold?)
  {
    let name = String(decoding: record.name, as: UTF8.self)
    do throws(StoreError) {
      let hold = try leases.takeAll(of: name)
      // The next process ends what is begun here.
      try notes.begin(.doomed, of: record)
      try registry(true)?.setOptions(record.options.union(.doomed), ofVolume: record.id)
      do throws(StoreError) {
        guard hold?.isWhole != false else { throw .leased(path: name, host: nil) }
        return (try store.source(of: record, home.source).take(name), hold)
      } catch {
        try? registry(true)?.setOptions(record.options, ofVolume: record.id)
        try? notes.end(.doomed, of: record)
        throw error
      }
    } catch {
      guard case .leased(_, let host) = error else { throw ControlFailure(error) }
      throw ControlFailure(
        "an app runs in the home of \(name.sanitized) on \(host?.sanitized ?? "another machine"); "
          + "end it there first; if that machine is gone, try again in a minute; nothing was changed", .inUse)
    }
  }
}

extension Store {
  /// The home of a record in what was opened or mounted for it; made, or completed, if it is `new`.
  func home(_ record: VolumeRecord, in source: SharedFD, isNew: Bool) throws(VolumeFailure)
    -> RedirectedNames.Target
  {
    let name = String(decoding: record.name, as: UTF8.self)
    do throws(StoreError) {
      let directory = try self.source(of: record, source)
      try directory.requireOwn(closed: record.kind == .directory)
      if isNew { try directory.make(name) }
      return try directory.target(of: name, in: source)
    } catch {
      throw .store(error)
    }
  }

  fileprivate func source(
    of record: VolumeRecord, _ directory: SharedFD
  ) throws(StoreError) -> HomeSource {
    try HomeSource(
      FD(directory.number), path: String(decoding: record.path, as: UTF8.self).sanitized, for: self)
  }
}
