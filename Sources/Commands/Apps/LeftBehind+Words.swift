// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Store

extension [LeftBehind] {
  /// Names what stays of containers that were removed.
  func tell(in root: String, _ console: Console) {
    for thing in self {
      console.note("\("\(root)/\(thing.path)".sanitized) was not removed: \(thing.reason)")
    }
  }
}
