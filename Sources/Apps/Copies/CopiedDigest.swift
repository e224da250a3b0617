// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO
internal import Synchronization

/// Computes the digest of a file while its copy is written.
final class CopiedDigest: CopyFollower {
  private let digest: Mutex<Digest?>
  private let known: KnownDigests

  /// Nil where libcrypto has no memory for it; the copy is read then.
  init?(_ known: KnownDigests) {
    guard let digest = try? Digest(.sha256) else { return nil }
    self.digest = Mutex(digest)
    self.known = known
  }

  func append(_ bytes: UnsafeRawBufferPointer) {
    digest.withLock { $0?.update(bytes) }
  }

  func finish(_ copy: FileStatus) {
    guard let result = digest.withLock({ $0.take()?.finish() }) else { return }
    known.note(result, of: copy)
  }
}
