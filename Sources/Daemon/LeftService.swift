// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO
internal import Volume

/// A mount that another keeper has left, with what its workers had open.
package struct LeftService: Sendable {
  let kept: KeptState
  /// What was open when this process began, and is not its own.
  let open: Set<Int32>

  /// Names how this program keeps what is left.
  package static var layout: String { String(KeptLayout.current) }

  package var storeLock: FD? { kept.descriptor(.storeLock) }

  /// What was left in this very process, by the program that it was before (``NextProgram``).
  package init(table: Int32, environment: [String: String]) throws(Errno) {
    let left = FD.allOpen.map(\.raw).filter { $0 > STDERR_FILENO }
    // No program that is started is to have them.
    for descriptor in left { try? FD(descriptor).closeOnExecution(true) }
    kept = try KeptState(
      adopting: OwnedFD(owning: table), layout: KeptLayout.current, store: Self.store(environment))
    open = Set(left).subtracting([table])
    kept.forget(.keepers)
  }

  /// What the service manager has stored; nil if there is nothing, or nothing that can be taken over.
  ///
  /// Only what is noted is there, but nothing that workers had open beside that.
  package static func stored(_ environment: [String: String]) -> LeftService? {
    let stored = DescriptorStore.stored(environment)
    guard !stored.isEmpty, let store = store(environment) else { return nil }
    do throws(Errno) {
      return try LeftService(stored, store)
    } catch {
      // Of a mount that has ended as it should, nothing is needed any more.
      if error != .ENOENT {
        DaemonLog.write("what the service manager has kept can't be taken over (\(error.message))")
      }
      for (name, descriptor) in stored {
        store.forget(name)
        // That of the table has been closed.
        if name != DescriptorStore.table { close(descriptor.raw) }
      }
      return nil
    }
  }

  private init(_ stored: [String: FD], _ store: DescriptorStore) throws(Errno) {
    guard let table = stored[DescriptorStore.table] else { throw .ENOENT }
    kept = try KeptState(
      adopting: OwnedFD(owning: table.raw), layout: KeptLayout.current, store: store)
    kept.renumber(stored)
    open = Set(stored.values.map(\.raw)).subtracting([table.raw])
    guard let connection = kept.descriptor(.connection, view: Server.wholeTree) else { throw .ENOTCONN }
    // The mount may have been taken away meanwhile.
    guard try !connection.hasHungUp() else { throw .ENOTCONN }
    kept.ended(.keeperEnded)
  }

  static func store(_ environment: [String: String]) -> DescriptorStore? {
    environment["NOTIFY_SOCKET"].flatMap { try? DescriptorStore(at: $0) }
  }
}
