// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

/// A path without links in it; nil if it leads nowhere.
package func realPath(_ path: String) -> String? {
  guard let resolved = realpath(path, nil) else { return nil }
  defer { free(resolved) }
  return String(validatingCString: resolved)
}
