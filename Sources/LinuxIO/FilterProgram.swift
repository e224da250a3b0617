// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux

/// A program for seccomp(2): what becomes of a system call, by its number and its arguments.
///
/// It begins with ``start``; each question that is answered with yes goes on with what then is to be done.
package struct FilterProgram: Sendable {
  /// What becomes of a call.
  package struct Answer: Sendable {
    fileprivate let value: UInt32
    package static let allowed = Answer(value: 0x7fff_0000)
    /// It is not made, and fails with that.
    package static func fails(_ error: Errno) -> Answer {
      Answer(value: 0x0005_0000 | UInt32(error.code) & 0xffff)
    }
  }

  /// Where things are in the kernel's struct seccomp_data.
  package enum Part: UInt32, Sendable {
    case number = 0
    case architecture = 4
    /// The low halves of arguments; all Linux that we run on is little-endian.
    case first = 16
    case second = 24
    case third = 32
  }

  package struct Instruction: Sendable {
    fileprivate let code: UInt16
    fileprivate var yes: UInt8 = 0
    fileprivate var no: UInt8 = 0
    fileprivate let value: UInt32

    package static func load(_ part: Part) -> Instruction { Instruction(code: 0x20, value: part.rawValue) }
    package static func answer(_ answer: Answer) -> Instruction {
      Instruction(code: 0x06, value: answer.value)
    }
    /// Questions about what was loaded; the numbers say how many instructions are jumped over.
    package static func ifEqual(_ value: UInt32, skip yes: UInt8 = 0, elseSkip no: UInt8) -> Instruction {
      Instruction(code: 0x15, yes: yes, no: no, value: value)
    }
    package static func ifAtLeast(_ value: UInt32, skip yes: UInt8 = 0, elseSkip no: UInt8) -> Instruction {
      Instruction(code: 0x35, yes: yes, no: no, value: value)
    }
    package static func ifAnyBit(of value: UInt32, skip yes: UInt8 = 0, elseSkip no: UInt8) -> Instruction {
      Instruction(code: 0x45, yes: yes, no: no, value: value)
    }
  }

  private let instructions: [Instruction]

  package init(_ instructions: [Instruction]) { self.instructions = instructions }

  /// The program as the kernel takes it.
  package var bytes: [UInt8] {
    instructions.flatMap { instruction in
      [UInt8(instruction.code & 0xff), UInt8(instruction.code >> 8), instruction.yes, instruction.no]
        + (0..<4).map { UInt8(truncatingIfNeeded: instruction.value >> ($0 * 8)) }
    }
  }

  /// Sets it up, and that no program that is started gets new privileges; for good.
  ///
  /// Of one thread or of all that there are; those that they start have it too. Corresponds to `seccomp(2)`.
  package func install(forAllThreads: Bool) throws(Errno) {
    guard let count = UInt16(exactly: instructions.count) else { throw .E2BIG }
    let result = bytes.withUnsafeBytes { bytes in
      bytes.baseAddress.map { clx_set_filter($0, count, forAllThreads ? 1 : 0) } ?? -1
    }
    _ = try check(result)
  }
}

// What both filters are made of.
extension FilterProgram {
  /// Refuses calls of other architectures, whose numbers would be read as others; then the number is loaded.
  package static let start: [Instruction] =
    [
      .load(.architecture), .ifEqual(clx_filter_architecture(), skip: 1, elseSkip: 0),
      .answer(.fails(.EPERM)), .load(.number),
    ] + [.ifAtLeast(otherNumbers, elseSkip: 1), .answer(.fails(.EPERM))]

  /// From here on x86-64 has the calls of its x32 variant.
  private static let otherNumbers: UInt32 = 0x4000_0000

  /// What is done about one call; the last of it answers.
  package static func when(_ call: UInt32, _ instructions: [Instruction]) -> [Instruction] {
    [.ifEqual(call, elseSkip: UInt8(clamping: instructions.count))] + instructions
  }

  /// What becomes of a call with an argument that is one of these values, and of one with another.
  package static func choose(
    _ part: Part, of values: [UInt32], _ answer: Answer, otherwise: Answer
  ) -> [Instruction] {
    let questions = values.enumerated().map { index, value in
      Instruction.ifEqual(value, skip: UInt8(clamping: values.count - index), elseSkip: 0)
    }
    return [.load(part)] + questions + [.answer(otherwise), .answer(answer)]
  }

  /// AF_UNIX, AF_INET, AF_INET6, and of AF_NETLINK what is NETLINK_ROUTE; others are said not to be there.
  ///
  /// Those others know no namespaces, such as sockets to the host of a virtual machine (AF_VSOCK), or lead to
  /// parts of the kernel that nobody here needs.
  package static let sockets: [Instruction] = [
    .load(.first), .ifEqual(1, skip: 6, elseSkip: 0), .ifEqual(2, skip: 5, elseSkip: 0),
    .ifEqual(10, skip: 4, elseSkip: 0), .ifEqual(16, skip: 1, elseSkip: 0),
    .answer(.fails(.EAFNOSUPPORT)), .load(.third), .ifEqual(0, elseSkip: 1), .answer(.allowed),
    .answer(.fails(.EPROTONOSUPPORT)),
  ]

  /// One of ranges of numbers, found by halves; each goes on to where the next begins.
  package static func search(_ ranges: ArraySlice<(from: UInt32, answer: Answer)>) -> [Instruction] {
    guard ranges.count > 1 else { return ranges.map { .answer($0.answer) } }
    let middle = ranges.startIndex + ranges.count / 2
    let (lower, upper) = (search(ranges[..<middle]), search(ranges[middle...]))
    return [.ifAtLeast(ranges[middle].from, skip: UInt8(clamping: lower.count), elseSkip: 0)] + lower + upper
  }
}
