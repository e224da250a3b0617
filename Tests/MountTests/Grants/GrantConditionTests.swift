// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A grant that is given again after a restore: what was looked at before may be taken back by then.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct GrantConditionTests {
  private let fixture: RunFixture
  private var documents: String { fixture.mounted.path("Users/\(fixture.user.name)/Documents") }

  init() throws { fixture = try RunFixture() }

  private func shell(_ script: String) throws -> String {
    let result = try fixture.shell("cd '\(documents)'\n\(script)")
    try #require(result.status == 0, "\(result.errors)")
    return result.output
  }

  private func grants() throws -> [[String: Any]] {
    let listed = try shell("insula grants --json")
    return try #require(try JSONSerialization.jsonObject(with: Data(listed.utf8)) as? [[String: Any]])
  }

  private func places() throws -> [String] {
    try grants().map { grant in
      let path = grant["path"] as? String ?? ""
      return "\(grant["access"] ?? "") \(path.split(separator: "/").last ?? "")"
    }
  }

  @Test func grantTakesThePlaceOfOneThatIsStillThere() throws {
    _ = try shell("mkdir one two three; for d in one three; do insula grant $APP $d --read-only; done")
    let granted = try grants()
    let first = try #require(granted.first)
    let number = try #require(first["number"] as? Int)
    let (team, root) = (try #require(first["team"] as? String), try #require(first["root"] as? String))
    func ask(_ team: String, _ root: String, insteadOf number: Int?) throws -> String {
      try fixture.ask(
        """
        {"verb":"grant","grant":{"action":"grant","identifier":"\(RunFixture.identifier)",\
        "path":"Users/\(fixture.user.name)/Documents/two","access":"read-write",\
        "condition":{"team":{"text":"\(team)","root":"\(root)"}\
        \(number.map { ",\"former\":\($0)" } ?? "")}}}
        """)
    }
    let before = ["read-only one", "read-only three"]
    for former in [number, nil] {
      #expect(try ask("OTHERTEAM1", root, insteadOf: former).contains("another team's"))
      #expect(
        try ask(team, String(repeating: "0", count: 64), insteadOf: former).contains("another team's"))
    }
    #expect(try ask(team, root, insteadOf: number + 1000).contains("has no grant"))
    #expect(try places() == before)
    // It gives no more access than the one before.
    #expect(try ask(team, root, insteadOf: number).contains(#""ok":true"#))
    #expect(try places() == ["read-only three", "read-only two"])
    #expect(try ask(team, root, insteadOf: number).contains("has no grant"))
    let now = try #require(try grants().last?["number"] as? Int)
    _ = try shell("insula revoke $APP two")
    #expect(try ask(team, root, insteadOf: now).contains("has no grant"))
    #expect(try places() == ["read-only three"])
    #expect(try ask(team, root, insteadOf: nil).contains(#""ok":true"#))
    #expect(try places() == ["read-only three", "read-write two"])
  }
}
