// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Daemon
internal import JSON
internal import Policy
internal import Store
internal import Testing

/// By what the next worker knows which app it is that runs.
struct RunningCopyTests {
  private static func app(
    user: UInt32? = 501, version: String = "1", team: String = "TEAM", root: [UInt8]? = [1],
    path: String = "Users/anna/Applications/Notes.app", seal: [UInt8] = [7], groups: [String] = []
  ) throws -> InstalledApp {
    InstalledApp(
      identifier: try #require(AppIdentifier("org.example.notes")), user: user, name: "Notes",
      executable: "Notes", version: version, shortVersion: version, team: team, root: root, path: path,
      seal: seal, installed: 0, groups: try groups.map { try #require(AppIdentifier($0)) })
  }

  @Test func eachOfThemTellsCopiesApart() throws {
    let copy = RunningCopy(try Self.app())
    let others = [
      try Self.app(user: nil), try Self.app(user: 502), try Self.app(team: "Team"), try Self.app(root: [2]),
      try Self.app(root: nil), try Self.app(path: "Applications/Notes.app"), try Self.app(seal: [8]),
    ]
    for other in others { #expect(RunningCopy(other) != copy, "\(other)") }
    #expect(RunningCopy(try Self.app(version: "2")) == copy)
  }

  @Test(arguments: [nil, 501] as [UInt32?], [nil, [1, 255]] as [[UInt8]?])
  func nextWorkerFindsItAsItWas(user: UInt32?, root: [UInt8]?) throws {
    let copy = RunningCopy(try Self.app(user: user, root: root, seal: Array(0...255)))
    #expect(try JSONText.decode(RunningCopy.self, from: JSONText.encode(copy)) == copy)
  }
}
