// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// A number that nobody has: as whom a program runs that is to have no rights.
///
/// Whoever has the same number reads and writes the disk that is lent to the program, and may end it. The
/// numbers from 61184 to 65519 are none of these: systemd gives them to services that run already
/// (DynamicUser=).
struct NobodysNumber {
  /// What neither systemd nor Debian gives to anybody, and login.defs to no account and no container.
  ///
  /// The second is for where only sixteen bits are known, as in a container.
  static let ranges: [ClosedRange<UInt32>] = [2_100_000_000...2_139_999_999, 60_578...61_183]
  /// How many are tried of each.
  private static let most: UInt32 = 64

  let isTaken: (UInt32) -> Bool

  /// Another one for each volume, as long as there are enough; nil if none is found.
  func find(for volume: UInt32) -> UInt32? {
    for range in Self.ranges {
      let count = UInt32(range.count)
      for step in 0..<Self.most {
        let number = range.lowerBound + (volume % count + step) % count
        if !isTaken(number) { return number }
      }
    }
    return nil
  }

  /// By the accounts, groups and processes of this machine, by whom accounts have been given besides, and by
  /// the numbers that there are in our namespace.
  static var ofThisMachine: NobodysNumber {
    let maps = ["uid_map", "gid_map"].map {
      ranges(in: FD.text(of: "/proc/self/\($0)", limit: 1 << 16) ?? "")
    }
    let running = running()
    return NobodysNumber { number in
      if maps.contains(where: { map in !map.contains { $0.contains(UInt64(number)) } }) { return true }
      return running.contains(number) || SubordinateUsers.ofThisMachine.holder(of: number) != number
        || Account.numbered(number) != nil || AccountGroup.numbered(number) != nil
    }
  }

  /// The numbers that a map of a namespace has inside.
  static func ranges(in map: String) -> [Range<UInt64>] {
    map.parts(between: "\n").compactMap { line in
      let fields = line.split(whereSeparator: \.isWhitespace).map { UInt64($0) }
      guard fields.count == 3, let first = fields[0], let count = fields[2], first <= UInt64(UInt32.max),
        count <= 1 << 32
      else { return nil }
      return first..<(first + count)
    }
  }

  /// As whom processes run.
  private static func running() -> Set<UInt32> {
    guard let processes = try? FD.cwd.openFollowing("/proc", O_RDONLY | O_DIRECTORY),
      let entries = try? processes.fd.entries()
    else { return [] }
    let numbers = entries.compactMap { Int32(String(decoding: $0.name, as: UTF8.self)) }
    return Set(numbers.compactMap(ProcessID.user))
  }
}
