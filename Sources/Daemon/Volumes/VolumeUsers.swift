// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Volume

/// Tells who uses volumes.
struct VolumeUsers: Sendable {
  /// Who uses each of some, in words.
  ///
  /// It looks at all processes, so nobody calls it under the lock of changes.
  let look: @Sendable ([AttachedVolume]) -> [[String]]
  /// How many files and directories of one are open, which is known without a look.
  let opens: @Sendable (AttachedVolume) -> Int
}
