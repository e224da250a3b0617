// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import TestSupport

extension MountedStore {
  /// How many requests there were, when those that the kernel sends on its own have come.
  ///
  /// Asking costs none.
  func settledRequests() throws -> Int {
    var last = -1
    var same = 0
    for _ in 0..<200 {
      let now = try count("requests")
      same = now == last ? same + 1 : 0
      if same == 3 { return now }
      last = now
    }
    return last
  }
}
