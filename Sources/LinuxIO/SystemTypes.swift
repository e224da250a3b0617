// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import CLinux
package import Glibc

// The C structures that other modules speak of, under names of ours. Which C module such a type is found in
// depends on what was compiled before; so this is the only file that lets other modules depend on one.

/// What `statx(2)` tells of an object.
package typealias ExtendedStatus = clx_statx

/// What `fstatvfs(3)` tells of a filesystem.
package typealias FilesystemStatus = statvfs

/// A point in time.
package typealias FileTime = timespec

/// A type and the twelve permission bits.
package typealias FileMode = UInt32
