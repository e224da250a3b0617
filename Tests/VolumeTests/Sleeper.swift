// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport

/// A process that does nothing, as a member of groups; it ends with this object.
final class Sleeper {
  private let process = Process()
  var pid: Int32 { process.processIdentifier }

  init(groups: String) throws {
    let output = Pipe()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    let words = [
      "--reuid=54321", "--regid=54321", "--groups=\(groups)", "sh", "-c", "echo ready; exec sleep 1000",
    ]
    process.arguments = ["setpriv"] + words
    process.standardOutput = output
    try Program.withSignalsUnblocked { try process.run() }
    // It says so when it has become who it is to be.
    guard output.fileHandleForReading.availableData.count > 0 else { throw Errno.ESRCH }
  }

  deinit {
    kill(pid, SIGKILL)
    process.waitUntilExit()
  }
}
