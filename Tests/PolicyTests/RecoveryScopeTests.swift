// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// How far whoever ends what others were stopped in goes.
struct RecoveryScopeTests {
  private static let outside: Set<[UInt8]> = [Array("disk".utf8), Array("server".utf8)]
  private static let (anna, other): (UInt32, UInt32) = (1001, 1002)

  private struct Case {
    let scope: RecoveryScope
    /// Of these paths it reaches the first ones.
    let reached: [String]
    let others: [String]
  }

  private static func name(_ text: String) -> [UInt8] { Array(text.utf8) }

  private static let machines = ["Applications/A.app", "Users", "Users/", "System", ""]
  private static let everyones = machines + ["Users/Shared"]

  private static let cases = [
    Case(
      scope: .store, reached: everyones + ["Users/anna/x", "Users/diskette/x"],
      others: ["Users/disk/x", "Users/disk", "Users/server/Library/x"]),
    Case(
      scope: .machine, reached: machines, others: ["Users/anna/x", "Users/disk/x", "Users/disk"]),
    Case(
      scope: .home(name("disk")), reached: ["Users/disk/x", "Users/disk"],
      others: everyones + ["Users/anna/x", "Users/server/x", "disk/x", "x/Users/disk"]),
    Case(
      scope: .command(of: anna, about: nil), reached: machines,
      others: ["Users/anna/x", "Users/ben/x", "Users/disk/x", "Users/server/x"]),
    Case(
      scope: .command(of: anna, about: name("disk")), reached: machines + ["Users/disk/x"],
      others: ["Users/ben/x", "Users/server/x"]),
  ]

  @Test func placesAreReached() {
    for item in Self.cases {
      for path in item.reached {
        #expect(item.scope.reaches(path.utf8, outside: Self.outside), "\(item.scope) \(path)")
      }
      for path in item.others {
        #expect(!item.scope.reaches(path.utf8, outside: Self.outside), "\(item.scope) \(path)")
      }
    }
  }

  /// Containers in the store are their users' business, and that of a command about their home.
  @Test func containersAreReached() {
    func reaches(_ scope: RecoveryScope, _ path: String, _ user: UInt32) -> Bool {
      scope.reaches(containerAt: path.utf8, of: user, outside: Self.outside)
    }
    let (hers, others, far) = ("Users/anna/c", "Users/ben/c", "Users/disk/c")
    for user in [Self.anna, Self.other] {
      #expect(reaches(.store, hers, user) && reaches(.store, others, user) && !reaches(.store, far, user))
      #expect(reaches(.home(Self.name("disk")), far, user) && !reaches(.home(Self.name("disk")), hers, user))
    }
    let plain = RecoveryScope.command(of: Self.anna, about: nil)
    #expect(reaches(plain, hers, Self.anna) && reaches(plain, others, Self.anna))
    #expect(!reaches(plain, hers, Self.other) && !reaches(plain, far, Self.anna))
    // Root's about somebody's home.
    let about = RecoveryScope.command(of: 0, about: Self.name("anna"))
    #expect(reaches(about, hers, Self.anna) && !reaches(about, others, Self.other))
    let there = RecoveryScope.command(of: 0, about: Self.name("disk"))
    #expect(reaches(there, far, Self.other) && !reaches(there, hers, Self.anna))
  }
}
