// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux

/// The names of signals, as kill(1) has them.
package enum SignalName {
  private static let names = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM",
    "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF",
    "WINCH", "IO", "PWR", "SYS",
  ]

  /// The first real-time signal that the C library leaves to programs, and the last one.
  private static let realTime: ClosedRange<Int32> = 34...64

  /// How a process ended that wait(2) told of, for a message: "ended with status 1".
  package static func end(ofWaitStatus status: Int32) -> String {
    let number = clx_term_signal(status)
    guard number != 0 else { return "ended with status \(clx_exit_status(status))" }
    return "was ended by signal \(number)" + (of(number).map { " (SIG\($0))" } ?? "")
  }

  /// The name of a signal, without `SIG`; nil for a number that no signal has.
  package static func of(_ number: Int32) -> String? {
    let index = Int(number) - 1
    if names.indices.contains(index) { return names[index] }
    guard realTime.contains(number) else { return nil }
    let offset = number - realTime.lowerBound
    return offset == 0 ? "RTMIN" : "RTMIN+\(offset)"
  }
}
