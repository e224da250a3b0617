// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import Volume

// Volumes leave the tree, and homes may be deleted with that.

extension VolumeService {
  /// How long who ejects a volume, or unmounts the tree, waits for uploads.
  static let uploadSeconds: UInt8 = 20

  func eject(
    _ name: String, isForced: Bool, deletesHome: Bool, by user: UInt32,
    _ users: VolumeUsers, _ ejected: (_ place: [[UInt8]]) -> Void
  ) throws(ControlFailure) -> VolumeDescription {
    guard !isReadOnly else { throw ControlFailure(StoreError.mountedReadOnly) }
    let known = try findOwn(name, for: user)
    var left: String?
    var opens = 0
    if let attached = volume.attached.attached(known.id) {
      if !isForced { try requireUnused(attached, users) }
      left = notUploaded(on: attached, after: isForced ? 0 : Self.uploadSeconds)
      if let left, !isForced {
        throw ControlFailure("not ejected yet; '--force' does it now. \(left)", .inUse)
      }
      // Uploads may have taken long.
      if !isForced { opens = try requireUnused(attached, users) }
      // What is open on it is of no use to anybody afterwards.
      if isForced, attached.engine.queue != nil { forgetContents(onDevices: [attached.device]) }
    }
    let (described, taken, held, gone) = try changes.withLock { _ throws(ControlFailure) in
      let known = try findOwn(name, for: user)
      let attached = volume.attached.attached(known.id)
      if !isForced, let attached { try requireUnused(attached, since: opens, users) }
      var taken: (tree: TakenHome, hold: ContainerHold?)?
      var held: [String] = []
      if deletesHome {
        guard let home = attached?.home else {
          throw ControlFailure("\(name.sanitized) is no home that is there", .EINVAL)
        }
        taken = try take(home, of: known)
      }
      // A record without a link is mended at the next mount, a link without a record never.
      do throws(VolumeFailure) { try unlink(known) } catch {
        throw ControlFailure(error, path: name.sanitized)
      }
      do throws(StoreError) {
        let registry = try registry(false)
        if taken != nil, let registry {
          held = try registry.forgetHome(String(decoding: known.name, as: UTF8.self))
          try AppShapes(store: store, volume: volume).note(registry)
          try registry.removeVolume(known.id)
        } else if known.place == .users {
          try registry?.ejectHome(known.id)
        } else {
          try registry?.removeVolume(known.id)
        }
      } catch {
        throw ControlFailure(error)
      }
      unnote(known)
      volume.detach(known.id)
      let described = VolumeDescription(known, nil, missing: left ?? reason(of: known.id), isReadOnly: false)
      forget(known.id)
      if known.place == .network { removeDirectory(known.name) }
      tell(.volumeEjected, known, by: user)
      return (described, taken, held, attached)
    }
    // Others do not wait for what may take long; and its disk is there until that is done.
    defer { if let gone { end(gone, isHurried: isForced) } }
    // A home comes back as what it was. Where somebody may still use it, nothing of it stays granted.
    if known.place != .users || deletesHome || isForced { ejected(known.treePath) }
    awaitAll()
    // Until nothing is left of it, nobody begins to use it.
    defer { taken?.hold?.end() }
    do throws(StoreError) { try taken?.tree.remove(with: held) } catch { throw ControlFailure(error) }
    return described
  }

  /// Takes the volumes of a user out of the tree that are noted no more, since nothing is that counts for the
  /// user's number.
  func removeForgotten(of user: UInt32) {
    let gone = changes.withLock { _ -> [AttachedVolume] in
      // Without knowing what is noted, nothing goes.
      guard let registry = try? registry(false), let noted = try? registry.volumes() else { return [] }
      let ids = Set(noted.map(\.id))
      func isForgotten(_ record: VolumeRecord) -> Bool { record.owner == user && !ids.contains(record.id) }
      let attached = volume.attached.all.filter { isForgotten($0.record) }
      let locked = volume.attached.locked.records.filter { record in
        isForgotten(record) && !attached.contains { $0.record.id == record.id }
      }
      for record in attached.map(\.record) + locked {
        volume.detach(record.id)
        forget(record.id)
        tell(.volumeEjected, record, by: 0)
      }
      return attached
    }
    awaitAll()
    for attached in gone { end(attached, isHurried: true) }
    letGo()
  }

  private func findOwn(_ name: String, for user: UInt32) throws(ControlFailure) -> VolumeRecord {
    let known = try find(name, for: user)
    guard known.owner == user || user == 0 else {
      throw ControlFailure("\(name.sanitized) was added by root, and only root can eject it", .EPERM)
    }
    return known
  }
}
