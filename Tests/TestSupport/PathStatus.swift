// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO

// What tests ask by path, as a shell would.

/// Corresponds to `stat(2)`.
package func stat(_ path: String, _ status: inout FileStatus) -> Int32 {
  var found = Glibc.stat()
  let result = fstatat(AT_FDCWD, path, &found, 0)
  if result == 0 { status = FileStatus(found) }
  return result
}

/// Corresponds to `lstat(2)`.
package func lstat(_ path: String, _ status: inout FileStatus) -> Int32 {
  var found = Glibc.stat()
  let result = fstatat(AT_FDCWD, path, &found, AT_SYMLINK_NOFOLLOW)
  if result == 0 { status = FileStatus(found) }
  return result
}
