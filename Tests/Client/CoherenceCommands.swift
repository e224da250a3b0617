// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

extension Commands {
  func runCoherence(_ name: String, _ arguments: [String]) -> String? {
    func text(_ index: Int) -> String { index < arguments.count ? arguments[index] : "" }
    func number(_ index: Int) -> Int { Int(text(index)) ?? 0 }
    switch name {
    case "coherence":
      // Seed, steps, whether maps are seen, the place itself, and the place through each view.
      var coherence = Coherence(
        roots: Array(arguments.dropFirst(4)), truth: text(3), seed: UInt64(number(0)),
        canMap: text(2) == "maps"
      )
      do throws(Stale) {
        return "ok\t" + (try coherence.run(steps: number(1)))
      } catch {
        return "\(EIO)\t\(error.words)"
      }
    case "watch": watch(text(0))
    case "contend":
      // A directory, a seed, for how many milliseconds.
      return contend(text(0), SplitMix(state: UInt64(number(1))), milliseconds: number(2))
    default: return nil
    }
  }

  /// Looks at what the model makes, again and again until this process is ended, so that answers are always
  /// on their way.
  private func watch(_ root: String) -> Never {
    var places = [""]
    for first in 0..<6 {
      places.append("/n\(first)")
      for second in 0..<6 { places.append("/n\(first)/n\(second)") }
    }
    while true {
      for place in places {
        var status = Glibc.stat()
        if lstat(root + place, &status) == 0, status.st_mode & 0o170000 == 0o040000,
          let directory = opendir(root + place)
        {
          while readdir(directory) != nil {}
          closedir(directory)
        }
      }
    }
  }

  /// Creates, removes and renames a few names that others have to do with too; tells how often, and what went
  /// wrong that may not.
  private func contend(_ directory: String, _ random: SplitMix, milliseconds: Int) -> String {
    var random = random
    var counts = [0, 0, 0, 0]
    func now() -> Int {
      var time = timespec()
      clock_gettime(CLOCK_MONOTONIC, &time)
      return time.tv_sec * 1000 + time.tv_nsec / 1_000_000
    }
    let end = now() + milliseconds
    while now() < end {
      for _ in 0..<32 {
        let value = random.next()
        let path = "\(directory)/c\(value >> 8 & 7)"
        let kind = Int(value & 3)
        var result: Int32
        switch kind {
        case 0:
          result = clx_open(path, O_WRONLY | O_CREAT | O_EXCL, 0o644)
          if result >= 0 { close(result) }
        case 1: result = unlink(path)
        case 2: result = rename(path, "\(directory)/c\(value >> 16 & 7)")
        default:
          var status = Glibc.stat()
          result = lstat(path, &status)
        }
        if result < 0, errno != ENOENT, errno != EEXIST { return "\(errno)\toperation \(kind)" }
        counts[kind] += 1
      }
    }
    return "ok\t" + counts.map { "\($0)" }.joined(separator: "\t")
  }
}
