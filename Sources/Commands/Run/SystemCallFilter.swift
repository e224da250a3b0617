// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import LinuxIO

/// The system calls that no app gets, as a program for seccomp(2).
///
/// - Typing into the terminal that it was started from (ioctl TIOCSTI, TIOCLINUX), which would be commands to the person's shell.
/// - Keyrings, which don't know namespaces: keys of the person's session.
/// - What reaches far into the kernel and no app needs: bpf, performance counters, userfaultfd, modules, io_uring.
/// - Mounting, namespaces and handles: it has no right to any of them, and this is the second lock on that door.
/// - Files in memory that can be run (memfd_create without MFD_NOEXEC_SEAL): what an app can write, it may not run. It is told that there
///   are none, and programs then take another way, which leads to files.
/// - Sockets but local ones, those of the internet, and the kernel's news of networks (netlink's routes):
///   others know no namespaces, such as
///   those to the host of a virtual machine (AF_VSOCK), or lead to parts of the kernel that no app needs.
/// - Calls of another architecture, whose numbers would be read as others.
struct SystemCallFilter {
  /// Whether what the app writes is never run.
  let refusesProgramsInMemory: Bool

  private typealias Instruction = (code: UInt16, yes: UInt8, no: UInt8, value: UInt32)

  private static let load: UInt16 = 0x20
  private static let jumpIfEqual: UInt16 = 0x15
  private static let jumpIfAtLeast: UInt16 = 0x35
  private static let jumpIfSet: UInt16 = 0x45
  private static let answer: UInt16 = 0x06
  private static let allowed: UInt32 = 0x7fff_0000
  /// EPERM.
  private static let refused: UInt32 = 0x0005_0001
  /// ENOSYS.
  private static let unknown: UInt32 = 0x0005_0026
  /// EAFNOSUPPORT and EPROTONOSUPPORT, as kernels say that have none of these.
  private static let noSuchFamily: UInt32 = 0x0005_0061
  private static let noSuchProtocol: UInt32 = 0x0005_005d

  /// Where things are in the kernel's struct seccomp_data.
  private enum Offset {
    static let number: UInt32 = 0
    static let architecture: UInt32 = 4
    /// The low halves of arguments; all Linux that we run on is little-endian.
    static let first: UInt32 = 16
    static let second: UInt32 = 24
    static let third: UInt32 = 32
  }

  private static let typeIntoTerminal: [UInt32] = [0x5412, 0x541c]
  private static let sealAgainstExecution: UInt32 = 8
  /// From here on x86-64 has the calls of its x32 variant.
  private static let otherNumbers: UInt32 = 0x4000_0000

  /// The program as the kernel takes it.
  var bytes: [UInt8] {
    program.flatMap { instruction in
      [UInt8(instruction.code & 0xff), UInt8(instruction.code >> 8), instruction.yes, instruction.no]
        + (0..<4).map { UInt8(truncatingIfNeeded: instruction.value >> ($0 * 8)) }
    }
  }

  /// Each question that is answered with yes is followed by what then is to be done, else that is jumped over.
  private var program: [Instruction] {
    var program: [Instruction] = [
      (Self.load, 0, 0, Offset.architecture), (Self.jumpIfEqual, 1, 0, clx_filter_architecture()),
      (Self.answer, 0, 0, Self.refused), (Self.load, 0, 0, Offset.number),
    ]
    program += Self.refuse(if: Self.jumpIfAtLeast, Self.otherNumbers)
    var index: UInt32 = 0
    while let call = UInt32(exactly: clx_refused_call(index)) {
      program += Self.refuse(if: Self.jumpIfEqual, call)
      index += 1
    }
    let requests = Self.typeIntoTerminal.flatMap { Self.refuse(if: Self.jumpIfEqual, $0) }
    program += Self.when(
      clx_filter_ioctl(), [(Self.load, 0, 0, Offset.second)] + requests + [(Self.answer, 0, 0, Self.allowed)])
    for call in [clx_filter_socket(), clx_filter_socketpair()] { program += Self.when(call, Self.sockets) }
    if refusesProgramsInMemory {
      program += Self.when(
        clx_filter_memfd_create(),
        [
          (Self.load, 0, 0, Offset.second), (Self.jumpIfSet, 1, 0, Self.sealAgainstExecution),
          (Self.answer, 0, 0, Self.unknown), (Self.answer, 0, 0, Self.allowed),
        ])
    }
    return program + [(Self.answer, 0, 0, Self.allowed)]
  }

  /// AF_UNIX, AF_INET, AF_INET6, and of AF_NETLINK what is NETLINK_ROUTE.
  private static let sockets: [Instruction] = [
    (load, 0, 0, Offset.first), (jumpIfEqual, 6, 0, 1), (jumpIfEqual, 5, 0, 2), (jumpIfEqual, 4, 0, 10),
    (jumpIfEqual, 1, 0, 16), (answer, 0, 0, noSuchFamily), (load, 0, 0, Offset.third),
    (jumpIfEqual, 0, 1, 0), (answer, 0, 0, allowed), (answer, 0, 0, noSuchProtocol),
  ]

  private static func refuse(if code: UInt16, _ value: UInt32) -> [Instruction] {
    [(code, 0, 1, value), (answer, 0, 0, refused)]
  }

  /// What is done about one call; the last of it answers.
  private static func when(_ call: UInt32, _ instructions: [Instruction]) -> [Instruction] {
    [(jumpIfEqual, 0, UInt8(clamping: instructions.count), call)] + instructions
  }
}
