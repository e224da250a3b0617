// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO

/// How what outlives a worker is laid out; only a program that has the same layout can take over.
package enum KeptLayout {
  /// To be counted up when anything in `Kept` directories, in a node, in what is kept of an app that runs, or
  /// in the meaning of these changes.
  static let version: UInt32 = 12

  /// The version, and the sizes of all records: nobody forgets to count those.
  package static let current: UInt64 = {
    let sizes =
      [
        MemoryLayout<Node>.stride, MemoryLayout<NameCell>.stride, Intents.size, KeptLocks.size,
        KeptRecords<OpenFile.Record>.size(1 << 16), KeptRecords<OpenDirectory.Record>.size(1 << 16),
        MemoryLayout<KeptSession>.stride, ServedRequests.size,
      ]
    return sizes.reduce(UInt64(version)) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 } << 32 | UInt64(version)
  }()
}
