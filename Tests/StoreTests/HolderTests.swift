// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// Whose decisions are for a number that has no home, when an account of the number gets one.
@Suite struct HolderTests {
  private let fixture: TestFixture
  private let app: InstalledApp
  private var registry: Registry { fixture.registry }

  init() throws {
    fixture = try TestFixture()
    app = try InstalledApp.example()
    try fixture.registry.add(app)
  }

  private func decide(_ user: UInt32) throws {
    try registry.put(
      ConsentRecord(app.identifier, user: user, team: app.signer, .photos, isAllowed: false, changed: 7))
  }

  private func takeBack(_ user: UInt32) throws {
    try registry.removeConsent(app.identifier, of: user, .photos)
  }

  private func forgotten(_ user: UInt32, for name: String) throws -> ForgottenParts {
    try fixture.store.parts(toForgetOf: FormerUser(user, successor: name), in: registry)
  }

  /// What the former account of a number had taken back says nothing of the next one's.
  @Test(.enabled(if: Program.isRoot, "accounts need root")) func theLastDecisionGoesWithItsName() throws {
    let (anna, ben) = (try TemporaryAccount(), try TemporaryAccount())
    let (user, name) = (anna.account.uid, anna.account.name)
    try decide(user)
    try decide(ben.account.uid)
    try takeBack(user)
    try anna.renamed { successor in
      try decide(user)
      #expect(try forgotten(user, for: successor.name) == [])
    }
    // The name is given again, to somebody who has decided nothing.
    #expect(try forgotten(user, for: name) == .all)
    #expect(try forgotten(ben.account.uid, for: ben.account.name) == [])
    #expect(try forgotten(ben.account.uid, for: name) == [], "ben's account is there")
  }

  /// Two accounts of one number are one person for every file.
  @Test(.enabled(if: Program.isRoot, "accounts need root")) func accountsOfOneNumberAreOne() throws {
    let twin: TemporaryAccount
    let user: UInt32
    do {
      let anna = try TemporaryAccount()
      user = anna.account.uid
      try decide(user)
      twin = try TemporaryAccount(called: TemporaryAccount.unusedName(), twin: anna)
      try #require(twin.account.uid == user && Account.numbered(user)?.name == anna.account.name)
      #expect(try forgotten(user, for: twin.account.name) == [])
    }
    // She is gone, and her twin gets a home.
    #expect(try forgotten(user, for: twin.account.name) == .all)
  }

  /// As accounts of a directory service: nobody knows who has decided, and nothing of theirs is taken.
  @Test func unknownAccountsForgetDecisionsAtMost() throws {
    let (user, other) = (UInt32(4_000_000_001), UInt32(4_000_000_002))
    try decide(user)
    #expect(try forgotten(user, for: "eva") == [.decisions, .log])
    #expect(try forgotten(other, for: "eva") == .log)
  }
}
