// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO

// What keeps a worker from ending that has died, and how long that is waited for.

extension Keeper {
  /// How long those have that owe an answer, before all volumes are ended.
  private static let secondsForOwing = 4
  /// How long what a user holds may keep a worker that was killed from ending, before another one begins
  /// beside it.
  private static let secondsForHeld = 10
  /// How long a disk may keep a worker that was killed from ending before another one begins beside it.
  private static let secondsForDisks = 2

  /// How a worker has ended of which threads are left, if nobody is to wait for those.
  ///
  /// One that ends by itself may have lost the lease: what its threads still do must not reach the store.
  /// `second` is for how long it has not ended.
  func status(of worker: DyingWorker, second: Int) -> Int32? {
    guard let status = worker.status else { return nil }
    if kept.isServing, clx_term_signal(status) > 0 {
      if worker.onlyNotifies {
        DaemonLog.write("the worker that was ended waits for the next one")
        return status
      }
      if second > Self.secondsForDisks, let waitedFor = worker.disks(amongAll: disks) {
        FormerWorkers.add(worker.process, waitingFor: waitedFor)
        DaemonLog.write("the worker that was ended waits for a disk that does not answer")
        return status
      }
    }
    // Programs of volumes are ended first: what waits for them comes back then. A thread that looks into our
    // own mount comes back when the next worker has begun.
    guard kept.volumes.isEmpty || second > Self.secondsForOwing else { return nil }
    if worker.onlyLooks {
      DaemonLog.write("the worker that has ended waits for a filesystem that does not answer; it is left")
      return status
    }
    guard clx_exit_status(status) != Self.leaseIsLost, second > Self.secondsForHeld,
      let own = ownObjects(), worker.leaves(own)
    else { return nil }
    FormerWorkers.add(worker.process, waitingFor: [])
    DaemonLog.write(
      "the worker that has ended waits for what a user's process holds in the kernel; it is left")
    return status
  }

  /// The devices of volumes that are disks.
  private var disks: Set<UInt64> {
    let devices = kept.volumes.compactMap { (try? $0.root.statusInMemory()).map { UInt64($0.st_dev) } }
    // What programs and servers serve has none of a disk's.
    return Set(devices.filter { UInt32(truncatingIfNeeded: $0 >> 8) & 0xfff != 0 })
  }

  /// A worker that has been killed ends only when all its threads have: one that waits for a server, or for a
  /// program of a user's, keeps the next worker from serving anyone.
  ///
  /// So what owes an answer is ended then; if that is not enough, all that programs serve. They are started
  /// again when somebody looks for them.
  ///
  /// `second` is for how long that has been so.
  func endEngines(second: Int, for worker: DyingWorker) {
    let volumes = kept.volumes
    let devices = volumes.compactMap { (try? $0.root.statusInMemory()).map { UInt64($0.st_dev) } }
    // What waits elsewhere, as for a file that a user holds, does not come back by that.
    if volumes.isEmpty || worker.isElsewhere(than: Set(devices)) { return }
    let all = second > Self.secondsForOwing
    if second == 1 || second == Self.secondsForOwing + 1 {
      DaemonLog.write(
        "a volume does not answer and keeps the worker from ending; ending what serves "
          + (all ? "volumes" : "it"))
    }
    for (_, life) in volumes { MountHelper.end(life, all ? MountHelper.end : MountHelper.endIfOwing) }
  }
}
