// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Synchronization

/// Workers that were killed and have not ended, since threads of theirs wait for disks that do not answer.
///
/// What those have begun is done when the disk answers, however late. So the next worker, which ends what was
/// begun there, waits for their end: otherwise it would take something back that is done afterwards.
package enum FormerWorkers {
  private struct Worker {
    let process: Int32
    let devices: Set<UInt64>
    /// By which its end is waited for.
    var handle: SharedFD?
  }
  private static let all = Mutex<[Worker]>([])

  /// For the keeper, from which the next workers have it: one waits for those disks.
  package static func add(_ process: Int32, waitingFor devices: Set<UInt64>) {
    all.withLock { $0.append(Worker(process: process, devices: devices)) }
  }

  /// For the keeper: one has ended.
  package static func remove(_ process: Int32) { all.withLock { $0.removeAll { $0.process == process } } }

  /// For a worker, before it changes anything: from here on their ends are seen.
  ///
  /// `isDying` tells whether a number is that of one still.
  package static func watch(_ isDying: (_ process: Int32) -> Bool) {
    all.withLock { all in
      all = all.compactMap { worker in
        // Whose number it was before the handle was there is looked at with the handle.
        guard let handle = try? SharedFD(ProcessID.open(worker.process)), isDying(worker.process) else {
          return nil
        }
        var watched = worker
        watched.handle = handle
        return watched
      }
    }
  }

  /// Waits until none of them can change something on a disk any more: as long as that does not answer.
  package static func awaitEnd(onDevice device: UInt64) {
    awaitEnds(all.withLock { $0.filter { $0.devices.contains(device) }.compactMap(\.handle) })
  }

  /// Whether there are any.
  package static var areThere: Bool { all.withLock { !$0.isEmpty } }

  /// Waits until all that there are have ended.
  package static func awaitEnds() { awaitEnds(all.withLock { $0.compactMap(\.handle) }) }

  private static func awaitEnds(_ handles: [SharedFD]) {
    for handle in handles {
      var isThere = true
      while isThere {
        // If its end can't be waited for, nobody waits.
        let hasEnded = try? handle.use { (fd) throws(Errno) in try fd.waitUntilReadable(milliseconds: 1000) }
        isThere = hasEnded == false
      }
    }
  }
}
