// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Daemon
internal import Testing

/// How often the daemon looks at all processes for who uses a mount that was detached.
@Suite struct MountWatchTests {
  private static let minutes: Int32 = 60_000

  private static func user(_ pid: Int32, isHere: Bool) -> MountUser {
    MountUser(pid: pid, name: "sleep", reasons: ["has it open"], paths: [], isInOurNamespace: isHere)
  }

  /// What comes of looks that find `found` at a time; the connection ends at `end`.
  private func watch(
    until end: Int32 = .max, _ found: (_ milliseconds: Int32) -> MountUsers
  ) -> (looks: [Int32], told: [String]) {
    var (now, looks, told) = (Int32(0), [Int32](), [String]())
    MountWatch.waitUntilUnused(
      looking: {
        looks.append(now)
        return found(now)
      },
      waitForEnd: { milliseconds in
        if end - now <= milliseconds {
          now = end
          return true
        }
        now += milliseconds
        return false
      }, tell: { what, users in told.append("\(what.prefix(25)): \(users.map(\.pid))") })
    return (looks, told)
  }

  /// Two processes use it for an hour, and another one has it in a namespace of its own all the time.
  @Test func looksBecomeRare() {
    let hour = 60 * Self.minutes
    let other = Self.user(3, isHere: false)
    let (looks, told) = watch { now in
      let here = [Self.user(1, isHere: true), Self.user(2, isHere: true)].prefix(now < hour / 2 ? 2 : 1)
      return MountUsers(users: now < hour ? Array(here) + [other] : [other], hidden: [])
    }
    #expect(looks.prefix(7) == [0, 500, 1500, 3500, 7500, 15_500, 25_500])
    #expect(looks.count == 365, "\(looks.count)")
    // It is over with the first look that finds nobody here.
    #expect(looks.last.map { $0 >= hour && $0 < hour + 10_000 } == true)
    #expect(told == ["the mount was detached; i: [1, 2]", "the mount was removed; it: [3]"])
  }

  /// The last user leaves, nobody has a copy of it, and the kernel ends the connection: nobody looks again.
  @Test func connectionThatEndsIsTheEnd() {
    let (looks, told) = watch(until: 100_000) { _ in
      MountUsers(users: [Self.user(1, isHere: true)], hidden: [])
    }
    #expect(looks.last == 95_500 && looks.count == 14, "\(looks)")
    #expect(told.count == 1)
  }

  /// Who hides keeps it for a moment alone, and nobody waits where nobody is found.
  @Test func hiddenProcessesAreNotAwaited() {
    let hidden = watch { _ in MountUsers(users: [], hidden: ["pid 1", "pid 2"]) }
    #expect(hidden.looks == [0, 500, 1500, 3500] && hidden.told == ["the mount was removed; it: []"])
    #expect(watch { _ in MountUsers(users: [], hidden: []) }.looks == [0])
  }
}
