// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import LinuxIO

/// The system calls that no app gets, as a program for seccomp(2).
///
/// - Typing into the terminal that it was started from (ioctl TIOCSTI, TIOCLINUX), which would be commands to
///   the person's shell.
/// - Keyrings, which don't know namespaces: keys of the person's session.
/// - What reaches far into the kernel and no app needs: bpf, performance counters, userfaultfd, modules,
///   io_uring.
/// - Mounting, namespaces and handles: it has no right to any of them, and this is the second lock on that
///   door.
/// - Files in memory (memfd_create): what an app can write, it may not run. MFD_NOEXEC_SEAL keeps such a file
///   from execve alone, and not from the loader and from maps: the kernel asks the mount for these, and the
///   app has no mount of it that could say "noexec". So there are none, and programs take a file in /dev/shm
///   instead, whose mount says it. (memfd_secret(2) gives memory that the kernel never runs.)
/// - Sockets but local ones, those of the internet, and the kernel's news of networks
///   (``FilterProgram/sockets``).
/// - Calls of another architecture, whose numbers would be read as others.
struct SystemCallFilter {
  /// Whether what the app writes is never run.
  let refusesProgramsInMemory: Bool

  /// TIOCSTI and TIOCLINUX.
  private static let typeIntoTerminal: [UInt32] = [0x5412, 0x541c]

  var program: FilterProgram {
    var program = FilterProgram.start
    var index: UInt32 = 0
    while let call = UInt32(exactly: clx_refused_call(index)) {
      program += FilterProgram.when(call, [.answer(.fails(.EPERM))])
      index += 1
    }
    program += FilterProgram.when(
      clx_filter_ioctl(),
      FilterProgram.choose(.second, of: Self.typeIntoTerminal, .fails(.EPERM), otherwise: .allowed))
    for call in [clx_filter_socket(), clx_filter_socketpair()] {
      program += FilterProgram.when(call, FilterProgram.sockets)
    }
    if refusesProgramsInMemory {
      program += FilterProgram.when(clx_filter_memfd_create(), [.answer(.fails(.ENOSYS))])
    }
    return FilterProgram(program + [.answer(.allowed)])
  }
}
