// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Fuse
internal import LinuxIO
internal import Policy
package import Store
internal import Synchronization

// Encrypted volumes, whether they are unlocked or not:
//
//  1. While one is unlocked it is a volume like others (`AttachedVolumes`), which a program serves.
//  2. While it is locked its name gives ENOKEY, to those for whom it exists.
//  3. Or who looks into it waits. A lookup of its name must not: the kernel holds the lock of /Volumes
//     meanwhile, which all others need. So the name leads to a place, which is the directory with the
//     encrypted files, and what is asked of that waits in a queue of its own; nobody ever sees what is in it.
//  4. When it is unlocked, those who wait get ESTALE, at which the kernel walks their path once more. So does
//     who still has the place: no file ends up among the encrypted ones in plain. That holds also when it is
//     a place no more, until the directory may be a part of another volume.

/// See the rules above.
package final class LockedVolumes: Sendable {
  package struct Known: Sendable {
    let record: VolumeRecord
    /// To which its name leads if its users wait.
    package let place: AttachedVolume?
  }
  private struct State {
    var known: [Known] = []
    /// The last that were places, and are none any more.
    var former: [AttachedVolume] = []
  }
  private let state = Mutex(State())
  private static let mostFormer = 64
  private let count = Atomic<Int>(0)

  /// What its users wait for.
  package static func engine(_ queue: RequestQueue) -> VolumeEngine {
    VolumeEngine(
      name: "locked", usesHandles: false, keepsOwners: true, isReadOnly: true, passesThrough: false,
      queue: queue, forbidsPrograms: true)
  }

  func add(_ record: VolumeRecord, at place: AttachedVolume?, isUnlocked: Bool) {
    let new = Known(record: record, place: place)
    Self.hold(new, isUnlocked: isUnlocked)
    replace(record.id, by: [new])
  }

  /// It is none any more.
  package func remove(_ id: Int64) { replace(id, by: []) }

  /// Whoever waits at a place that was another's looks again, and finds what there is by then.
  private func replace(_ id: Int64, by new: [Known]) {
    let old = state.withLock { state in
      let old = state.known.filter { $0.record.id == id }
      state.known.removeAll { $0.record.id == id }
      state.known += new
      let places = old.compactMap(\.place)
      state.former.removeAll { former in places.contains { $0.number == former.number } }
      state.former = Array((state.former + places).suffix(Self.mostFormer))
      count.store(state.known.count + state.former.count, ordering: .relaxed)
      return old
    }
    for known in old { Self.hold(known, isUnlocked: true) }
  }

  /// A directory becomes a volume, which may contain what was a place.
  func forgetFormer() {
    guard count.load(ordering: .relaxed) > 0 else { return }
    state.withLock { state in
      state.former = []
      count.store(state.known.count, ordering: .relaxed)
    }
  }

  /// Nobody waits any more.
  package func end() { for known in all { set(known.record.id, isUnlocked: true) } }

  func set(_ id: Int64, isUnlocked: Bool) {
    for known in all where known.record.id == id { Self.hold(known, isUnlocked: isUnlocked) }
  }

  private static func hold(_ known: Known, isUnlocked: Bool) {
    known.place?.engine.queue?.hold(isUnlocked ? .refused(.ESTALE) : .waiting)
  }

  private var all: [Known] { count.load(ordering: .relaxed) == 0 ? [] : state.withLock { $0.known } }

  package var records: [VolumeRecord] { all.map(\.record) }

  /// Whether it is known, and its directory was there.
  package func has(_ id: Int64) -> Bool { all.contains { $0.record.id == id } }

  var places: [AttachedVolume] { all.compactMap(\.place) }

  /// The one of that name, if it exists for a user.
  func find(_ name: some Collection<UInt8>, for user: UInt32, ignoringCase: Bool) -> Known? {
    all.first { known in
      known.record.owner == user
        && (known.record.name.elementsEqual(name)
          || ignoringCase && areOneName(known.record.name, Array(name)))
    }
  }

  /// Where requests wait about the place of one.
  func queue(of object: ObjectNumber) -> RequestQueue? {
    guard count.load(ordering: .relaxed) > 0 else { return nil }
    return state.withLock { state in
      state.known.first { $0.place?.number == object }?.place
        ?? state.former.first { $0.number == object }
    }?.engine.queue
  }
}
