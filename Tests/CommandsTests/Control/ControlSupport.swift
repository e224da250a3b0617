// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO

extension ControlReply {
  /// Whether nothing failed.
  var isGood: Bool { if case .failure = self { false } else { true } }

  /// Why something failed, as a number.
  var errno: Errno? {
    if case .failure(let failure) = self, case .errno(let errno) = failure.cause { errno } else { nil }
  }
}
