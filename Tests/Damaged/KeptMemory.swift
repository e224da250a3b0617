// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import TestSupport

/// All memory of this process that the next worker would find.
struct KeptMemory {
  private struct Part {
    let region: SharedRegion
    let range: Range<Int>
    let saved: [UInt32]

    var words: UnsafeMutablePointer<UInt32> {
      (region.base + range.lowerBound).assumingMemoryBound(to: UInt32.self)
    }
  }
  private let regions: [(region: SharedRegion, roomy: [Range<Int>])]
  private let parts: [Part]
  /// Where there is something: which part, and which word of it.
  private var used: [(part: Int, word: Int)] = []

  init() throws {
    var regions: [(SharedRegion, [Range<Int>])] = []
    var parts: [Part] = []
    for fd in FD.allOpen {
      guard Self.isKept(fd), let copy = try? fd.duplicated() else { continue }
      let region = try SharedMemory(adopting: copy).whole
      regions.append((region, region.roomy))
      for range in region.roomy {
        let words = (region.base + range.lowerBound).assumingMemoryBound(to: UInt32.self)
        let saved = Array(UnsafeBufferPointer(start: words, count: range.count / 4))
        for word in saved.indices where saved[word] != 0 { used.append((parts.count, word)) }
        parts.append(Part(region: region, range: range, saved: saved))
      }
    }
    self.regions = regions
    self.parts = parts
  }

  private static func isKept(_ fd: FD) -> Bool {
    var path = [CChar](repeating: 0, count: 200)
    return readlink("/proc/self/fd/\(fd.raw)", &path, path.count - 1) > 0
      && path.starts(with: "/memfd:insula-".utf8.map { CChar(bitPattern: $0) })
  }

  /// Damages some words, near each other or anywhere; says which.
  func damage(_ random: inout SeededRandom) -> [String] {
    let count = [1, 1, 1, 2, 3, 8, 40].randomElement(using: &random) ?? 1
    let first = Int.random(in: used.indices, using: &random)
    let isNear = Bool.random(using: &random)
    return (0..<count).map { number in
      let at = isNear ? (first + number) % used.count : Int.random(in: used.indices, using: &random)
      var (part, word) = used[at]
      // And now and then where there is nothing yet.
      if Int.random(in: 0..<10, using: &random) == 0 {
        word = Int.random(in: parts[part].saved.indices, using: &random)
      }
      part = min(part, parts.count - 1)
      return damage(part, word, &random)
    }
  }

  /// How many words there are in which something stands.
  var usedCount: Int { used.count }

  /// Damages one of these words; says how.
  func damageOne(_ number: Int, _ random: inout SeededRandom) -> String {
    let (part, word) = used[number]
    return damage(part, word, &random)
  }

  private func damage(_ part: Int, _ word: Int, _ random: inout SeededRandom) -> String {
    let before = parts[part].words[word]
    let other = used[Int.random(in: used.indices, using: &random)]
    let after =
      switch Int.random(in: 0..<6, using: &random) {
      case 0: UInt32(0)
      case 1: UInt32.max
      case 2: before ^ 1 << UInt32.random(in: 0..<32, using: &random)
      case 3: before &+ 1
      case 4: parts[other.part].saved[other.word]
      default: UInt32.random(in: 0...UInt32.max, using: &random)
      }
    parts[part].words[word] = after
    return "\(part):\(word) \(before)->\(after)"
  }

  /// Makes all as it was, also what another process has changed.
  func restore() {
    for part in parts {
      part.saved.withUnsafeBytes { bytes in
        if let base = bytes.baseAddress { memcpy(part.words, base, bytes.count) }
      }
    }
    for (region, roomy) in regions {
      for range in region.roomy {
        var at = range.lowerBound
        for old in roomy where old.overlaps(range) {
          if at < old.lowerBound { region.giveBack(at..<old.lowerBound) }
          at = max(at, old.upperBound)
        }
        if at < range.upperBound { region.giveBack(at..<range.upperBound) }
      }
    }
  }
}
