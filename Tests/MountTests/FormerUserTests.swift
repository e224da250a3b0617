// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// The number of an account that is gone is given to somebody else: what its former holder has decided must
/// not be in effect for them.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct FormerUserTests {
  private static let app = "org.example.notes"

  private let shop: AppShop
  private let anna: TemporaryAccount
  private let ben: TemporaryAccount

  init() throws {
    shop = try AppShop()
    (anna, ben) = (try TemporaryAccount(), try TemporaryAccount())
    try shop.succeed("install", try shop.make("Notes", version: "1.0"))
    let common = shop.mounted.path("Users/Shared/common")
    try #require(try Program.run(["install", "-d", "-m", "777", common]).status == 0)
    for account in [anna, ben] {
      try shop.succeed("user", "add", account.account.name)
      for words in [
        ["consent", "allow", Self.app, "contacts"], ["handlers", ".txt", "--set", Self.app],
        ["grant", Self.app, shop.mounted.path("Users/Shared/common"), "--read-only"],
        ["path", Self.app, "home"],
      ] {
        let result = try shop.run(as: account, words)
        try #require(result.status == 0, "\(words): \(result.errors)")
      }
    }
  }

  /// Sends a line to the daemon, as a program of somebody's own would; root's if nobody is given.
  private func ask(_ line: String, as account: TemporaryAccount?) throws -> String {
    let script = """
      import socket, sys
      s = socket.socket(socket.AF_UNIX)
      s.connect(sys.argv[1])
      s.sendall(sys.argv[2].encode() + b"\\n")
      print(s.makefile().readline())
      """
    let become = account.map {
      ["setpriv", "--reuid=\($0.account.uid)", "--regid=\($0.account.gid)", "--clear-groups"]
    }
    let words = ["timeout", "60", "python3", "-c", script, try shop.mounted.socket(), line]
    let result = try Program.run((become ?? []) + words)
    return result.output + result.errors
  }

  /// How many rows the registry has of a user: consents, chosen apps, grants and containers.
  private func rows(_ uid: UInt32) throws -> [Int] {
    let counts = ["consents", "openers", "grants", "containers"].map { table in
      "SELECT count(*) FROM \(table) WHERE user = \(uid);"
    }
    return try sql(counts.joined()).split(separator: "\n").compactMap { Int($0) }
  }

  private func sql(_ text: String) throws -> String {
    let result = try Program.run(["sqlite3", shop.mounted.store + "/state/insula.db", text])
    try #require(result.status == 0, "\(result.errors)")
    return result.output
  }

  private func state(of account: TemporaryAccount) throws -> String {
    let result = try shop.run(as: account, "consent", "list", Self.app, "contacts")
    try #require(result.status == 0, "\(result.errors)")
    return try shop.run(as: account, "grants").output + result.output
  }

  @Test(arguments: [true, false]) func nothingIsLeftToTheNextHolder(isMounted: Bool) throws {
    let before = try state(of: ben)
    let (hers, his) = (try rows(anna.account.uid), try rows(ben.account.uid))
    try #require(hers == [1, 1, 1, 1] && his == hers)
    if !isMounted { try shop.succeed("unmount") }
    try shop.succeed("user", "remove", anna.account.name, "--delete-home")
    #expect(try rows(anna.account.uid) == [0, 0, 0, 0] && rows(ben.account.uid) == his)
    try shop.succeed("user", "add", anna.account.name)
    if !isMounted { try shop.mounted.mount() }
    let now = try state(of: anna)
    #expect(!now.contains("authorized") && !now.contains("common"), "\(now)")
    #expect(try state(of: ben) == before)
    try shop.expectNothingToComplainAbout()
  }

  /// By root's own hand, or in a removal that was interrupted.
  @Test func homesThatWentOtherwiseLeaveNothingToTheNextHolder() throws {
    try shop.succeed("unmount")
    for account in [anna, ben] {
      let home = shop.mounted.backing("Users/\(account.account.name)")
      try #require(try Program.run(["rm", "-r", home]).status == 0)
    }
    try shop.succeed("user", "add", anna.account.name)
    #expect(try rows(anna.account.uid).prefix(3) == [0, 0, 0])
    #expect(try rows(ben.account.uid).prefix(3) == [1, 1, 1])
    try shop.mounted.mount()
    try shop.succeed("user", "add", ben.account.name)
    #expect(try rows(ben.account.uid).prefix(3) == [0, 0, 0])
    for account in [anna, ben] { #expect(try !state(of: account).contains("authorized")) }
  }

  /// Also where the next holder's home is elsewhere.
  @Test func homesElsewhereBeginWithNothing() throws {
    try shop.succeed("unmount")
    let home = shop.mounted.backing("Users/\(anna.account.name)")
    try #require(try Program.run(["rm", "-r", home]).status == 0)
    try shop.mounted.mount()
    #expect(try rows(anna.account.uid).prefix(3) == [1, 1, 1])
    try shop.mounted.temporary.makeDirectory("homes", mode: 0o700)
    let source = shop.mounted.temporary.appending("homes")
    try shop.succeed("user", "add", anna.account.name, "--home", source)
    #expect(try rows(anna.account.uid).prefix(3) == [0, 0, 0])
    #expect(try rows(ben.account.uid).prefix(3) == [1, 1, 1])
    #expect(try !state(of: anna).contains("authorized"))
  }

  /// Who has another home keeps what they have decided.
  @Test func decisionsStayWhileThereIsAHome() throws {
    let her = anna.account.name
    try shop.succeed("unmount")
    let users = shop.mounted.backing("Users")
    try #require(try Program.run(["cp", "-a", "\(users)/\(her)", "\(users)/other"]).status == 0)
    try shop.mounted.mount()
    try shop.succeed("user", "remove", her, "--delete-home")
    #expect(try rows(anna.account.uid).prefix(3) == [1, 1, 1])
    try shop.succeed("user", "remove", "other", "--delete-home")
    #expect(try rows(anna.account.uid).prefix(3) == [0, 0, 0])
    #expect(try rows(ben.account.uid) == [1, 1, 1, 1])
    // Nobody but root has somebody else's forgotten, and not even root while there is a home.
    let line =
      #"{"verb":"order","order":{"action":"forget","user":\#(ben.account.uid),"#
      + #""allowsDowngrade":false,"keepsData":false}}"#
    #expect(try ask(line, as: anna).contains("only root may do this"))
    #expect(try ask(line, as: nil).contains("\"ok\":true"))
    #expect(try rows(ben.account.uid) == [1, 1, 1, 1])
  }

  /// A home is given to another account: its former owner's number may be anybody's from then on.
  @Test func adoptionForgetsTheFormerOwner() throws {
    try shop.succeed("unmount")
    let former: UInt32 = 2_000_000_011
    let home = shop.mounted.backing("Users/\(anna.account.name)")
    try #require(try Program.run(["chown", "-R", "\(former):\(former)", home]).status == 0)
    _ = try sql(
      ["consents", "openers", "grants", "containers"].map { table in
        "UPDATE \(table) SET user = \(former) WHERE user = \(anna.account.uid);"
      }.joined())
    try #require(try rows(former) == [1, 1, 1, 1])
    // A volume and something removed, of each.
    for user in [former, ben.account.uid] {
      _ = try sql(
        """
        INSERT INTO volumes (name, path, inode, handle, created, owner, read_only, added)
          VALUES (x'61', x'2f61', 1, x'', 1, \(user), 0, 1);
        INSERT INTO removed (uuid, kind, identifier, user, path, removed)
          VALUES ('removed-\(user)', 'data', 'org.example.x', \(user), 'Users/x/Library/Containers/x', 1);
        """)
    }
    try shop.succeed("user", "add", anna.account.name, "--adopt")
    #expect(try rows(former) == [0, 0, 0, 0])
    #expect(try others(former) == [0, 0] && others(ben.account.uid) == [1, 1])
    #expect(try rows(anna.account.uid) == [0, 0, 0, 1] && rows(ben.account.uid) == [1, 1, 1, 1])
  }

  /// How many volumes, and removed containers that can be restored, there are of a user.
  private func others(_ uid: UInt32) throws -> [Int] {
    let counts = ["volumes WHERE owner =", "removed WHERE deleting = 0 AND user ="].map {
      "SELECT count(*) FROM \($0) \(uid);"
    }
    return try sql(counts.joined()).split(separator: "\n").compactMap { Int($0) }
  }

  /// Volumes leave the tree at once, if it is mounted, and what was removed can't be restored by the next
  /// holder.
  @Test(arguments: [true, false]) func volumesAndRemovedDataAreNobodysAfterwards(isMounted: Bool) throws {
    for account in [anna, ben] {
      let name = "disk-\(account.account.name)"
      try shop.mounted.temporary.makeDirectory(name, mode: 0o755)
      let path = shop.mounted.temporary.appending(name)
      try #require(chown(path, account.account.uid, account.account.gid) == 0)
      let added = try shop.run(as: account, "volume", "add", path)
      try #require(added.status == 0, "\(added.errors)")
    }
    try shop.succeed("uninstall", Self.app)
    try #require(try others(anna.account.uid) == [1, 1] && others(ben.account.uid) == [1, 1])
    if !isMounted { try shop.succeed("unmount") }
    try shop.succeed("user", "remove", anna.account.name, "--delete-home")
    #expect(try others(anna.account.uid) == [0, 0] && others(ben.account.uid) == [1, 1])
    if !isMounted { try shop.mounted.mount() }
    try shop.succeed("user", "add", anna.account.name)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: shop.mounted.path("Volumes")) == [
        "disk-\(ben.account.name)"
      ])
    for words in [["volume", "list"], ["removed", "list"]] {
      let hers = try shop.run(as: anna, words + ["--json"])
      let his = try shop.run(as: ben, words + ["--json"])
      #expect(hers.status == 0 && hers.output.filter { !$0.isWhitespace } == "[]", "\(hers)")
      #expect(
        his.status == 0 && his.output.contains("\(words[0] == "volume" ? "disk-" : Self.app)"), "\(his)")
    }
    let restored = try shop.run(as: anna, "removed", "restore", "1")
    #expect(restored.status == 1, "\(restored)")
  }
}
