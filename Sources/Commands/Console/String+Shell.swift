// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

extension String {
  /// As one word of a shell.
  var forShell: String {
    let isPlain =
      !isEmpty
      && utf8.allSatisfy {
        (0x30...0x39).contains($0) || (0x41...0x5a).contains($0) || (0x61...0x7a).contains($0)
          || "-_./".utf8.contains($0)
      }
    return isPlain ? self : "'" + replacing(each: "'", by: "'\\''") + "'"
  }
}
