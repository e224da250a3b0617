// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// Accounts have got other numbers, as by usermod(8).
@Suite struct NumberChangesTests {
  private let fixture: TestFixture
  private let directory: TemporaryDirectory
  /// A number for everyone's app, and one for each user's own.
  private let app: InstalledApp
  private var registry: Registry { fixture.registry }

  private static let (anna, ben): (UInt32, UInt32) = (4_000_000_101, 4_000_000_102)
  private static let other: UInt32 = 4_000_000_103

  init() throws {
    fixture = try TestFixture()
    directory = try TemporaryDirectory()
    app = try .example("com.example.all")
    try registry.add(app)
  }

  /// The machine's accounts, by name.
  private func accounts(_ numbers: [String: UInt32]) throws -> LocalAccounts {
    let path = "\(directory.path)/passwd"
    let lines = numbers.map { "\($0):x:\($1):\($1)::/nonexistent:/bin/sh\n" }
    try lines.joined().write(toFile: path, atomically: true, encoding: .utf8)
    return LocalAccounts(path: path)
  }

  /// Everything that somebody can decide.
  private func decide(_ user: UInt32, _ name: String?, isAllowed: Bool) throws {
    try registry.put(
      ConsentRecord(app.identifier, user: user, team: app.signer, .contacts, isAllowed: isAllowed, changed: 7)
    )
    _ = try registry.add(
      GrantRecord(
        id: 0, identifier: app.identifier, user: user, team: app.signer,
        path: [Array("Users".utf8), Array("\(user)".utf8)], isWritable: true, isDirectory: true,
        identity: ObjectIdentity(inode: 1, handle: [], created: 1), granted: 1))
    try registry.choose(app, for: isAllowed ? "public.text" : "public.image", of: user)
    _ = try registry.add(
      VolumeRecord(
        name: Array("V\(user)".utf8), path: Array("/v".utf8),
        identity: ObjectIdentity(inode: 1, handle: [], created: 1), owner: user, isReadOnly: false, added: 1))
    try fixture.log(of: user)
    try note(name, for: user)
  }

  private func note(_ name: String?, for user: UInt32) throws {
    try registry.change { (database) throws(StoreError) in
      try database.run("DELETE FROM holders WHERE user = ?", .integer(Int64(user)))
      guard let name else { return }
      try database.run(
        "INSERT INTO holders (user, name) VALUES (?, ?)", .integer(Int64(user)), .text(name))
    }
  }

  /// What a number has: consents, grants, choices, volumes, and the log.
  private func decisions(_ user: UInt32) throws -> [String] {
    let consents = try registry.consents(of: user).map { "allowed \($0.isAllowed)" }
    let grants = try registry.grants().filter { $0.user == user }.map {
      String(decoding: GrantPath.path($0.path), as: UTF8.self)
    }
    let volumes = try registry.volumes().filter { $0.owner == user }.map {
      String(decoding: $0.name, as: UTF8.self)
    }
    let entries = StoreLog(fixture.store).page(LogQuery(user: user)).entries.filter { $0.user == user }
    return consents + grants + (try registry.openers(of: user).keys.sorted()) + volumes
      + entries.map { "log \($0.event.rawValue)" }
  }

  private static func decided(_ user: UInt32, isAllowed: Bool) -> [String] {
    [
      "allowed \(isAllowed)", "Users/\(user)", isAllowed ? "public.text" : "public.image", "V\(user)",
    ]
  }

  /// Refusals, volumes, and the note of what was forgotten.
  private static func refused(_ user: UInt32, isAllowed: Bool) -> [String] {
    (isAllowed ? [] : ["allowed false"]) + ["V\(user)", "log consent-reset"]
  }

  /// A refusal of one never becomes a consent of the other.
  ///
  /// What was allowed follows only if the homes say that each account is the same person.
  @Test(.enabled(if: Program.isRoot, "giving files away needs root"), arguments: [false, true])
  func exchangedNumbersTakeTheirDecisionsAlong(isProven: Bool) throws {
    let (anna, ben) = (Self.anna, Self.ben)
    try decide(anna, "anna", isAllowed: false)
    try decide(ben, "ben", isAllowed: true)
    let same = try accounts(["anna": anna, "ben": ben])
    if isProven {
      try home("anna", of: anna)
      try home("ben", of: ben)
    }
    try fixture.store.followNumbers(in: registry, same)
    #expect(try decisions(anna) == Self.decided(anna, isAllowed: false) + ["log installed"])
    if isProven {
      try give("anna", to: ben)
      try give("ben", to: anna)
    }
    let exchanged = try accounts(["anna": ben, "ben": anna])
    #expect(
      storeError { try registry.requireOwnDecisions(of: anna, exchanged) }
        == .numberOfOther(user: anna, name: "anna", number: ben))
    let expected = isProven ? Self.decided : Self.refused
    for _ in 0..<2 {
      try fixture.store.followNumbers(in: registry, exchanged)
      #expect(try decisions(ben) == expected(anna, false))
      #expect(try decisions(anna) == expected(ben, true))
      #expect(try registry.holders() == [anna: "ben", ben: "anna"])
    }
    try registry.requireOwnDecisions(of: anna, exchanged)
  }

  /// The account that has the number now has decided nothing.
  @Test func decisionsLeaveTheirNumberWithTheirAccount() throws {
    try decide(Self.anna, "anna", isAllowed: false)
    try decide(Self.other, nil, isAllowed: true)
    let new = try accounts(["anna": Self.other, "ben": Self.anna])
    try fixture.store.followNumbers(in: registry, new)
    #expect(try decisions(Self.anna) == [])
    // What nobody knows who has decided is not added to it.
    let expected = ["allowed false", "V\(Self.anna)", "log consent-reset", "log consent-reset"]
    #expect(try decisions(Self.other) == expected)
  }

  /// What the account has decided since under its new number counts.
  @Test(.enabled(if: Program.isRoot, "giving files away needs root")) func laterDecisionsCount() throws {
    try home("anna", of: Self.anna)
    try decide(Self.anna, "anna", isAllowed: true)
    try decide(Self.other, "anna", isAllowed: false)
    try give("anna", to: Self.other)
    try fixture.store.followNumbers(in: registry, try accounts(["anna": Self.other]))
    #expect(try registry.consents().map(\.isAllowed) == [false])
    #expect(try registry.grants().map(\.user) == [Self.other, Self.other])
    #expect(try registry.openers(of: Self.other).count == 2)
  }

  /// The account is gone, and another one has its number; or it is called otherwise, and nothing says so.
  @Test func formerHoldersDecisionsAreForgotten() throws {
    try decide(Self.anna, "anna", isAllowed: true)
    try decide(Self.ben, "ben", isAllowed: true)
    try decide(Self.other, "cleo", isAllowed: false)
    let now = try accounts(["eva": Self.anna, "fay": Self.other])
    // Nor does the next holder get to it before.
    #expect(
      storeError { try registry.requireOwnDecisions(of: Self.anna, now) }
        == .numberOfFormer(user: Self.anna, name: "anna"))
    // A refusal stays, and who has it still is not known.
    for user in [Self.ben, Self.other + 1] { try registry.requireOwnDecisions(of: user, now) }
    for _ in 0..<2 {
      try fixture.store.followNumbers(in: registry, now)
      #expect(try decisions(Self.anna) == ["log consent-reset"])
      #expect(try decisions(Self.other) == ["allowed false", "log consent-reset"])
      // Nobody else has that one.
      #expect(try decisions(Self.ben) == Self.decided(Self.ben, isAllowed: true) + ["log installed"])
    }
    let entries = StoreLog(fixture.store).page(LogQuery(user: Self.anna)).entries
    #expect(
      entries.map(\.detail) == [
        "another account had uid \(Self.anna) and has decided: 1 consents, 1 grants, "
          + "1 apps chosen for documents, 1 volumes"
      ])
  }

  /// The login is called otherwise, and somebody else, who has a home and containers by now, as it was.
  @Test(.enabled(if: Program.isRoot, "giving files away needs root"), arguments: [false, true])
  func nobodyGetsConsentsByAName(hasHome: Bool) throws {
    let stranger = try accounts(["eva": Self.anna, "anna": Self.other])
    if hasHome {
      try home("anna", of: Self.anna)
      let users = "\(fixture.path)/tree/Users"
      try #require(rename("\(users)/anna", "\(users)/eva") == 0)
      try home("anna", of: Self.other, number: 2)
    }
    try decide(Self.anna, "anna", isAllowed: true)
    try decide(Self.ben, "ben", isAllowed: true)
    try fixture.store.followNumbers(in: registry, stranger)
    #expect(try decisions(Self.other) == Self.refused(Self.anna, isAllowed: true))
    #expect(try decisions(Self.anna) == [])
    #expect(try decisions(Self.ben) == Self.decided(Self.ben, isAllowed: true) + ["log installed"])
  }

  /// The account got another number while its home elsewhere was away, and somebody else has the old one.
  @Test(arguments: [false, true]) func homesThatAreAwayProveNothing(isGone: Bool) throws {
    for (name, user, isAllowed) in [("anna", Self.anna, true), ("ben", Self.ben, false)] {
      try registry.change { (database) throws(StoreError) in
        try database.run(
          """
          INSERT INTO volumes (name, path, inode, handle, created, owner, read_only, added, place)
          VALUES (?1, x'2f61', 1, x'', 1, 0, 0, 1, 'Users')
          """, .bytes(Array(name.utf8)))
        try database.run(
          "INSERT INTO home_owners (volume, owner) SELECT id, ?2 FROM volumes WHERE name = ?1",
          .bytes(Array(name.utf8)), .integer(Int64(user)))
      }
      try decide(user, name, isAllowed: isAllowed)
    }
    let moved = isGone ? [:] : ["anna": Self.other]
    let now = try accounts(["eva": Self.anna, "ben": Self.ben].merging(moved) { first, _ in first })
    if !isGone {
      #expect(
        storeError { try registry.requireOwnDecisions(of: Self.anna, now) }
          == .numberOfOther(user: Self.anna, name: "anna", number: Self.other))
    }
    try registry.requireOwnDecisions(of: Self.ben, now)
    try fixture.store.followNumbers(in: registry, now)
    #expect(try decisions(Self.anna) == (isGone ? ["log consent-reset"] : []))
    #expect(try decisions(Self.other) == (isGone ? [] : Self.refused(Self.anna, isAllowed: true)))
    #expect(try decisions(Self.ben) == Self.decided(Self.ben, isAllowed: false) + ["log installed"])
  }

  /// A login can be called otherwise: the home says that the account is the same.
  @Test(.enabled(if: Program.isRoot, "giving files away needs root")) func renamedLoginsKeepTheirs() throws {
    let home = "\(fixture.path)/tree/Users/anna"
    try #require(mkdir(home, 0o711) == 0 && lchown(home, Self.anna, Self.anna) == 0)
    try decide(Self.anna, "anna", isAllowed: true)
    try fixture.store.followNumbers(in: registry, try accounts(["eva": Self.anna]))
    #expect(try decisions(Self.anna).count == 5)
    // Somebody else is called so by now.
    let successor = try accounts(["eva": Self.anna, "anna": Self.other])
    try fixture.store.followNumbers(in: registry, successor)
    try registry.requireOwnDecisions(of: Self.anna, successor)
    #expect(try decisions(Self.anna).count == 5 && decisions(Self.other) == [])
  }

  /// Nobody decides anything under a number under which somebody else has.
  @Test(.enabled(if: Program.isRoot, "accounts need root")) func nothingIsAddedToOthersDecisions() throws {
    let account = try TemporaryAccount()
    try decide(Self.anna, account.account.name, isAllowed: true)
    let failure = StoreError.numberOfOther(
      user: Self.anna, name: account.account.name, number: account.account.uid)
    #expect(storeError { try decide(Self.anna, nil, isAllowed: true) } == failure)
    #expect(storeError { try registry.choose(app, for: "public.data", of: Self.anna) } == failure)
    // Before any of it is forgotten, root is told.
    var check = try StoreCheck(fixture.store, repairing: false)
    try check.run()
    let what = "for uid \(Self.anna) by \(account.account.name)"
    #expect(check.findings.filter { $0.problem.contains(what) }.count == 1)
  }

  // MARK: Homes

  /// A home with an app, its container, and a container that was removed.
  private func home(_ name: String, of user: UInt32, number: Int = 1) throws {
    let place = "Users/\(name)"
    for path in ["", "/Applications", "/Applications/Own.app", "/Library", "/Library/Containers"] {
      try #require(mkdir("\(fixture.path)/tree/\(place)\(path)", 0o755) == 0)
    }
    var own = try InstalledApp.example("com.example.own", user: user, name: "Own")
    own.path = "\(place)/Applications/Own.app"
    // An app's path is noted once.
    if number == 1 { try registry.add(own) }
    for identifier in ["com.example.gone", "com.example.own"] {
      let path = "\(place)/Library/Containers/\(identifier)"
      let record = try registry.note(
        ContainerRecord(
          uuid: "\(identifier)-\(name)-\(number)", kind: .data,
          identifier: #require(AppIdentifier(identifier)),
          user: user, path: path, team: own.signer))
      if identifier == own.identifier.text {
        let directory = "\(fixture.path)/tree/\(path)"
        try #require(mkdir(directory, 0o700) == 0)
        let metadata = try #require(ContainerMetadata(record, gid: user))
        try Data(metadata.encoded).write(to: URL(filePath: "\(directory)/\(ContainerLayout.metadataName)"))
      } else {
        let home = try fixture.store.object(ofHomeIn: path, registry)
        _ = try registry.noteRemoval(of: record, from: home, at: 7)
      }
    }
    try give(name, to: user)
  }

  private func give(_ name: String, to user: UInt32) throws {
    let path = "\(fixture.path)/tree/Users/\(name)"
    try #require(try Program.run(["chown", "-R", "\(user):\(user)", path]).ending == .ok)
  }

  private func owners() throws -> [String: UInt32?] {
    let apps = try registry.apps().filter { $0.user != nil }.map { ($0.path, $0.user) }
    let containers = try registry.containers().map { ($0.path, UInt32?.some($0.user)) }
    let removed = try registry.removedContainers().map {
      ($0.container.path, UInt32?.some($0.container.user))
    }
    return Dictionary(uniqueKeysWithValues: apps + containers + removed)
  }

  private static func things(_ name: String, _ user: UInt32) -> [String: UInt32?] {
    [
      "Users/\(name)/Applications/Own.app": user,
      "Users/\(name)/Library/Containers/com.example.own": user,
      "Users/\(name)/Library/Containers/com.example.gone": user,
    ]
  }

  /// Both homes have the same app and container, and none of it is lost.
  @Test(.enabled(if: Program.isRoot, "giving files away needs root"), arguments: [false, true])
  func whatLiesInHomesChangesPlaces(byCheck: Bool) throws {
    let (anna, ben) = (Self.anna, Self.ben)
    try home("anna", of: anna)
    try home("ben", of: ben)
    try give("anna", to: ben)
    try give("ben", to: anna)
    if byCheck {
      var check = try StoreCheck(fixture.store, repairing: true)
      try check.run()
      let found = check.findings.filter { $0.problem.contains("is noted as an app of uid") }
      #expect(found.map(\.repaired) == [true, true])
    } else {
      try fixture.store.followNumbers(in: registry, try accounts(["anna": ben, "ben": anna]))
    }
    let expected = Self.things("anna", ben).merging(Self.things("ben", anna)) { first, _ in first }
    #expect(try owners() == expected)
  }

  /// Where the owner has another one in another home, or a home of the name was ejected, it stays as it is.
  ///
  /// Of what was removed one can have several.
  @Test(.enabled(if: Program.isRoot, "giving files away needs root"), arguments: [false, true])
  func whatCannotBeTheOwnersStays(isEjected: Bool) throws {
    try home("anna", of: Self.anna)
    if isEjected {
      try registry.noteLostHome("anna", at: "/homes")
    } else {
      try home("ben", of: Self.ben)
    }
    var expected = try owners()
    try give("anna", to: Self.ben)
    try fixture.store.followNumbers(in: registry, try accounts([:]))
    // What was removed is known to be from this home.
    expected["Users/anna/Library/Containers/com.example.gone"] = Self.ben
    #expect(try owners() == expected)
  }

  /// What was decided about an app ends with it.
  @Test func decisionsAboutAppsThatAreGivenAwayEnd() throws {
    var own = try InstalledApp.example("com.example.own", user: Self.anna, name: "Own")
    own.path = "Users/anna/Applications/Own.app"
    for isGiven in [true, false] {
      try registry.add(own)
      for user in [Self.anna, Self.ben] {
        try registry.put(
          ConsentRecord(app.identifier, user: user, team: own.signer, .photos, isAllowed: true, changed: 7))
      }
      try registry.put(
        ConsentRecord(own.identifier, user: Self.anna, team: own.signer, .photos, isAllowed: true, changed: 7)
      )
      if isGiven {
        #expect(try registry.give(own, to: Self.ben))
        #expect(try registry.remove(own.identifier, of: Self.ben, keepingData: true).path == own.path)
      } else {
        try registry.forgetStray(own)
      }
      #expect(try registry.consents(of: Self.anna).map(\.identifier) == [app.identifier])
      #expect(try registry.consents(of: Self.ben).map(\.identifier) == [app.identifier])
    }
  }
}

extension TestFixture {
  fileprivate func log(of user: UInt32) throws {
    try StoreLog(store).append([LogEntry(.installed, user: user, app: "com.example.all", time: 7)])
  }
}
