// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy

/// Detects that a mount is gone from the daemon's namespace, and ends what is left of it.
///
/// The kernel ends a filesystem when the last namespace has lost it, and every user can have a namespace with
/// a copy of all mounts. So unmounting could wait for any user. Here it is over when it is gone where the
/// daemon is, and nobody who is there still has something of it open, which a mount that was detached leaves
/// to its users.
enum MountWatch {
  /// Calls `ended` when it is over; the thread lives until then.
  ///
  /// `end` can be read when the connection has ended by itself; what `ended` holds keeps it open.
  static func start(
    _ device: DeviceNumber?, until end: FD, _ ended: @escaping @Sendable () -> Void
  ) throws(Errno) {
    guard let device else { return }
    let thread = try JoinableThread(name: "mounts") {
      waitUntilGone(device)
      waitUntilUnused(
        looking: { MountUsers.all(of: device) },
        waitForEnd: { (try? end.waitUntilReadable(milliseconds: $0)) != false }, tell: tell)
      ended()
    }
    thread.detach()
  }

  private static func waitUntilGone(_ device: DeviceNumber) {
    // It tells of changes since it was opened or last asked.
    guard let table = try? FD.cwd.open("/proc/self/mountinfo", O_RDONLY) else { return }
    while (try? MountTable.current())?.entries.contains(where: { $0.isOwn(device) }) != false {
      var changes = pollfd(fd: table.fd.raw, events: Int16(POLLPRI), revents: 0)
      _ = poll(&changes, 1, 60_000)
    }
  }

  /// How long processes are waited for that do not let themselves be looked at.
  private static let hiddenMilliseconds: Int32 = 3000

  /// How long it is from one look to the next: each look is at all processes of the machine, and a mount that
  /// was detached can be in use for days.
  private static let firstPause: Int32 = 500
  private static let maxPause: Int32 = 10_000

  /// Looks, more and more rarely, until nobody here uses the mount any more, or its connection has ended:
  /// `waitForEnd` waits so many milliseconds for that, and says whether it has.
  static func waitUntilUnused(
    looking look: () -> MountUsers, waitForEnd: (_ milliseconds: Int32) -> Bool,
    tell: (_ what: String, [MountUser]) -> Void
  ) {
    var isTold = false
    var (pause, waited) = (firstPause, Int32(0))
    while true {
      let found = look()
      let here = found.users.filter(\.isInOurNamespace)
      // One of those may just wait for a disk; but any user can have one that hides for good.
      let isHidden = !found.hidden.isEmpty && waited < hiddenMilliseconds
      guard !here.isEmpty || isHidden else {
        // Theirs ends with it.
        return tell(
          "the mount was removed; it ends for processes that have it in another mount namespace", found.users)
      }
      if !isTold, !here.isEmpty { tell("the mount was detached; it remains for processes that use it", here) }
      isTold = isTold || !here.isEmpty
      // Nothing tells that a file was closed or a directory left: the kernel has an event for the end of the
      // filesystem alone, which also those keep who are not asked about here.
      if waitForEnd(pause) { return }
      waited = min(waited + pause, hiddenMilliseconds)
      pause = min(2 * pause, maxPause)
    }
  }

  private static let mostTold = 8

  private static func tell(_ what: String, _ users: [MountUser]) {
    guard !users.isEmpty else { return }
    let more = users.count > mostTold ? ["and \(users.count - mostTold) more"] : []
    let list = (users.prefix(mostTold).map { "  " + $0.description.sanitized } + more).joined(separator: "\n")
    DaemonLog.write("\(what):\n\(list)")
  }
}
