// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization

/// Takes in what callers pass on, and gets rid of what it can't use.
///
/// `close(2)` of a file asks its filesystem, and one that is the caller's own (FUSE) may never answer:
/// neither that nor a signal ends such a call. So a file is closed by a thread that nobody waits for, and who
/// keeps some of these busy may pass on nothing more. A directory is closed without a question, and so is a
/// connection to the kernel's FUSE, or a pipe without a name.
///
/// A network connection waits, too (SO_LINGER), and not only where it is closed: one that lies in a socket
/// that is closed, or in a message that is received without it, is closed by the kernel on that very thread.
/// So the control socket takes no descriptors (Linux 6.16), but while a thread of the caller's own user waits
/// for one.
final class PassedDescriptors: Sendable {
  /// Files of one user that are being closed.
  private static let most = 4

  private let closing = Mutex<[UInt32: Int]>([:])

  /// Whether to take a descriptor from this user: one that is not taken, the kernel lets go by itself.
  func takes(from user: UInt32) -> Bool { closing.withLock { $0[user, default: 0] < Self.most } }

  /// Keeps what is closed without a question, and lets go of all else.
  func keep(_ passed: FD, of user: UInt32) -> SharedFD? {
    // Others than ours could have put something into its queue that keeps whoever closes it.
    let isOurListener = user == ProcessID.user && LocalSocket.isListening(passed)
    if passed.isKnownDirectory || passed.isKnownFuseDevice || isOurListener || passed.isKnownPipe {
      return SharedFD(OwnedFD(owning: passed.raw))
    }
    closing.withLock { $0[user, default: 0] += 1 }
    let thread = try? JoinableThread(name: "closing") { [self] in
      _ = OwnedFD(owning: passed.raw)
      closing.withLock { closing in
        let left = closing[user, default: 1] - 1
        closing[user] = left > 0 ? left : nil
      }
    }
    // Without a thread it stays open, and counts: better than to wait here.
    thread?.detach()
    return nil
  }
}
