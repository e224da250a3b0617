// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

// Asking who has called the command.

extension Context {
  /// Whether there is somebody to ask.
  var hasTerminal: Bool { isatty(0) == 1 && isatty(2) == 1 }

  /// Throws unless the answer to a question is yes.
  func requireAgreement(_ question: String) throws(CommandFailure) {
    console.ask("\(question) [y/N] ")
    let answer = (try? FD(0).readAvailable(limit: 64)) ?? []
    guard answer.first == UInt8(ascii: "y") || answer.first == UInt8(ascii: "Y") else {
      throw CommandFailure(.failed, "nothing was changed")
    }
  }
}
