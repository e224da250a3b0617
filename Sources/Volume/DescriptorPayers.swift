// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// Who pays for the descriptors that are kept until their nodes go.
///
/// Each unlink of a file that the kernel knows comes here twice, so places are found without hashing.
struct DescriptorPayers {
  private var payers: [Payer] = []
  private var free: [UInt32] = []

  mutating func add(_ payer: Payer) -> UInt32 {
    guard let place = free.popLast() else {
      payers.append(payer)
      return UInt32(truncatingIfNeeded: payers.count - 1)
    }
    payers[Int(place)] = payer
    return place
  }

  mutating func remove(_ place: UInt32) -> Payer {
    free.append(place)
    return payers[Int(place)]
  }
}
