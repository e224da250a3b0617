// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// The system call in which a thread waits.
package enum ThreadCall {
  /// What tells the call of a thread that is renaming something, and not exchanging it, from most other
  /// calls; nil for any other call, and if that can't be told.
  ///
  /// Only numbers that the kernel has are read, never the thread's memory, for which it could have us wait.
  package static func rename(by thread: Int32) -> String? {
    guard thread > 0 else { return nil }
    // It has just asked, so it may not sleep yet.
    for _ in 0..<50 {
      guard let text = FD.text(of: "/proc/\(thread)/syscall", limit: 512) else { return nil }
      let words = text.split { $0 == " " || $0 == "\n" }
      guard words.first != "running" else {
        sched_yield()
        continue
      }
      guard let number = words.first.flatMap({ Int($0) }), words.count > 5 else { return nil }
      let kind = clx_renames(number)
      let flags = kind == 2 ? UInt64(words[5].dropFirst(2), radix: 16) ?? 0 : 0
      return kind == 0 || flags & UInt64(CLX_RENAME_EXCHANGE) != 0 ? nil : text
    }
    return nil
  }
}
