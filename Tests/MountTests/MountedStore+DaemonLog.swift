// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport

extension MountedStore {
  /// What the daemon has noted about itself, as that a program that serves a volume has ended.
  var daemonLog: String? { FD.text(of: store + "/state/daemon.log", limit: 1 << 20) }
}
