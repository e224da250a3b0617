// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import Volume

// What is asked of volumes.

extension VolumeService {
  /// Volumes of one user, and of all together.
  private static let mostOfUser = 16
  private static let most = 256

  /// `users` tells who uses a volume.
  func answer(
    _ request: VolumeRequest, _ call: ControlCall, _ users: VolumeUsers,
    ejected: @escaping @Sendable (_ place: [[UInt8]]) -> Void
  ) -> ControlAnswer {
    let user = call.caller.uid
    let isLock = if case .lock = request { true } else { false }
    guard store.description.mode == .system || user == ProcessID.user || isLock && user == 0 else {
      return .refusal("only the owner of this store can have volumes in it")
    }
    let locks = engines.keyHolders.locks
    // What is to be locked, or only looked at, waits for nothing that is being added.
    let queue: ControlQueue = isLock ? .endings : request == .list ? .queries : .volumes
    return .job(queue) { [self] _ in
      ControlReply { () throws(ControlFailure) in try reply(to: request, call, locks, users, ejected) }
    }
  }

  private func reply(
    to request: VolumeRequest, _ call: ControlCall, _ locks: [Int64: Int],
    _ users: VolumeUsers, _ ejected: @escaping @Sendable (_ place: [[UInt8]]) -> Void
  ) throws(ControlFailure) -> ControlReply {
    let user = call.caller.uid
    switch request {
    case .list: return .volumes(try list(for: user))
    case .network:
      servers.lookNow()
      return .network(
        NetworkDescription(
          shares: servers.shares.map(NetworkDescription.Share.init), problems: servers.problems))
    case .add(let wish): return .volumes([try add(wish, call)])
    case .eject(let name, let owner, let force, let deletes):
      defer { letGo() }
      return .volumes([
        try eject(name, of: owner, isForced: force, deletesHome: deletes, by: user, users, ejected)
      ])
    case .lock(let name, let owner, let force, let waits):
      return .volumes(try lock(name, of: owner, isForced: force, waits: waits, by: user, users))
    case .unlock(let name, let owner): return .volumes([try unlock(name, of: owner, call, after: locks)])
    case .confirm(let name, let seen): return .volumes([try confirm(name, seen: seen, by: user)])
    }
  }

  /// Those that a user may know of; directories that are not there are looked for again.
  private func list(for user: UInt32) throws(ControlFailure) -> [VolumeDescription] {
    let found = try records(for: user)
    attach(notes.known(found).filter { $0.kind == .directory && engine(of: $0) == nil })
    return found.map { describe($0) }
  }

  func engine(of record: VolumeRecord) -> VolumeEngine? {
    volume.attached.attached(record.id)?.engine
  }

  func describe(_ record: VolumeRecord) -> VolumeDescription {
    let engine = engine(of: record)
    let isConfirmed = engine != nil || isOfServer(record) || notes.has(record)
    note(record.id, isConfirmed: isConfirmed)
    let missing = isConfirmed ? reason(of: record.id) : unconfirmed(record).message
    var described = VolumeDescription(
      record, engine, missing: engine == nil ? missing : nil, isReadOnly: isReadOnly)
    described.isConfirmed = isConfirmed
    return described
  }

  // MARK: Adding

  private func add(_ wish: VolumeWish, _ call: ControlCall) throws(ControlFailure) -> VolumeDescription {
    guard !isReadOnly else { throw ControlFailure(StoreError.mountedReadOnly) }
    try prepare(wish.place ?? .volumes, wish.name, for: call)
    var options: VolumeRecord.Options = []
    if wish.ignoresOwners { options.insert(.ignoresOwners) }
    if wish.isOnDemand { options.insert(.onDemand) }
    switch wish.source {
    case .directory: return try addDirectory(wish, [], call)
    case .encrypted(let waits, let size):
      return try addDirectory(wish, waits ? [.encrypted, .waits] : .encrypted, size: size, call)
    case .disk(let path):
      // The kernel trusts what is on a disk: so only root has it mount any.
      let isRoots = store.description.mode == .system && call.caller.uid == 0
      if !isRoots, wish.engine == .kernel {
        throw ControlFailure("only root can have the kernel mount a disk, and in the machine's store", .EPERM)
      }
      if !isRoots || wish.engine == .program { options.insert(.byProgram) }
      return try add(.disk, path, options, wish, by: call.caller.uid)
    case .server(let url):
      guard let address = ServerAddress(url) else {
        throw ControlFailure("\(url.sanitized) is no address of a server that is known", .EINVAL)
      }
      return try add(.server, address.text, options, wish, by: call.caller.uid)
    }
  }

  private func addDirectory(
    _ wish: VolumeWish, _ options: VolumeRecord.Options, size: Int64? = nil, _ call: ControlCall
  ) throws(ControlFailure) -> VolumeDescription {
    let caller = call.callerIdentity()
    let isHome = wish.place == .users
    guard let passed = call.descriptor else { throw ControlFailure("no directory has come along", .EINVAL) }
    let (path, identity) = try examine(passed)
    let text = String(decoding: path, as: UTF8.self).sanitized
    do throws(VolumeFailure) {
      if wish.ignoresOwners { throw .ownersOfDirectory }
      var found = VolumeRecord(
        in: wish.place ?? .volumes, name: isHome ? Array((wish.name ?? "").utf8) : [], path: path,
        identity: identity, owner: nil, isReadOnly: wish.isReadOnly, added: 0, options: options)
      // Opened once more by its path: so it will be found again. Who was once handed a descriptor makes no
      // way of it that they don't have.
      let directory = SharedFD(try found.openDirectory())
      _ = try attaching.kind(of: FD(directory.number))
      try attaching.check(found, FD(directory.number), asOf: caller)
      // What would overlap is not even noted.
      if found.isEncrypted {
        try EncryptedDirectory.check(FD(directory.number))
        try checkPlace(of: found, directory, for: caller.uid)
        if let size { try makeDisk(size, in: directory, for: caller) }
        if try EncryptedDisk(in: directory, of: caller.uid) != nil { found.options.insert(.hasDisk) }
      } else {
        if isHome { try attaching.checkSource(found, FD(directory.number), for: caller.uid) }
        let prepared = try attaching.prepare(directory, as: found, isNew: isHome)
        try attaching.checkOverlap(prepared, for: caller.uid)
      }
      do throws(VolumeFailure) {
        return describe(try add(directory, as: found, wish.name, by: caller.uid))
      } catch {
        if size != nil { EncryptedDisk.remove(from: directory) }
        throw error
      }
    } catch {
      throw ControlFailure(error, path: text)
    }
  }

  private func add(
    _ directory: SharedFD, as found: VolumeRecord, _ wanted: String?, by user: UInt32
  ) throws(VolumeFailure) -> VolumeRecord {
    try changes.withLock { _ throws(VolumeFailure) in
      let record = try note(found, wanted, by: user, isUnlessThere: found.isEncrypted)
      do throws(VolumeFailure) {
        if record.isEncrypted {
          try hold(record, directory)
        } else {
          try add(try attaching.prepare(directory, as: record))
        }
      } catch {
        try? registry(false)?.removeVolume(record.id)
        unnote(record)
        throw error
      }
      tell(.volumeAdded, record, by: user)
      return record
    }
  }

  /// Makes the disk of an encrypted volume, which is not noted yet.
  private func makeDisk(
    _ size: Int64, in directory: SharedFD, for caller: CallerIdentity
  ) throws(VolumeFailure) {
    guard store.description.mode == .system else {
      throw .configuration(
        "only volumes of the machine's store have a size, since root's kernel mounts their disk")
    }
    guard EncryptedDisk.sizes.contains(size) else {
      throw .configuration("no volume can have that size; choose one from 16M to 1024T")
    }
    let record = VolumeRecord(
      in: .volumes, name: [], path: [], identity: ObjectIdentity(inode: 0, handle: [], created: 0),
      owner: caller.uid, isReadOnly: false, added: 0, options: .encrypted)
    try EncryptedDisk.make(in: directory, for: caller.uid) { (image) throws(VolumeFailure) in
      try engines.mountDisk(of: record, image, newSize: size)
    }
  }

  private func examine(_ passed: SharedFD) throws(ControlFailure) -> ([UInt8], ObjectIdentity) {
    do throws(Errno) {
      return try passed.use { (directory) throws(Errno) in
        (try directory.ownPath(), ObjectIdentity(try directory.status(), of: directory))
      }
    } catch {
      throw ControlFailure("can't examine the directory: \(error.message)", error)
    }
  }

  /// Adds a disk or a server, which is mounted first, so that only what can be mounted is kept.
  private func add(
    _ kind: VolumeRecord.Kind, _ path: String, _ options: VolumeRecord.Options, _ wish: VolumeWish,
    by user: UInt32
  ) throws(ControlFailure) -> VolumeDescription {
    do throws(VolumeFailure) {
      let found = VolumeRecord(
        in: wish.place ?? .volumes, name: wish.place == .users ? Array((wish.name ?? "").utf8) : [],
        kind: kind, path: Array(path.utf8),
        identity: ObjectIdentity(inode: 0, handle: [], created: 0), owner: nil, isReadOnly: wish.isReadOnly,
        added: 0, options: options.union(.unfinished))
      let noted = try changes.withLock { _ throws(VolumeFailure) in
        try note(found, wish.name, by: user, isUnlessThere: true)
      }
      var finished = noted
      finished.options.remove(.unfinished)
      do throws(VolumeFailure) {
        let mounted = try engines.mount(finished, isNew: noted.place == .users)
        finished = finished.known(by: mounted.identity)
        try changes.withLock { [finished] _ throws(VolumeFailure) in
          try complete(finished)
          try add(mounted.volume)
        }
      } catch {
        try? registry(false)?.removeVolume(noted.id)
        unnote(finished)
        forget(noted.id)
        if noted.place == .network { removeDirectory(noted.name) }
        awaitAll()
        throw error
      }
      tell(.volumeAdded, finished, by: user)
      return describe(finished)
    } catch {
      throw ControlFailure(error, path: path.sanitized)
    }
  }

  /// Notes by which number the disk is known.
  private func complete(_ record: VolumeRecord) throws(VolumeFailure) {
    do throws(StoreError) {
      let registry = try registry(true)
      try registry?.setIdentity(record.identity, ofVolume: record.id)
      // Whoever finds it unfinished finds these by what the registry says, and takes them away.
      try notes.add([record, record.isNow(.unfinished)])
      try registry?.setOptions(record.options, ofVolume: record.id)
      try notes.end(.unfinished, of: record)
    } catch {
      throw .store(error)
    }
  }

  /// Has the registry know something that a user adds.
  private func note(
    _ found: VolumeRecord, _ wanted: String?, by user: UInt32, isUnlessThere: Bool = false
  ) throws(VolumeFailure) -> VolumeRecord {
    let isForAll = store.description.mode == .system && user == 0 && !found.isEncrypted
    let owner = isForAll ? nil : user
    // An account has as many by whichever of its numbers.
    let account = owner.map { Payer(user: $0).user }
    let isSameAccount = { (other: UInt32?) in other.map { Payer(user: $0).user } == account }
    let known: [VolumeRecord]
    do throws(StoreError) { known = try registry(false)?.volumes() ?? [] } catch { throw .store(error) }
    // What is there because somebody has looked for it has limits of its own.
    let added = known.filter { !isOfServer($0) }
    // One that was ejected counts for as long as it is used: each costs time.
    let own = added.count { isSameAccount($0.owner) } + volume.attached.left(where: isSameAccount)
    guard added.count < Self.most, owner == nil || own < Self.mostOfUser else {
      throw .tooMany
    }
    let image = Self.image(of: found)
    let isSame = { (other: VolumeRecord) in
      if other.path != found.path, Self.image(of: other) == image { return true }
      guard other.path == found.path, other.isEncrypted == found.isEncrypted,
        other.owner == owner || found.isEncrypted
      else { return false }
      // What two programs wrote to, one disk would not survive.
      if found.options.contains(.byProgram) { return true }
      return other.place == found.place && (found.place != .users || other.name == found.name)
    }
    if isUnlessThere, let other = known.first(where: isSame) {
      throw .overlaps(other.owner == owner ? other.title : nil)
    }
    let record = VolumeRecord(
      in: found.place,
      name: try VolumeName.choose(
        wanted, for: found, among: known.filter { $0.place == found.place }, most: Self.most,
        isRoots: isForAll || user == 0),
      kind: found.kind,
      path: found.path, identity: found.identity, owner: owner, isReadOnly: found.isReadOnly,
      added: Int64(time(nil)), options: found.options)
    do throws(StoreError) {
      guard let registry = try registry(true) else { throw StoreError.mountedReadOnly }
      if record.options.contains(.unfinished) { return try registry.add(record) }
      return try add(record, to: registry)
    } catch {
      throw .store(error)
    }
  }

  /// The file that a disk is made of, and where in it the disk begins.
  ///
  /// As a file and as a loop device it would be mounted twice, and not survive that.
  private static func image(of record: VolumeRecord) -> [UInt8] {
    let device = "/dev/loop"
    guard record.kind == .disk, record.path.starts(with: Array(device.utf8)) else { return record.path }
    let number = String(decoding: record.path.dropFirst(device.utf8.count), as: UTF8.self)
    guard let number = UInt32(number), let file = LoopDevice.Image.path(of: "loop\(number)"),
      let offset = FD.text(of: "/sys/block/loop\(number)/loop/offset", limit: 32)
    else { return record.path }
    return Array((offset == "0\n" ? file : "\(file) \(offset)").utf8)
  }

  // MARK: Finding

  /// The volume of that name that a user means: of the owner who is named, or else the user's own or one for
  /// all.
  ///
  /// Nobody means another user's by its name alone, not even root: users choose these names.
  func find(
    _ name: String, of owner: UInt32? = nil, for user: UInt32
  ) throws(ControlFailure) -> VolumeRecord {
    guard owner == nil || owner == user || user == 0 else {
      throw ControlFailure("only root may do this with a volume of another user", .EPERM)
    }
    func meant(_ records: [VolumeRecord]) -> [VolumeRecord] {
      VolumeRecord.meant(
        by: name, among: records, for: owner ?? user, ignoringCase: volume.settings.ignoresCase)
    }
    let all = try records(for: user)
    let found = meant(all.filter { owner == nil ? $0.isVisible(to: user) : $0.owner == owner })
    guard let known = found.first else {
      let others = owner == nil ? meant(all).prefix(5).map(\.titleAndOwner) : []
      let hint =
        others.isEmpty
        ? "; see 'insula volume list'"
        : " that is yours or for all users, but \(others.joined(separator: ", ")); '--user NAME' means "
          + "that user's"
      throw ControlFailure("there is no volume \(name.sanitized)\(hint)", .ENOENT)
    }
    guard found.count == 1 else {
      throw ControlFailure(
        "\(name.sanitized) is the name of several volumes: "
          + found.prefix(5).map(\.titleAndOwner).joined(separator: ", ")
          + "; do this as the user whose volume is meant", .EINVAL)
    }
    return known
  }

  /// Gives how many files and directories of it were open when nobody used it yet.
  ///
  /// Not under the lock of changes: processes are looked at, some of which can make that wait.
  @discardableResult
  func requireUnused(_ attached: AttachedVolume, _ users: VolumeUsers) throws(ControlFailure) -> Int {
    let opens = users.opens(attached)
    let using = users.look([attached]).flatMap(\.self)
    guard using.isEmpty else { throw inUse(attached, by: using) }
    return opens
  }

  /// The same for who has looked before, by what is known without looking.
  func requireUnused(
    _ attached: AttachedVolume, since opens: Int, _ users: VolumeUsers
  ) throws(ControlFailure) {
    guard users.opens(attached) <= opens else {
      throw inUse(attached, by: ["a program has just opened files of it"])
    }
  }

  private func inUse(_ attached: AttachedVolume, by using: [String]) -> ControlFailure {
    let most = 5
    let more = using.count > most ? " and \(using.count - most) more" : ""
    let name = String(decoding: attached.record.name, as: UTF8.self)
    return ControlFailure(
      "\(name.sanitized) is in use: " + using.prefix(most).joined(separator: "; ").sanitized + more, .inUse)
  }

  func records(for user: UInt32) throws(ControlFailure) -> [VolumeRecord] {
    do throws(StoreError) {
      return try registry(false)?.volumes().filter { $0.owner == nil || $0.owner == user || user == 0 } ?? []
    } catch {
      throw ControlFailure(error)
    }
  }
}
