// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// What all views share and the next worker needs.
struct VolumeMemory {
  let intents: SharedRegion
  let locks: SharedRegion
  /// Whether another worker has left it.
  let isKept: Bool

  /// Nil where there will be no other worker, or no memory for it.
  init?(in kept: KeptState?) {
    let size = Intents.size + KeptLocks.size
    guard let kept, let found = try? kept.memory(.volumeMemory, name: "insula-volume", sizes: [size]) else {
      return nil
    }
    intents = SharedRegion(found.memory, 0..<Intents.size)
    locks = SharedRegion(found.memory, Intents.size..<size)
    isKept = found.isKept
  }
}
