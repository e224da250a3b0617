// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Synchronization

/// Which directories are on the way to something that is mounted in the tree.
///
/// Known of are the mounts in the daemon's own mount namespace. They are asked for where a lookup is refused,
/// and read again only when they have changed, by a thread of their own: the ways lead through directories of
/// users, who may hold one. Who asks waits a second for that; then what was known before counts.
final class MountsInTree: Sendable {
  private struct State: ~Copyable {
    var watch: MountWatch?
    var directories: Set<ObjectNumber> = []
    /// Whether they have changed since they were last read.
    var isOld = false
    /// Since when they are being read.
    var reading: UInt64?
  }
  private let state = OrderedMutex(.mounts, State())
  private let haveMoved = Atomic<Bool>(false)
  /// How often they were read.
  private let read = Condition(0)

  private static let patienceMilliseconds = 1000

  /// The way to what is mounted may be another one from here on.
  func directoryMoved() { haveMoved.store(true, ordering: .relaxed) }

  /// Whether something is mounted below a directory of the tree, as the mount of this connection shows it.
  func lie(below directory: ObjectNumber, of connection: any Connection, in volume: Volume) -> Bool {
    let begins = state.withLock { state -> Bool in
      let hasMoved = haveMoved.exchange(false, ordering: .relaxed)
      // Before they are read, so that no change is missed.
      let isFirst = state.watch == nil
      if isFirst { state.watch = try? MountWatch() }
      let hasChanged = state.watch?.hasChanged ?? true
      if isFirst || hasChanged || hasMoved { state.isOld = true }
      guard state.isOld, state.reading == nil else { return false }
      state.reading = monotonicNanoseconds()
      return true
    }
    if begins {
      let device = connection.device
      let work = { @Sendable [self] in readAll(of: device, in: volume) }
      if let thread = try? JoinableThread(name: "mounts", work) { thread.detach() } else { work() }
    }
    if let began = state.withLock({ $0.reading }) {
      let left = millisecondsLeft(until: began &+ UInt64(Self.patienceMilliseconds) &* 1_000_000)
      _ = read.wait(milliseconds: left) { _ in state.withLock { $0.reading == nil } }
    }
    return state.withLock { $0.directories.contains(directory) }
  }

  private func readAll(of device: UInt32?, in volume: Volume) {
    while state.withLock({ $0.isOld }) {
      state.withLock { $0.isOld = false }
      let directories = Self.ways(to: device, in: volume)
      read.change { reads in
        reads += 1
        state.withLock { state in
          state.directories = directories
          if !state.isOld { state.reading = nil }
        }
      }
    }
  }

  private static func ways(to device: UInt32?, in volume: Volume) -> Set<ObjectNumber> {
    guard let device, let table = try? MountTable.current() else { return [] }
    let number = DeviceNumber(major: 0, minor: device)
    let ours = Dictionary(
      table.entries.filter { $0.device == number }.map { ($0.id, $0) }, uniquingKeysWith: { $1 })
    var directories: Set<ObjectNumber> = []
    for mount in table.entries {
      guard let place = ours[mount.parent], mount.id != mount.parent,
        mount.mountPoint.utf8.starts(with: place.mountPoint.utf8)
      else { continue }
      let inside = mount.mountPoint.utf8.dropFirst(place.mountPoint.utf8.count)
      let slash = UInt8(ascii: "/")
      note(place.root.utf8.split(separator: slash) + inside.split(separator: slash), volume, &directories)
    }
    return directories
  }

  /// Notes each directory on a way, but not the last name, which is the mount's own.
  private static func note(
    _ names: [Substring.UTF8View], _ volume: Volume, _ directories: inout Set<ObjectNumber>
  ) {
    guard var directory = try? volume.tree.child(Name.here) else { return }
    for name in names {
      guard let status = try? directory.fd.status() else { return }
      directories.insert(ObjectNumber(status))
      let next = try? Array(name).withName { (name) throws(Errno) in
        guard name.isComponent else { throw .EINVAL }
        return try directory.fd.child(name)
      }
      guard let next = next ?? other(Array(name), in: directory.fd, volume) else { return }
      directory = next
    }
  }

  /// What a kernel calls by another spelling than the stored one.
  private static func other(_ name: [UInt8], in directory: FD, _ volume: Volume) -> OwnedFD? {
    guard volume.settings.ignoresCase else { return nil }
    let found = name.withUnsafeBufferPointer { buffer -> [UInt8]? in
      guard let key = NameKey(buffer) else { return nil }
      return (try? volume.searchedSpelling(of: key, in: directory))?.found
    }
    return found.flatMap { try? directory.child($0) }
  }
}
