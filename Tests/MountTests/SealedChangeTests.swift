// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Nothing changes an installed app.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct SealedChangeTests {
  /// What one way to change a bundle was to get, and got.
  struct Attempt {
    let name: String
    let expected: String
    let got: String
    let hasChanged: Bool
  }

  private static let program = Checkout.path("Tests/Fixtures/ways-to-change.py")

  private func attempts(_ words: String...) throws -> [Attempt] {
    let result = try Program.run(["python3", Self.program] + words)
    #expect(result.status == 0, "\(result.errors)")
    return result.output.split(separator: "\n").map { line in
      let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
      return Attempt(name: fields[0], expected: fields[1], got: fields[2], hasChanged: fields[3] == "changed")
    }
  }

  /// What else some get, because their way ends before anyone looks at the seal.
  private func others(_ user: UInt32, isUsers: Bool) -> [String: String] {
    // The root of the tree is sealed, and what is mounted has no other name.
    if !isUsers {
      return ["exchange its directory": "EROFS", "rename its home": "EXDEV", "exchange its home": "EXDEV"]
    }
    guard user != 0 else { return [:] }
    let owner = ["exchange its home": "EACCES"]
    guard user != 54321 else { return owner }
    // Linux itself asks whose they are; and a home is nobody else's to put something in.
    return owner.merging([
      "link a link out": "EPERM", "set flags as chattr does": "EPERM", "set flags of a directory": "EPERM",
      "exchange its directory": "EACCES",
    ]) { $1 }
  }

  /// Whose app: root tries both, since root may go anywhere, and its owner and a stranger one.
  @Test(arguments: [(0, false), (0, true), (54321, true), (54322, true)] as [(UInt32, Bool)])
  func noWayToChangeItWorks(user: UInt32, isUsers: Bool) throws {
    let fixture = try SealedFixture()
    let home = isUsers ? SealedFixture.home : ""
    let backing = fixture.backing(isUsers ? SealedFixture.userApp : SealedFixture.localApp)
    let ways = try attempts(
      "\(user)", fixture.path(home), fixture.path("Users/Shared/work/outside"), backing)
    #expect(ways.count >= (user == 0 ? 110 : 95))
    let others = others(user, isUsers: isUsers)
    for way in ways {
      #expect(way.got == others[way.name] ?? way.expected, "\(way.name)")
      #expect(!way.hasChanged, "\(way.name)")
    }
    #expect(try fixture.mounted.count("sealRefusals") == 0)
  }

  /// Each of them works where nothing is sealed, so none of them fails for a reason of its own.
  @Test(arguments: [0, 54321] as [UInt32])
  func everyWayWorksOnACopy(user: UInt32) throws {
    let fixture = try SealedFixture()
    for way in try attempts(
      "\(user)", fixture.path(SealedFixture.home), fixture.path("Users/Shared/work/outside"), "-")
    {
      #expect(way.got == "0", "\(way.name)")
    }
  }
}
