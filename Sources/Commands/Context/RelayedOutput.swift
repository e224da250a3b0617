// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// A stream of ours that a process of somebody else's may write to.
///
/// A file it could read, cut off, and write to anywhere, and one that does not end would keep it open for
/// whoever waits for its end. So it has a pipe, and only a terminal itself.
final class RelayedOutput {
  private let ours: FD
  /// Where it writes; closed here once it has been started.
  private var theirs: OwnedFD?
  private let read: SharedFD?
  private var isOpen = true

  private static let chunk = 1 << 16

  init(_ ours: FD) throws(Errno) {
    self.ours = ours
    if isatty(ours.raw) == 1 {
      // Who has a terminal open for reading gets what is typed there for others.
      theirs = try ours.reopened(O_WRONLY | O_NOCTTY)
      read = nil
    } else {
      let ends = try pipe()
      theirs = try ends.write.fd.duplicated()
      read = SharedFD(ends.takeRead())
      try source.setNonBlocking()
    }
  }

  /// What has something to be passed on; none once that is over.
  var source: FD {
    guard isOpen, let read else { return FD(-1) }
    return FD(read.number)
  }

  /// Lends what the process gets, which is closed then.
  func give<Result>(_ body: (FD) throws(Errno) -> Result) throws(Errno) -> Result {
    guard let given = theirs.take() else { throw .EBADF }
    return try body(given.fd)
  }

  /// Passes on what there is; what comes for ever does not keep us here.
  func passOn() {
    for _ in 0..<16 where isOpen && read != nil {
      do throws(Errno) {
        guard let bytes = try source.readAvailable(limit: Self.chunk) else {
          isOpen = false
          return
        }
        try ours.writeAll(bytes)
      } catch .EAGAIN {
        return
      } catch {
        isOpen = false
      }
    }
  }
}
