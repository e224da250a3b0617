// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

// A team whose root an administrator has replaced.

extension RemovalRegistryTests {
  /// Installs a second app in the group.
  private func installOther(_ team: Team, user: UInt32? = nil) throws -> InstalledApp {
    var other = try InstalledApp.example("com.example.other", user: user, name: "Other", groups: ["group.a"])
    (other.team, other.root) = (team.text, team.root)
    try registry.add(other)
    return other
  }

  /// A group's containers stay until both of its apps have gone, in whichever order.
  ///
  /// One is updated under the new root, and takes the containers over; the other one waits under the former
  /// root.
  @Test(arguments: [false, true]) func groupStaysForAnAppThatWaitsUnderTheFormerRoot(updatedGoesFirst: Bool)
    throws
  {
    try registry.pin("TEAM", to: [1])
    try install()
    let other = try installOther(Self.ours)
    for user in Self.users { try use(by: user) }
    // A user has another team's app in a group of that name, which keeps nothing.
    let stranger = try installOther(Self.theirs, user: 501)
    try registry.pin("TEAM", to: [9])
    try registry.update(app(team: Team("TEAM", root: [9])))
    #expect(try registry.containers(kind: .group).allSatisfy { $0.team?.root == [9] })
    let groups = Self.users.map { "group-group.a-\($0)" }
    let data = Self.users.map { "data-com.example.editor-\($0)" }
    if updatedGoesFirst {
      try uninstall()
      #expect(try Set(marked()) == Set(data))
      _ = try registry.remove(other.identifier, of: nil, keepingData: false)
    } else {
      _ = try registry.remove(other.identifier, of: nil, keepingData: false)
      #expect(try marked() == [])
      try uninstall()
    }
    #expect(try Set(marked()) == Set(data + groups))
    #expect(try registry.apps() == [stranger])
  }

  /// A container that was made for the app that waits is the group's too: the updated app keeps it.
  @Test func groupStaysForTheUpdatedApp() throws {
    try registry.pin("TEAM", to: [1])
    try install()
    let other = try installOther(Self.ours)
    try registry.pin("TEAM", to: [9])
    try registry.update(app(team: Team("TEAM", root: [9])))
    for user in Self.users { try use(by: user, team: Self.ours) }
    _ = try registry.remove(other.identifier, of: nil, keepingData: false)
    #expect(try marked() == [])
    // What the user has kept of an impostor's does not count as in use by the team's app.
    try use(by: 503, team: Self.theirs)
    #expect(try registry.doomLeft(by: #require(AppIdentifier("group.a")), of: 503, for: 503) == 1)
    #expect(try registry.doomLeft(by: #require(AppIdentifier("group.a")), of: 502, for: 502) == 0)
  }

  /// A refusal of everyone's app outlives a copy of a user's own, also while the app waits under the former
  /// root.
  @Test(arguments: [[1], [9]] as [[UInt8]]) func refusalOfEveryonesAppOutlivesACopy(root: [UInt8]) throws {
    try registry.pin("TEAM", to: [1])
    let app = try install()
    for user in Self.users {
      for (service, isAllowed) in [(PrivacyService.photos, false), (.contacts, true)] {
        try registry.put(
          ConsentRecord(
            app.identifier, user: user, team: Self.ours, service, isAllowed: isAllowed, changed: 7))
      }
    }
    try registry.pin("TEAM", to: [9])
    if root == [9] { try registry.update(self.app(team: Team("TEAM", root: [9]))) }
    try install(user: 501, team: Self.theirs)
    #expect(try registry.consents(of: 501).map(\.service) == [.photos])
    _ = try registry.remove(app.identifier, of: 501, keepingData: false)
    #expect(try registry.consents(of: 501).map(\.service) == [.photos])
    #expect(try registry.consents(of: 502).count == 2)
  }
}
