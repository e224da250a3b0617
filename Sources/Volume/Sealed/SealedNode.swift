// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import CLinux
internal import Glibc
internal import LinuxIO

/// What is known of an object that a seal speaks of, beside its node.
struct SealedNode {
  let seal: ServedSeal
  let position: SealedPosition
  /// What the last look at its bytes has said, and what the file was like then.
  var verdict: (isGood: Bool, stamp: FileStamp)?

  init(_ seal: ServedSeal, _ position: SealedPosition) {
    self.seal = seal
    self.position = position
  }
}
