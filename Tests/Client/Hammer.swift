// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc
import Synchronization

extension Commands {
  /// Tries to get at paths until the number in a shared file is negative.
  ///
  /// The number is odd while they are closed. An access that succeeds, and before and after which the number
  /// was the same odd one, should not have been possible. `kinds` are the ways to try it; all of them if
  /// there are none.
  func hammer(_ paths: [String], flag: String, by kinds: [String] = []) -> String {
    let file = clx_open(flag, O_RDWR, 0)
    guard file >= 0, let memory = mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0),
      memory != MAP_FAILED
    else { return "\(errno)" }
    let numbers = memory.bindMemory(to: Atomic<Int>.self, capacity: 3)
    var allowed = 0
    var denied = 0
    var broken: [String: Int] = [:]
    let attempts = Self.attempts.filter { kinds.isEmpty || kinds.contains($0.0) }
    while true {
      for path in paths {
        for (kind, attempt) in attempts {
          let before = numbers[0].load(ordering: .sequentiallyConsistent)
          if before < 0 {
            let list = broken.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
            return "ok\t\(allowed)\t\(denied)\t\(list)"
          }
          let succeeded = attempt(path)
          let after = numbers[0].load(ordering: .sequentiallyConsistent)
          if succeeded, before == after, before & 1 == 1 { broken[kind, default: 0] += 1 }
          if succeeded { allowed += 1 } else { denied += 1 }
          // For the other side to wait for: something has been tried in this state.
          numbers[succeeded ? 1 : 2].store(before, ordering: .sequentiallyConsistent)
        }
      }
    }
  }

  private static var attempts: [(String, (String) -> Bool)] {
    [
      (
        "stat",
        { path in
          var status = stat()
          return lstat(path, &status) == 0
        }
      ),
      (
        "open",
        { path in
          let file = clx_open(path, O_RDONLY | O_CLOEXEC, 0)
          if file >= 0 { close(file) }
          return file >= 0
        }
      ),
      (
        "list",
        { path in
          guard let directory = opendir(String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)])) else {
            return false
          }
          defer { closedir(directory) }
          return readdir(directory) != nil
        }
      ),
      ("access", { path in access(path, F_OK) == 0 }),
      (
        "attribute",
        { path in
          var room: [UInt8] = [0]
          return lgetxattr(path, "user.note", &room, 1) == 1
        }
      ),
      (
        "write",
        { path in
          let file = clx_open(path, O_WRONLY | O_APPEND | O_CLOEXEC, 0)
          if file >= 0 { close(file) }
          return file >= 0
        }
      ),
    ]
  }
}
