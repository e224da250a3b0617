// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// Whether a thread of a process waits for the answer of a filesystem that a program serves (FUSE): no signal
/// ends that.
package func waitsForFilesystem(_ process: Int32) -> Bool { waits(process, in: "request_wait_answer") }

/// Whether a thread of a process waits in a function of the kernel's.
package func waits(_ process: Int32, in function: String) -> Bool {
  let path = "/proc/\(process)/task"
  guard let directory = try? FD.cwd.openFollowing(path, O_RDONLY | O_DIRECTORY),
    let entries = try? directory.fd.entries()
  else { return false }
  return entries.contains {
    let thread = String(decoding: $0.name, as: UTF8.self)
    return FD.text(of: "\(path)/\(thread)/wchan", limit: 64) == function
  }
}
