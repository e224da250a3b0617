// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Store
internal import Volume

/// What a worker has left open, while another one takes over what of it is needed.
final class LeftDescriptors: @unchecked Sendable {
  // Unchecked: the process has one thread.
  private struct Object: Hashable {
    let device: UInt64
    let inode: UInt64

    init(_ status: FileStatus) {
      (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
    }

    init?(_ descriptor: Int32) {
      guard let status = try? FD(descriptor).statusInMemory() else { return nil }
      self.init(status)
    }
  }
  /// Nil stands for what the kernel tells nothing of: a place in /proc of a process that has ended.
  private var left: [Int32: Object?] = [:]
  /// The device that the store lies on.
  private let ownDevice: UInt64?

  /// All that are open now and not noted.
  ///
  /// Those of the registry are closed at once: to close any descriptor of a file ends all locks that
  /// processes with this table have on it, those included that are about to be taken.
  init(_ kept: KeptState, _ store: Store) {
    ownDevice = Object(store.state.raw)?.device
    let noted = Set(kept.all.map(\.fd.raw))
    // This worker may have used its own links already, to keep the store's lease.
    let ownLinks = FD.ownLinks?.raw
    // Nothing can be opened if callers have left no descriptors: theirs are closed first.
    let unknown = FD.allOpen.map(\.raw).filter { descriptor in
      !noted.contains(descriptor) && descriptor != ownLinks && !Self.closeIfCallers(descriptor)
    }
    let names = (try? store.state.entries()) ?? []
    let files = Set(names.compactMap { (try? store.state.status(of: $0.name)).map(Object.init) })
    for descriptor in unknown {
      let object = Object(descriptor)
      if let object, files.contains(object), (try? FD(descriptor).statusInMemory())?.isRegular == true {
        _ = close(descriptor)
      } else {
        left.updateValue(object, forKey: descriptor)
      }
    }
  }

  /// Closes what nobody has taken over.
  ///
  /// To close a file asks its filesystem. One that somebody has mounted may never answer, so other threads
  /// close such files, one for each of these filesystems.
  func close(besides used: [Int32]) {
    for descriptor in used { left.removeValue(forKey: descriptor) }
    // A number that has been free meanwhile may be somebody else's by now.
    // The first three are nobody's but the keeper's, even if that is not noted any more.
    var others: [UInt64: [Int32]] = [:]
    for (descriptor, object) in left where descriptor > STDERR_FILENO && Object(descriptor) == object {
      // Whoever waits at its other end learns of it also while a worker that was killed still has it.
      _ = shutdown(descriptor, Int32(SHUT_RDWR))
      if let object, object.device != ownDevice,
        (try? FD(descriptor).statusInMemory())?.isRegular == true
      {
        others[object.device, default: []].append(descriptor)
      } else {
        _ = close(descriptor)
      }
    }
    left = [:]
    for descriptors in others.values {
      // Without a thread they stay open: better than to wait here.
      let thread = try? JoinableThread(name: "closing") {
        for descriptor in descriptors { _ = Glibc.close(descriptor) }
      }
      thread?.detach()
    }
  }

  private static func closeIfCallers(_ descriptor: Int32) -> Bool {
    guard descriptor > STDERR_FILENO, LocalSocket.isConnection(FD(descriptor)) else { return false }
    _ = shutdown(descriptor, Int32(SHUT_RDWR))
    return Glibc.close(descriptor) == 0
  }

  private func close(_ descriptor: Int32) -> Int32 { Glibc.close(descriptor) }
}
