// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// For how many seconds a process has had a processor: unlike the time that passes, no other process makes it
/// longer.
package func processorSeconds(of process: Int32) -> Double? {
  let text = FD.text(of: "/proc/\(process)/stat", limit: 1 << 12)
  // The program's name comes before, in parentheses, and may have blanks in it.
  guard let fields = text?.split(separator: ")").last?.split(separator: " "), fields.count > 12,
    let user = Double(fields[11]), let system = Double(fields[12])
  else { return nil }
  return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
}
