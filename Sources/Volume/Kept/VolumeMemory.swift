// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO

/// What all views share and the next worker needs.
struct VolumeMemory {
  let intents: SharedRegion
  let locks: SharedRegion
  let served: SharedRegion
  /// Whether another worker has left it.
  let isKept: Bool

  /// Nil where there will be no other worker, or no memory for it.
  init?(in kept: KeptState?) {
    let locksEnd = Intents.size + KeptLocks.size
    let size = locksEnd + ServedRequests.size
    guard let kept, let found = try? kept.memory(.volumeMemory, name: "insula-volume", sizes: [size]) else {
      return nil
    }
    intents = SharedRegion(found.memory, 0..<Intents.size)
    locks = SharedRegion(found.memory, Intents.size..<locksEnd)
    served = SharedRegion(found.memory, locksEnd..<size)
    isKept = found.isKept
  }
}
