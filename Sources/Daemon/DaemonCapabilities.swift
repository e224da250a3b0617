// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import LinuxIO

/// What root's daemon keeps of root's power; ARCHITECTURE says what each is for.
enum DaemonCapabilities {
  /// As in `linux/capability.h`.
  private enum Capability: UInt64, CaseIterable {
    case changeOwner = 0
    case passModes = 1
    case readAll = 2
    case actAsOwner = 3
    case keepSetID = 4
    case signal = 5
    case setGroups = 6
    case setUsers = 7
    case setSecureBits = 8
    case setImmutable = 9
    case lookAtProcesses = 19
    case administer = 21
    case useReserves = 24
    case makeDevices = 27
    case lease = 28
    case setFileCapabilities = 31
  }

  /// Gives all others away, for good: from every set of this thread, and of those that it starts.
  ///
  /// The process has one thread. A user's daemon keeps none; usually it has none either.
  static func dropOthers(isRoots: Bool) throws(Errno) {
    let kept = isRoots ? Capability.allCases.reduce(UInt64(0)) { $0 | 1 << $1.rawValue } : 0
    try check(clx_keep_capabilities(kept))
  }
}
