// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

/// What this machine is called, with its domain if the name has one; nil if it has no name.
///
/// Corresponds to `gethostname(2)`; nothing is asked of the network.
package func hostName() -> String? {
  // The kernel keeps no longer ones (HOST_NAME_MAX is 64).
  withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
    guard let name = buffer.baseAddress, gethostname(name, buffer.count - 1) == 0 else { return nil }
    buffer[buffer.count - 1] = 0
    let text = String(cString: name)
    return text.isEmpty ? nil : text
  }
}
