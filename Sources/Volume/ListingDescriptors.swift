// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// Descriptors of directories that are being read now: a few, however many are open.
///
/// Each place is for many directories; whoever comes last has it. The one before is opened again when its
/// next page is read: its offsets are the backing filesystem's own, and mean the same through any descriptor
/// where ``areLasting``.
final class ListingDescriptors: Sendable {
  private struct Kept {
    let view: UInt32
    let handle: HandleID
    let descriptor: SharedFD
  }
  static let limit = 64
  private let places = OrderedMutex(.leaf, [Kept?](repeating: nil, count: limit))

  func find(_ handle: HandleID, of view: UInt32) -> SharedFD? {
    places.withLock { places in
      guard let kept = places[Self.place(handle, view)], kept.view == view, kept.handle == handle else {
        return nil
      }
      return kept.descriptor
    }
  }

  func keep(_ descriptor: SharedFD, for handle: HandleID, of view: UInt32) {
    let kept = Kept(view: view, handle: handle, descriptor: descriptor)
    exchange(Self.place(handle, view)) { _ in .some(kept) }
  }

  func remove(_ handle: HandleID, of view: UInt32) {
    exchange(Self.place(handle, view)) { kept in
      kept?.view == view && kept?.handle == handle ? nil : kept
    }
  }

  /// Gives back what is open for a view, or for all.
  func removeAll(of view: UInt32? = nil) {
    for place in 0..<Self.limit {
      exchange(place) { kept in view == nil || kept?.view == view ? nil : kept }
    }
  }

  /// Whoever loses the place is closed after the lock is released.
  private func exchange(_ place: Int, _ change: (Kept?) -> Kept?) {
    let before = places.withLock { places -> Kept? in
      let before = places[place]
      places[place] = change(before)
      return before
    }
    withExtendedLifetime(before) {}
  }

  private static func place(_ handle: HandleID, _ view: UInt32) -> Int {
    // Handles are numbered from below, views too.
    Int(truncatingIfNeeded: (handle.raw &+ UInt64(view) &* 29) % UInt64(limit))
  }
}

extension ListingDescriptors {
  /// Whether a directory's offsets mean the same when it is opened again, whatever has come and gone
  /// meanwhile.
  ///
  /// Elsewhere (overlayfs lists from memory, in the order of the moment) a directory keeps its descriptor as
  /// long as it is open.
  static func areLasting(on kind: FilesystemKind?) -> Bool {
    guard let kind else { return false }
    // Linux 6.6 gave tmpfs offsets of its own; before, they were counted.
    return [.ext4, .xfs, .btrfs].contains(kind) || kind == .tmpfs && KernelRelease.own >= KernelRelease(6, 6)
  }
}
