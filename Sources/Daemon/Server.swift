// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
package import Store

// STUB: stands in for the server until that is merged; the interface is fixed, nothing behind it works.

/// A flag of mount(2), named as in its option.
package enum MountFlag: String, Sendable, CaseIterable {
  case nosuid, nodev, noexec, noatime, nodiratime, relatime, strictatime, sync, dirsync
}

/// How a store is to be served.
package struct ServeOptions: Sendable, Equatable {
  package var readOnly = false
  package var callerGroup = false
  package var mountFlags: Set<MountFlag> = []
  package var source = "insula"
  package var allowOther = false
  package var threads: Int?
  package var pollMicroseconds: Int?
  package var passthrough = true
  package var fileHandles = true
  package var localLocks = false
  package var cacheSeconds: Double?

  package init() {}
}

/// What a server counts.
package struct ServerReport: Codable, Sendable {
  package var mode = "system"
  package var mountPoint = ""
  package var passthrough = false
  package var fileHandles = false
  package var nodes = 0
  package var openFiles = 0
  package var openDirectories = 0
  package var descriptors = 0
  package var locks = 0
  package var requests: UInt64 = 0
  package var threads = 0

  package init() {}
}

/// Why a store can't be served.
package enum ServeFailure: Error, CustomStringConvertible {
  case stub

  package var description: String { "this build has no server yet" }
}

/// A mounted store.
package final class Server: Sendable {
  private init() {}

  package static func start(store: Store, mountPoint: String, options: ServeOptions) throws -> Server {
    throw ServeFailure.stub
  }

  package func report() -> ServerReport { ServerReport() }

  package func unmount(lazily: Bool) throws(Errno) {}

  package func remount(readOnly: Bool) throws(Errno) {}

  package func waitUntilUnmounted() {}
}
