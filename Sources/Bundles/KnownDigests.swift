// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import LinuxIO
internal import Synchronization

/// The SHA-256 digests of files that were computed as the files were written, so that they need not be read
/// again.
///
/// A file is known by what it was like when it was finished. That tells it from every other, and from what it
/// may become later, but not from what someone makes of it in the same moment: so it must lie where nobody
/// else can write.
package final class KnownDigests: Sendable {
  private struct File: Hashable {
    let device: UInt64
    let inode: UInt64
    let stamp: FileStamp

    init(_ status: FileStatus) {
      device = UInt64(status.st_dev)
      inode = UInt64(status.st_ino)
      stamp = FileStamp(status)
    }
  }

  private let digests = Mutex<[File: [UInt8]]>([:])

  package init() {}

  /// Notes the digest of a file that is finished.
  package func note(_ digest: [UInt8], of file: FileStatus) {
    // One that libcrypto has not finished is none; the file will be read.
    guard digest.count == CodeDirectory.digestSize else { return }
    digests.withLock { $0[File(file)] = digest }
  }

  /// The digest of a file that is as it was when that was noted.
  func digest(of file: FileStatus) -> [UInt8]? {
    digests.withLock { $0[File(file)] }
  }
}
