// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import JSON
internal import LinuxIO
internal import Store
internal import Synchronization
internal import Volume

/// Has disks and servers mounted that are volumes, and notices when what serves them ends.
///
/// What is served outlives the worker: the next one finds its descriptors (`KeptState`).
final class VolumeEngines: Sendable {
  /// What the next worker is to know.
  fileprivate struct Known: Codable {
    let name: String
    let usesHandles: Bool
    let keepsAttributes: Bool
    /// Earlier versions say nothing of it.
    let keepsUserAttributes: Bool?
    let keepsOwners: Bool
    let isReadOnly: Bool
    let passesThrough: Bool
    let mayHang: Bool
    /// Earlier versions say nothing of it either, and can't be asked.
    let uploadsLater: Bool?
  }

  private let store: Store
  private let volume: Volume
  private let helper: MountHelper
  private let kept: KeptState?
  private let lives: KeptLives
  /// What is kept for the next worker, for as long as it is there.
  private let memories = Mutex<[Int64: SharedMemory]>([:])
  let keyHolders: KeyHolders

  init(_ store: Store, _ volume: Volume, _ helper: MountHelper, _ kept: KeptState?) {
    (self.store, self.volume, self.helper, self.kept) = (store, volume, helper, kept)
    lives = KeptLives(kept)
    keyHolders = KeyHolders(lives)
  }

  private static let patienceMilliseconds = 10_000

  /// What a disk is known by: the number of its format.
  struct Attached {
    let volume: AttachedVolume
    let identity: [UInt8]
  }

  /// Has what a record says mounted, which takes as long as a server needs; it is no part of the tree yet.
  ///
  /// `source` is what is served if the record does not say that, and `handed` what its program needs besides;
  /// `begins` may refuse to start that. A `new` home is made there.
  func mount(
    _ record: VolumeRecord, _ source: EngineOrder.Source? = nil, handed: [SharedFD] = [],
    isNew: Bool = false,
    begins: (_ life: SharedFD) throws(Errno) -> Void = { (_) throws(Errno) in }
  ) throws(VolumeFailure) -> Attached {
    let served: ServedEngine
    do throws(EngineFailure) {
      let source = if let source { source } else { try Self.source(of: record) }
      served = try helper.serve(order(for: record, source), handed: handed, begins: begins)
    } catch {
      throw .engine(error)
    }
    let isByKernel = Self.isByKernel(record)
    let mayHang = !isByKernel || record.kind == .server
    let attributes = try attributes(of: served)
    let known = Known(
      name: served.engine, usesHandles: !mayHang && Self.hasHandles(served.root),
      // ntfs-3g takes ours and shows them to nobody; where everyone is the owner, nobody's would hold anyway.
      keepsAttributes: attributes.security && (served.keepsOwners || record.isEncrypted),
      keepsUserAttributes: attributes.users,
      keepsOwners: served.keepsOwners && !record.options.contains(.ignoresOwners),
      isReadOnly: served.isReadOnly || record.isReadOnly, passesThrough: !mayHang, mayHang: mayHang,
      uploadsLater: served.uploadsLater)
    do throws(VolumeFailure) {
      if record.place == .users, !known.keepsOwners || !known.keepsAttributes || known.isReadOnly {
        throw .unfitForHomes(served.engine)
      }
      let attached = try attach(record, known, served.root, served.life, isNew: isNew)
      return Attached(volume: attached, identity: served.identity)
    } catch {
      Self.end(served.life, isHurried: false)
      throw error
    }
  }

  /// Has the disk mounted on which a volume's encrypted files are, for as long as anybody uses it.
  ///
  /// A new one is formatted.
  func mountDisk(
    of record: VolumeRecord, _ image: SharedFD, newSize: Int64? = nil
  ) throws(VolumeFailure) -> ServedEngine {
    do throws(EngineFailure) {
      return try helper.serve(order(for: record, .ownDisk(newSize: newSize)), handed: [image])
    } catch {
      throw .engine(error)
    }
  }

  private static func source(of record: VolumeRecord) throws(EngineFailure) -> EngineOrder.Source {
    let path = String(decoding: record.path, as: UTF8.self)
    guard record.kind == .server else {
      return isByKernel(record) ? .kernel(disk: path) : .program(disk: path)
    }
    guard let address = ServerAddress(path) else {
      throw EngineFailure(.EINVAL, "the address is none that this program knows")
    }
    return .server(address)
  }

  private func order(
    for record: VolumeRecord, _ source: EngineOrder.Source
  ) -> EngineOrder {
    let user = record.owner ?? ProcessID.user
    return EngineOrder(
      source: source, isReadOnly: record.isReadOnly, user: user,
      group: Account.numbered(user)?.gid ?? user,
      number: UInt32(truncatingIfNeeded: record.id),
      identity: record.isEncrypted ? [] : record.identity.handle)
  }

  /// Whether the kernel serves it.
  private static func isByKernel(_ record: VolumeRecord) -> Bool {
    if record.kind == .disk { return !record.options.contains(.byProgram) }
    return ServerAddress(String(decoding: record.path, as: UTF8.self))?.isByProgram == false
  }

  private static func hasHandles(_ root: SharedFD) -> Bool {
    let found = try? root.use { (root) throws(Errno) in
      let directory = try root.open(Name.here, O_RDONLY | O_DIRECTORY)
      return Volume.canUseHandles(directory.fd)
    }
    return found == true
  }

  /// Whether ACLs and flags, and attributes of users, can be kept there.
  ///
  /// Programs say in several ways that they know nothing of attributes.
  private func attributes(
    of served: ServedEngine
  ) throws(VolumeFailure) -> (security: Bool, users: Bool) {
    let found = JoinableThread.result(name: "volumes", milliseconds: Self.patienceMilliseconds) { [volume] in
      let answer = try? served.root.use { (root) throws(Errno) in
        let directory = try root.open(Name.here, O_RDONLY | O_DIRECTORY)
        return (
          security: (try? volume.metadata.keepsSecurity(on: directory.fd)) == true,
          users: Self.keepsUserAttributes(directory.fd)
        )
      }
      return answer ?? (security: false, users: false)
    }
    if let found { return found }
    Self.end(served.life, isHurried: true)
    throw .hangs
  }

  private static func keepsUserAttributes(_ directory: FD) -> Bool {
    do throws(Errno) {
      try "user.insula.probe".withName { (name) throws(Errno) in
        _ = try directory.attribute(name.bytes, into: UnsafeMutableRawBufferPointer(start: nil, count: 0))
      }
      return true
    } catch {
      return error == .ENODATA
    }
  }

  private func attach(
    _ record: VolumeRecord, _ known: Known, _ root: SharedFD, _ life: SharedFD, isNew: Bool
  ) throws(VolumeFailure) -> AttachedVolume {
    if record.isEncrypted { DaemonProcess.leaveNoImage() }
    let home = record.place == .users ? try store.home(record, in: root, isNew: isNew) : nil
    // A server that keeps attributes of root's trusts root, and would refuse others to read what the tree's
    // decisions depend on.
    let asCallers = record.kind == .server && volume.settings.isSystem && !known.keepsAttributes
    let queue =
      known.mayHang
      ? RequestQueue(budget: volume.budget, isForOne: record.owner != nil, asCallers: asCallers) : nil
    let isExact = Self.ofExactNames.contains(known.name)
    let engine = VolumeEngine(
      name: known.name, life: life, usesHandles: known.usesHandles,
      keepsAttributes: known.keepsAttributes, keepsUserAttributes: known.keepsUserAttributes ?? true,
      keepsOwners: known.keepsOwners,
      isReadOnly: known.isReadOnly, passesThrough: known.passesThrough,
      isAlone: record.kind == .disk && (isExact || known.name == "mount.exfat-fuse"),
      hasExactNames: isExact, queue: queue,
      uploadsLater: known.uploadsLater ?? false)
    let attached: AttachedVolume
    do throws(Errno) {
      attached = try AttachedVolume(record, engine, of: nil, root: root, home: home, in: volume.tree)
    } catch {
      throw .mount(error)
    }
    keep(known, root, life, for: record.id)
    return attached
  }

  /// Programs on whose disks each spelling is a name of its own, or no name comes.
  ///
  /// What the kernel serves may be mounted elsewhere too.
  private static let ofExactNames = ["ntfs-3g", "fuse2fs", "fuseiso", "squashfuse"]

  // MARK: Over the end of a worker

  private func keep(_ known: Known, _ root: SharedFD, _ life: SharedFD, for id: Int64) {
    guard let kept, let bytes = try? JSONText.encode(known) else { return }
    let number = UInt32(truncatingIfNeeded: id)
    if kept.descriptor(.volumeRoot, view: number)?.raw == root.number { return }
    guard let memory = try? kept.keep(bytes, as: .volumeEngine, view: number) else { return }
    memories.withLock { $0[id] = memory }
    kept.keep(FD(root.number), as: .volumeRoot, view: number)
    lives.keep(life, of: id)
    // The keeper looks after it from here on (`Keeper`), and has to be woken for that.
    if kept.isServing, let keeper = try? ProcessID.open(getppid()) { try? keeper.fd.send(signal: SIGCHLD) }
  }

  /// What another worker has left of one.
  struct Left: Sendable {
    fileprivate let known: Known
    fileprivate let root: SharedFD
    fileprivate let life: SharedFD
  }

  /// Nil if it has left nothing that can be used.
  func left(_ record: VolumeRecord) -> Left? {
    guard let kept, let life = lives.take(record.id) else { return nil }
    if record.isEncrypted { keyHolders.add(life, of: record.id) }
    let number = UInt32(truncatingIfNeeded: record.id)
    guard let root = kept.descriptor(.volumeRoot, view: number),
      let (bytes, memory) = kept.data(.volumeEngine, view: number),
      let known = try? JSONText.decode(Known.self, from: bytes)
    else {
      drop(record.id, life)
      return nil
    }
    memories.withLock { $0[record.id] = memory }
    return Left(known: known, root: SharedFD(OwnedFD(owning: root.raw)), life: life)
  }

  /// Nil if it can't be served on.
  func attach(_ record: VolumeRecord, _ left: Left) -> AttachedVolume? {
    let attached = try? attach(record, left.known, left.root, left.life, isNew: false)
    if attached == nil { drop(record.id, left.life) }
    return attached
  }

  /// It was being started or ended.
  private func drop(_ id: Int64, _ life: SharedFD) {
    forget(id)
    Self.end(life, isHurried: true)
  }

  /// It is no volume any more; what serves it may not have ended yet.
  func forget(_ id: Int64, isEnding: Bool = false) {
    let number = UInt32(truncatingIfNeeded: id)
    for kind in [KeptState.Kind.volumeRoot, .volumeEngine] { kept?.forget(kind, view: number) }
    if !isEnding { lives.forget(id) }
    memories.withLock { _ = $0.removeValue(forKey: id) }
  }

  // MARK: Ending

  /// Has the program end that serves a volume: at once, or when it has brought its data away.
  func end(_ attached: AttachedVolume, isHurried: Bool) {
    if let life = attached.engine.life { Self.end(life, isHurried: isHurried) }
  }

  static func end(_ life: SharedFD, isHurried: Bool) {
    let socket = FD(life.number)
    if isHurried { _ = try? LocalSocket.send([1], to: socket) }
    _ = shutdown(socket.raw, Int32(SHUT_WR))
    withExtendedLifetime(life) {}
  }
}
