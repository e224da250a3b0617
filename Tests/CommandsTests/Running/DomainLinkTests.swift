// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Testing

/// The links in a sandbox's root, where the tree is mounted in one of their places.
@Suite struct DomainLinkTests {
  private let all = ["Applications", "Library", "Network", "System", "Users", "Volumes"]

  @Test func treeThatCoversTheSocketLeavesNone() {
    for path in ["/run/insula", "/run/insula/x", "/run"] { #expect(Sandbox.coversSocket(path)) }
    for path in ["/insula", "/run/insula2", "/runs"] { #expect(!Sandbox.coversSocket(path)) }
  }

  @Test func placeOfTheTreeIsNoLink() {
    #expect(Sandbox.domainNames(besides: "/insula") == all)
    #expect(Sandbox.domainNames(besides: "/home/anna/Insula") == all)
    #expect(Sandbox.domainNames(besides: "/UsersOfOurs") == all)
    for name in all {
      let others = all.filter { $0 != name }
      #expect(Sandbox.domainNames(besides: "/\(name)") == others)
      #expect(Sandbox.domainNames(besides: "/\(name)/insula") == others)
    }
  }
}
