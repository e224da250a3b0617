// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import TestSupport
internal import Testing

/// Attempts to get out of an app's view, each of which succeeds outside of one.
@Suite(
  .enabled(if: EscapeFixture.isPossible, "it takes root, /dev/fuse, bubblewrap and a C compiler"), .serialized
)
struct EscapeTests {
  /// All of them, or those whose names have in them what INSULA_ATTEMPTS says, for who works on some.
  private static func all() throws -> [Attempt] {
    let all = try Attempt.lines + Attempt.programs(EscapeFixture.program())
    guard let words = ProcessInfo.processInfo.environment["INSULA_ATTEMPTS"]?.split(separator: ",") else {
      return all
    }
    return all.filter { attempt in words.contains { attempt.name.contains($0) } }
  }

  /// What takes kernel passthrough outside, which a user's own daemon has not.
  private static let notRootless: Set = ["backing_file_of_its_own_choice"]

  /// Makes all attempts, inside and usually outside.
  private func make(
    _ attempts: [Attempt], in fixture: EscapeFixture, outside makesOutside: Bool = true,
    allowing allowed: Set<String> = []
  ) throws {
    for attempt in attempts {
      if makesOutside {
        let outside = try fixture.makeOutside(attempt)
        #expect(!outside.gains.isEmpty, "\(attempt.name), outside, where it should succeed: \(outside)")
      }
      let inside = try fixture.make(attempt, inside: true)
      #expect(inside.result.errors.contains("tried"), "\(attempt.name) was not made: \(inside)")
      if !allowed.contains(attempt.name) {
        #expect(inside.gains.isEmpty, "\(attempt.name) SUCCEEDED: \(inside)")
      }
    }
  }

  @Test(arguments: [false, true]) func noDirectoryComesAsAStandardStream(rootless: Bool) throws {
    let fixture = try EscapeFixture(rootless: rootless)
    for attempt in Attempt.directories {
      let outside = try fixture.makeOutside(attempt)
      #expect(!outside.gains.isEmpty, "\(attempt.name), outside, where it should succeed: \(outside)")
      let inside = try fixture.make(attempt, inside: true)
      #expect(inside.gains.isEmpty && inside.result.status == 2, "\(attempt.name): \(inside)")
    }
  }

  @Test func thereAreEnoughOfThem() throws {
    let attempts = try Self.all()
    #expect(attempts.count >= 150)
    #expect(Set(attempts.map(\.name)).count == attempts.count)
  }

  @Test(arguments: [false, true]) func noneSucceeds(rootless: Bool) throws {
    let attempts = try Self.all().filter { !rootless || !Self.notRootless.contains($0.name) }
    try make(attempts, in: EscapeFixture(rootless: rootless))
  }

  /// The network is all that an app gets by being entitled to it.
  ///
  /// With it come the names of local sockets, which the kernel shows to all who share it; to the sockets
  /// themselves they lead nobody.
  @Test func noneSucceedsWithTheNetwork() throws {
    let fixture = try EscapeFixture(entitlements: [
      (key: "com.apple.security.network.client", value: "<true/>")
    ])
    try make(
      Self.all(), in: fixture, outside: false, allowing: ["loopback", "any_address", "names_of_all_sockets"])
  }
}
