// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import Volume

/// Lets directories outside the store be volumes of its tree, for those who ask.
final class VolumeService: Sendable {
  /// Volumes of one user, and of all together.
  private static let mostOfUser = 16
  private static let most = 256
  /// How long the mount waits for volumes that were added before: the way to one may lead through a
  /// filesystem that does not answer.
  private static let patienceMilliseconds = 2000

  private let store: Store
  private let volume: Volume
  private let attaching: VolumeAttaching
  private let isReadOnly: Bool
  private let log: EventRecorder
  private let registry: GrantService.RegistrySource
  /// Changes are made one after the other; nothing in them waits for a path that others can make wait.
  private let changes = Mutex(())
  /// Why volumes are not there.
  private let missing = Mutex<[Int64: String]>([:])

  /// Attaches those that were added before.
  init(
    _ store: Store, _ volume: Volume, isReadOnly: Bool, log: @escaping EventRecorder,
    registry: @escaping GrantService.RegistrySource
  ) throws(StoreError) {
    self.store = store
    self.volume = volume
    self.isReadOnly = isReadOnly
    self.log = log
    self.registry = registry
    attaching = VolumeAttaching(store: store, volume: volume)
    attach(try registry(false)?.volumes() ?? [])
  }

  /// Each user's on a thread of its own; what takes too long comes later, or never.
  private func attach(_ records: [VolumeRecord]) {
    let owners = Dictionary(grouping: records, by: \.owner)
    let left = Condition(owners.count)
    for (_, own) in owners {
      let thread = try? JoinableThread(name: "volumes") { [self] in
        for record in own {
          guard let why = attach(record) else { continue }
          let name = String(decoding: record.name, as: UTF8.self)
          DaemonLog.write("the volume \(name.sanitized) is not there: \(why)")
        }
        left.change { $0 -= 1 }
      }
      if let thread { thread.detach() } else { left.change { $0 -= 1 } }
    }
    _ = left.wait(milliseconds: Self.patienceMilliseconds) { $0 == 0 }
  }

  /// Why that was not possible.
  private func attach(_ record: VolumeRecord) -> String? {
    var why: String?
    do throws(VolumeFailure) {
      let directory = try attaching.open(record)
      _ = try attaching.kind(of: directory.fd)
      try attaching.checkOverlap(directory.fd, for: record.owner ?? 0)
      try attaching.attach(SharedFD(directory), as: record)
    } catch {
      why = error.message
    }
    missing.withLock { $0[record.id] = why }
    return why
  }

  // MARK: Requests

  /// `users` tells who uses a volume.
  func answer(
    _ request: VolumeRequest, _ call: ControlCall, users: @escaping @Sendable (AttachedVolume) -> [String]
  ) -> ControlAnswer {
    let user = call.caller.uid
    guard store.description.mode == .system || user == ProcessID.user else {
      return .refusal("only the owner of this store can have volumes in it")
    }
    return .job(.volumes) { [self] _ in
      ControlReply { () throws(ControlFailure) in try reply(to: request, call, users) }
    }
  }

  private func reply(
    to request: VolumeRequest, _ call: ControlCall, _ users: (AttachedVolume) -> [String]
  ) throws(ControlFailure) -> ControlReply {
    let user = call.caller.uid
    defer { volume.attached.forget { !users($0).isEmpty } }
    switch request {
    case .list: return .volumes(try list(for: user))
    case .add(let name, let isReadOnly):
      return .volumes([
        try add(call.descriptor, name, isReadOnly: isReadOnly, by: call.callerIdentity())
      ])
    case .eject(let name, let force):
      return .volumes([try eject(name, by: user) { force ? [] : users($0) }])
    }
  }

  /// Those that a user may know of; those that are not there are looked for again.
  private func list(for user: UInt32) throws(ControlFailure) -> [VolumeDescription] {
    let attached = Set(volume.attached.all.map(\.record.id))
    return try records(for: user).map { record in
      let why = attached.contains(record.id) ? nil : attach(record)
      return VolumeDescription(record, filesystem: why == nil ? kind(of: record) : nil, missing: why)
    }
  }

  private func kind(of record: VolumeRecord) -> String? {
    guard let directory = try? attaching.open(record) else { return nil }
    return try? directory.fd.filesystemKind().name
  }

  private func add(
    _ passed: SharedFD?, _ name: String?, isReadOnly: Bool, by caller: CallerIdentity
  ) throws(ControlFailure) -> VolumeDescription {
    let user = caller.uid
    guard !self.isReadOnly else { throw ControlFailure(StoreError.mountedReadOnly) }
    guard let passed else { throw ControlFailure("no directory has come along", .EINVAL) }
    let (path, identity) = try examine(passed)
    let text = String(decoding: path, as: UTF8.self).sanitized
    do throws(VolumeFailure) {
      let found = VolumeRecord(
        name: [], path: path, identity: identity, owner: nil, isReadOnly: isReadOnly, added: 0)
      // Opened once more by its path: so it will be found again. Who was once handed a descriptor makes no
      // way of it that they don't have.
      try attaching.checkWay(to: found, for: caller)
      let directory = try attaching.open(found)
      let kind = try attaching.kind(of: directory.fd)
      try attaching.checkOverlap(directory.fd, for: user)
      let shared = SharedFD(directory)
      return try changes.withLock { _ throws(VolumeFailure) in
        let record = try note(found, name, by: user)
        do throws(VolumeFailure) { try attaching.attach(shared, as: record) } catch {
          try? registry(false)?.removeVolume(record.id)
          throw error
        }
        tell(.volumeAdded, record, by: user)
        return VolumeDescription(record, filesystem: kind, missing: nil)
      }
    } catch {
      throw ControlFailure(error, path: text)
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

  /// Has the registry know a directory that a user adds.
  private func note(
    _ found: VolumeRecord, _ wanted: String?, by user: UInt32
  ) throws(VolumeFailure) -> VolumeRecord {
    let owner = store.description.mode == .system && user == 0 ? nil : user
    let known: [VolumeRecord]
    do throws(StoreError) { known = try registry(false)?.volumes() ?? [] } catch { throw .store(error) }
    guard known.count < Self.most, known.count(where: { $0.owner == owner }) < Self.mostOfUser else {
      throw .tooMany
    }
    let record = VolumeRecord(
      name: try Self.name(wanted, found.path, among: known), path: found.path, identity: found.identity,
      owner: owner, isReadOnly: found.isReadOnly, added: Int64(time(nil)))
    do throws(StoreError) {
      guard let registry = try registry(true) else { throw StoreError.mountedReadOnly }
      return try registry.add(record)
    } catch {
      throw .store(error)
    }
  }

  private func eject(
    _ name: String, by user: UInt32, users: (AttachedVolume) -> [String]
  ) throws(ControlFailure) -> VolumeDescription {
    guard !isReadOnly else { throw ControlFailure(StoreError.mountedReadOnly) }
    return try changes.withLock { _ throws(ControlFailure) in
      guard let known = try records(for: user).first(where: { $0.name.elementsEqual(name.utf8) }) else {
        throw ControlFailure("there is no volume \(name.sanitized); see 'insula volume list'", .ENOENT)
      }
      guard known.owner == user || user == 0 else {
        throw ControlFailure("\(name.sanitized) was added by root, and only root can eject it", .EPERM)
      }
      let attached = volume.attached.all.first { $0.record.id == known.id }
      let using = attached.map(users) ?? []
      guard using.isEmpty else {
        let most = 5
        let more = using.count > most ? " and \(using.count - most) more" : ""
        throw ControlFailure(
          "\(name.sanitized) is in use: " + using.prefix(most).joined(separator: "; ").sanitized + more,
          .inUse)
      }
      do throws(StoreError) { try registry(false)?.removeVolume(known.id) } catch {
        throw ControlFailure(error)
      }
      volume.detach(known.id)
      tell(.volumeEjected, known, by: user)
      return VolumeDescription(
        known, filesystem: nil, missing: missing.withLock { $0.removeValue(forKey: known.id) })
    }
  }

  private func records(for user: UInt32) throws(ControlFailure) -> [VolumeRecord] {
    do throws(StoreError) {
      return try registry(false)?.volumes().filter { $0.owner == nil || $0.owner == user || user == 0 } ?? []
    } catch {
      throw ControlFailure(error)
    }
  }

  private func tell(_ event: LogEntry.Event, _ record: VolumeRecord, by user: UInt32) {
    let path = String(decoding: record.path, as: UTF8.self)
    var entry = LogEntry(now: event, user: record.owner, by: user, detail: path)
    entry.setPath(Array("Volumes/".utf8) + record.name)
    log([entry])
  }

  // MARK: Names

  /// The name that is asked for, or the directory's own with a number if that is taken.
  ///
  /// Names that differ by case are one.
  private static func name(
    _ wanted: String?, _ path: [UInt8], among known: [VolumeRecord]
  ) throws(VolumeFailure) -> [UInt8] {
    func isTaken(_ name: [UInt8]) -> Bool { known.contains { areOneName($0.name, name) } }
    if let wanted {
      let name = Array(wanted.utf8)
      guard isName(name) else { throw .name }
      guard !isTaken(name) else { throw .nameIsTaken }
      return name
    }
    let own = path.split(separator: UInt8(ascii: "/")).last.map { Array($0) } ?? []
    guard isName(own) else { throw .name }
    for number in 0...most {
      let name = number == 0 ? own : own + Array(" \(number)".utf8)
      if isName(name), !isTaken(name) { return name }
    }
    throw .nameIsTaken
  }

  private static func isName(_ name: [UInt8]) -> Bool {
    (1...255).contains(name.count) && name.first != UInt8(ascii: ".")
      && !name.contains { $0 == UInt8(ascii: "/") || $0 < 0x20 || $0 == 0x7f }
  }
}
