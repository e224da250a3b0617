// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

extension KeptState.Kind {
  /// Whether a descriptor is what it is noted as, which may be damaged: nobody is to speak to something else,
  /// or to close it.
  ///
  /// `memory` is a file in memory, as the others are.
  func fits(_ fd: FD, besides memory: FD) -> Bool {
    if self == .keepers { return fd.raw >= 0 }
    // It may be on a server that does not answer.
    guard fd.raw > STDERR_FILENO, let status = try? fd.statusInMemory() else { return false }
    return switch self {
    // Its number is the same everywhere.
    case .connection: status.type == S_IFCHR && UInt64(status.st_rdev) == clx_makedev(10, 229)
    case .volumeRoot: status.isDirectory
    case .viewMemory, .volumeMemory, .appLaunch, .backup, .files, .volumeEngine, .owedConsents,
      .owedRevocations:
      status.isRegular && (try? memory.status().st_dev) == status.st_dev
    case .appProcess: Self.processDevice == UInt64(status.st_dev)
    case .listener, .remover, .appListener, .volumeLife: status.type == S_IFSOCK
    case .storeLock: status.isRegular
    case .keepers: true
    }
  }

  /// What the service manager calls such descriptors; other versions look for the same names.
  var name: String {
    switch self {
    case .connection: "connection"
    case .viewMemory: "viewMemory"
    case .appProcess: "appProcess"
    case .appLaunch: "appLaunch"
    case .volumeMemory: "volumeMemory"
    case .listener: "listener"
    case .keepers: "keepers"
    case .storeLock: "storeLock"
    case .remover: "remover"
    case .appListener: "appListener"
    case .backup: "backup"
    case .files: "files"
    case .volumeRoot: "volumeRoot"
    case .volumeLife: "volumeLife"
    case .volumeEngine: "volumeEngine"
    case .owedConsents: "owedConsents"
    case .owedRevocations: "owedRevocations"
    }
  }

  /// The filesystem that all such descriptors are on.
  private static let processDevice: UInt64? = {
    guard let process = try? ProcessID.open(ProcessID.own) else { return nil }
    return (try? process.fd.status()).map { UInt64($0.st_dev) }
  }()
}
