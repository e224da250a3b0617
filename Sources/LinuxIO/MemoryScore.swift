// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

/// How likely the kernel is to end this process when the machine, or a control group, has no memory left.
///
/// From -1000, never, to 1000; one stands for a thousandth of all memory. Corresponds to
/// `/proc/PID/oom_score_adj`.
package enum MemoryScore {
  package static let never = -1000
  package static let most = 1000

  private static let file = "/proc/self/oom_score_adj"

  package static var own: Int {
    let text = FD.text(of: file, limit: 16) ?? ""
    return Int(text.prefix { $0 != "\n" }) ?? 0
  }

  /// Everyone may ask for more; root alone (CAP_SYS_RESOURCE) for less.
  package static func set(_ value: Int) -> Bool {
    do throws(Errno) {
      let opened = try FD.cwd.openFollowing(file, O_WRONLY)
      try opened.fd.writeAll(String(value).utf8)
      return true
    } catch {
      return false
    }
  }
}
