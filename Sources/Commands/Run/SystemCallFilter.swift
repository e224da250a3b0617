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
/// - Calls of another architecture, whose numbers would be read as others.
enum SystemCallFilter {
  private typealias Instruction = (code: UInt16, yes: UInt8, no: UInt8, value: UInt32)

  private static let load: UInt16 = 0x20
  private static let jumpIfEqual: UInt16 = 0x15
  private static let jumpIfAtLeast: UInt16 = 0x35
  private static let answer: UInt16 = 0x06
  private static let allowed: UInt32 = 0x7fff_0000
  /// EPERM.
  private static let refused: UInt32 = 0x0005_0001

  /// Where things are in the kernel's struct seccomp_data.
  private enum Offset {
    static let number: UInt32 = 0
    static let architecture: UInt32 = 4
    /// The low half of the second argument; all Linux that we run on is little-endian.
    static let second: UInt32 = 24
  }

  private static let typeIntoTerminal: [UInt32] = [0x5412, 0x541c]
  /// From here on x86-64 has the calls of its x32 variant.
  private static let otherNumbers: UInt32 = 0x4000_0000

  /// The program as the kernel takes it.
  static var bytes: [UInt8] {
    var calls: [UInt32] = []
    while let call = UInt32(exactly: clx_refused_call(UInt32(calls.count))) { calls.append(call) }
    return program(calls).flatMap { instruction in
      [UInt8(instruction.code & 0xff), UInt8(instruction.code >> 8), instruction.yes, instruction.no]
        + (0..<4).map { UInt8(truncatingIfNeeded: instruction.value >> ($0 * 8)) }
    }
  }

  private static func program(_ calls: [UInt32]) -> [Instruction] {
    let questions = [otherNumbers] + calls
    // Jumps count from the instruction after them; the last one refuses, the one before allows.
    let last = 3 + questions.count + 2 + typeIntoTerminal.count + 1
    var program: [Instruction] = [(load, 0, 0, Offset.architecture)]
    func refuse(if code: UInt16, _ value: UInt32) {
      program.append((code, UInt8(clamping: last - program.count - 1), 0, value))
    }
    program.append((jumpIfEqual, 0, UInt8(clamping: last - program.count - 1), clx_filter_architecture()))
    program.append((load, 0, 0, Offset.number))
    refuse(if: jumpIfAtLeast, otherNumbers)
    for call in calls { refuse(if: jumpIfEqual, call) }
    program.append((jumpIfEqual, 0, UInt8(clamping: last - program.count - 2), clx_filter_ioctl()))
    program.append((load, 0, 0, Offset.second))
    for request in typeIntoTerminal { refuse(if: jumpIfEqual, request) }
    program.append((answer, 0, 0, allowed))
    program.append((answer, 0, 0, refused))
    return program
  }
}
