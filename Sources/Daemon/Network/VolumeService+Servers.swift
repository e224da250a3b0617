// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import Volume

// What the computers of the network share becomes a volume when somebody looks for it: one for everyone, or
// one for each user, who is there by an account of their own.

extension VolumeService {
  /// How many of these a user has at a time, and all together.
  private static let mostOfUser = 8
  private static let most = 192
  /// What the network that the machine has joined has, and its apps while they are looked at.
  static let networkNames = ["Library", "Incoming"]

  /// What is noted of a share for whom it is.
  func record(of share: NetworkShare, for user: UInt32? = nil) -> VolumeRecord {
    VolumeRecord(
      in: .server(share.host), name: Array(share.name.utf8), kind: .server,
      path: Array(share.address.text.utf8), identity: ObjectIdentity(inode: 0, handle: [], created: 0),
      owner: user, isReadOnly: share.isReadOnly, added: Int64(time(nil)), options: .onDemand)
  }

  /// What the registry has; nothing if it can't be read.
  var recordsIfReadable: [VolumeRecord] { ((try? registry(false)?.volumes()) ?? nil) ?? [] }

  func known(_ id: Int64) -> VolumeRecord? { recordsIfReadable.first { $0.id == id } }

  /// Whether it came into being because somebody looked for it.
  func isOfServer(_ record: VolumeRecord) -> Bool {
    record.place.isOfServer && record.options.contains(.onDemand)
  }

  /// The one that somebody is about to have.
  func noted(_ awaited: AwaitedVolume, for user: UInt32) -> VolumeRecord? {
    guard case .server(let host) = awaited.record.place,
      let share = servers.share(awaited.record.name, of: host)
    else { return nil }
    let isRootless = store.description.mode != .system
    let owner = isRootless ? ProcessID.user : share.isForAll ? nil : user
    // Root's programs have more rights than strangers should get to talk to.
    if share.isAnnounced, owner == 0, !isRootless { return nil }
    // No program can be started for it, and there are too many of those to give each some.
    if let owner, (try? Registry.requireAccount(owner)) == nil { return nil }
    let wanted = record(of: share, for: owner)
    return changes.withLock { _ in
      let known = recordsIfReadable
      for same in known where same.treePath == wanted.treePath && same.owner == owner && isOfServer(same) {
        if same.path == wanted.path, same.isReadOnly == wanted.isReadOnly, same.options == wanted.options,
          same.kind == wanted.kind
        {
          // By the computers that are known here, whoever has noted it.
          return (try? notes.add([same])).map { _ in same }
        }
        // The file says something else by now.
        try? registry(false)?.removeVolume(same.id)
        unnote(same)
        forget(same.id)
      }
      guard hasRoom(among: known, for: owner) else { return nil }
      guard let registry = (try? registry(true)) ?? nil else { return nil }
      return try? add(wanted, to: registry)
    }
  }

  // MARK: What the administrator of the machine adds

  /// Sees to it that there is a directory in which something can get a name; all but /Volumes is root's.
  func prepare(
    _ place: VolumeRecord.Place, _ name: String?, for call: ControlCall
  ) throws(ControlFailure) {
    guard place != .volumes else { return }
    guard store.description.mode != .system || call.caller.uid == 0 else {
      throw ControlFailure("only root has volumes outside of /Volumes", .EPERM)
    }
    if place == .users { return try prepareHome(name) }
    // What servers share comes of itself.
    guard place == .network, let name, Self.networkNames.contains(name) else {
      throw ControlFailure("nothing else can be a volume there", .EINVAL)
    }
    changeNetwork { (network, owner) throws(Errno) in
      try StoreLayout.makeDirectory(name, in: network, mode: 0o755, uid: owner.st_uid, gid: owner.st_gid)
    }
  }

  /// Removes the directory that a volume in /Network had its name from.
  func removeDirectory(_ name: [UInt8]) {
    changeNetwork { (network, _) throws(Errno) in
      try name.withName { (name) throws(Errno) in try network.remove(name, directory: true) }
    }
  }

  private func changeNetwork(_ body: (FD, FileStatus) throws(Errno) -> Void) {
    guard let network = try? volume.tree.openDirectory(at: "Network"),
      let owner = try? network.fd.status()
    else { return }
    try? volume.changeNames(in: network.fd) { () throws(Errno) in try body(network.fd, owner) }
  }

  // MARK: Room

  /// Whether there is room for another one; else what nobody uses goes, for who looks next.
  ///
  /// Nobody waits for that: to find out who uses something takes a look at all processes.
  private func hasRoom(among known: [VolumeRecord], for owner: UInt32?) -> Bool {
    let shares = known.filter(isOfServer)
    let own = shares.filter { $0.owner == owner }
    if shares.count < Self.most, owner == nil || own.count < Self.mostOfUser { return true }
    let candidates = owner == nil || own.count < Self.mostOfUser ? shares : own
    guard isMakingRoom.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged else {
      return false
    }
    let thread = try? JoinableThread(name: "volumes") { [self] in
      makeRoom(among: candidates)
      isMakingRoom.store(false, ordering: .relaxed)
    }
    if let thread { thread.detach() } else { isMakingRoom.store(false, ordering: .relaxed) }
    return false
  }

  private func makeRoom(among candidates: [VolumeRecord]) {
    for record in candidates {
      let attached = volume.attached.attached(record.id)
      if let attached, users(of: [attached]).contains(where: { !$0.isEmpty }) { continue }
      return changes.withLock { _ in
        try? registry(false)?.removeVolume(record.id)
        unnote(record)
        volume.detach(record.id)
        if let attached { end(attached, isHurried: false) }
        forget(record.id)
      }
    }
  }
}
