// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Glibc

/// Pairs of descriptors for a process that is about to be two: which of them closes which, no owner could
/// say.
package enum Pairs {
  /// A terminal in memory, which is `owner`'s: what is written to the master is typed, and what programs
  /// write is read there.
  ///
  /// Corresponds to `openpty(3)`.
  package static func terminal(owner: UInt32) throws(Errno) -> (master: FD, slave: FD) {
    let master = try FD.cwd.openFollowing("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK).release()
    var locked: Int32 = 0
    let (setLock, openPeer): (UInt, UInt) = (0x4004_5431, 0x5441)
    try check(clx_ioctl(master.raw, setLock, &locked))
    let flags = UnsafeMutableRawPointer(bitPattern: UInt(O_RDWR | O_NOCTTY | O_CLOEXEC))
    let slave = FD(try check(clx_ioctl(master.raw, openPeer, flags)))
    // Who opens it once more, by /dev/stderr usually, is asked for permission.
    if owner != ProcessID.user { try check(fchown(slave.raw, owner, UInt32.max)) }
    return (master, slave)
  }

  /// Two ends that send each other messages.
  ///
  /// Corresponds to `socketpair(2)`.
  package static func messages() throws(Errno) -> (mine: FD, theirs: FD) { try sockets(SOCK_SEQPACKET) }

  /// Two ends of a stream in both directions.
  package static func streams() throws(Errno) -> (mine: FD, theirs: FD) { try sockets(SOCK_STREAM) }

  private static func sockets(_ type: __socket_type) throws(Errno) -> (mine: FD, theirs: FD) {
    var ends: (Int32, Int32) = (-1, -1)
    let kind = Int32(type.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    try withUnsafeMutableBytes(of: &ends) { (bytes) throws(Errno) in
      _ = try check(socketpair(AF_UNIX, kind, 0, bytes.assumingMemoryBound(to: Int32.self).baseAddress))
    }
    return (FD(ends.0), FD(ends.1))
  }
}

/// What a descriptor of a terminal is asked.
extension FD {
  /// The terminal that this session has, however the standard streams were redirected; nil if it has none.
  package static func controllingTerminal() -> OwnedFD? {
    try? cwd.openFollowing("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK)
  }

  /// Whether this session has a terminal.
  package static var hasControllingTerminal: Bool {
    switch controllingTerminal() {
    case .some: true
    case nil: false
    }
  }

  /// Whether this is a terminal, also one that has hung up: whoever has its descriptor may open it again.
  package var isTerminal: Bool {
    guard let status = try? status(), status.type == S_IFCHR else { return false }
    do throws(Errno) {
      _ = try terminalAttributes()
      return true
    } catch {
      return error == .EIO
    }
  }

  /// Whether this is the terminal that our session has.
  package var isControllingTerminal: Bool { tcgetsid(raw) == getsid(0) }

  /// Whether our process group is the one that the terminal listens to.
  package var isInForeground: Bool { tcgetpgrp(raw) == getpgrp() }

  package func terminalAttributes() throws(Errno) -> termios {
    var attributes = termios()
    try check(tcgetattr(raw, &attributes))
    return attributes
  }

  /// Sets them when what was written has been shown.
  package func set(terminalAttributes attributes: termios) throws(Errno) {
    var attributes = attributes
    try retrying { tcsetattr(raw, TCSADRAIN, &attributes) }
  }

  /// Gives it the size of another; whoever is in its foreground gets SIGWINCH if that is a change.
  package func setTerminalSize(like other: FD) throws(Errno) {
    var size = winsize()
    let (getSize, setSize): (UInt, UInt) = (0x5413, 0x5414)
    try check(clx_ioctl(other.raw, getSize, &size))
    try check(clx_ioctl(raw, setSize, &size))
  }

  /// Makes it the terminal of a session that has none; only for the first process of the session.
  package func becomeControllingTerminal() throws(Errno) {
    let setControlling: UInt = 0x540e
    try check(clx_ioctl(raw, setControlling, nil))
  }

  /// Has the terminal listen to another process group of the session.
  package func setForeground(_ group: Int32) throws(Errno) { try check(tcsetpgrp(raw, group)) }
}

extension termios {
  /// The same terminal, that passes on every byte as it comes.
  package var passingEverything: termios {
    var raw = self
    cfmakeraw(&raw)
    return raw
  }

  /// The same, with a sign for others that a question is on the screen.
  ///
  /// The kernel keeps FLUSHO and does nothing with it.
  package var askingOnly: termios {
    var asking = passingEverything
    asking.c_lflag |= tcflag_t(FLUSHO)
    return asking
  }

  package var isAskingOnly: Bool { c_lflag & tcflag_t(FLUSHO) != 0 }
}
