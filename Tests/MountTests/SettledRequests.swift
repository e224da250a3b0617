// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import TestSupport

extension MountedStore {
  /// How many requests there were, when those that the kernel sends on its own have come.
  ///
  /// Asking costs none.
  func settledRequests() throws -> Int {
    var last = -1
    var same = 0
    _ = try eventually {
      let now = try count("requests")
      same = now == last ? same + 1 : 0
      last = now
      usleep(20_000)
      return same == 3
    }
    return last
  }
}
