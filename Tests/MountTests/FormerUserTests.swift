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

  // MARK: What was logged and thrown away

  /// Throws something away, and has something noted in the log of what was refused and of what was done.
  private func leaveTraces(_ account: TemporaryAccount) throws {
    let own = "\(shop.mounted.point)/.Trash/\(account.account.uid)"
    let client = try Client(uid: account.account.uid, gid: account.account.gid)
    try #require(try client.errno("mkdir", own, "448") == 0)
    try #require(try client.errno("mkdir", own + "/deep", "448") == 0)
    try #require(try client.run("create", own + "/deep/letter").errno == 0)
    // The name of another one's trash is nobody else's: that is refused, and noted.
    let number = account === anna ? ben.account.uid : anna.account.uid
    #expect(try client.errno("mkdir", "\(shop.mounted.point)/.Trash/\(number)x", "448") == EPERM)
    try #require(try client.errno("close all") == 0)
    #expect(try eventually { try traces(account.account.uid) == ["trash", "denied", "done"] })
  }

  private func traces(_ uid: UInt32) throws -> [String] {
    [
      ("trash", "/tree/.Trash/\(uid)"), ("denied", "/state/log/\(uid).denied"),
      ("done", "/state/log/\(uid).done"),
    ].filter { access(shop.mounted.store + $0.1, F_OK) == 0 }.map(\.0)
  }

  /// The attack: the next holder of the number reads what the former one has thrown away, and the names of
  /// their files in the log.
  @Test(arguments: [true, false]) func logAndTrashGoWithTheHome(isMounted: Bool) throws {
    for account in [anna, ben] { try leaveTraces(account) }
    // One that is seen already is gone for whoever looks again.
    let trash = shop.mounted.path(".Trash/\(anna.account.uid)")
    #expect(access(trash + "/deep/letter", F_OK) == 0)
    if !isMounted { try shop.succeed("unmount") }
    try shop.succeed("user", "remove", anna.account.name, "--delete-home")
    #expect(try traces(anna.account.uid) == [] && traces(ben.account.uid) == ["trash", "denied", "done"])
    if !isMounted { try shop.mounted.mount() }
    try shop.succeed("user", "add", anna.account.name)
    #expect(access(trash, F_OK) == -1 && Errno.last == .ENOENT)
    let log = try shop.run(as: anna, "log")
    #expect(log.status == 0 && !log.output.contains("common"), "\(log)")
    #expect(try shop.run(as: ben, "log").output.contains("common"))
    // Root is told that it was done, and the store keeps nothing of it.
    #expect(try shop.mounted.run("log", "--store", shop.mounted.store).output.contains("no home any more"))
    #expect(try eventually { try shop.mounted.temporary.names(in: "store/state/staging").isEmpty })
    try shop.expectNothingToComplainAbout()
  }

  /// Also if the home went by another way.
  @Test(arguments: [true, false]) func logAndTrashGoBeforeTheNextHome(isMounted: Bool) throws {
    for account in [anna, ben] { try leaveTraces(account) }
    try shop.succeed("unmount")
    for account in [anna, ben] {
      let home = shop.mounted.backing("Users/\(account.account.name)")
      try #require(try Program.run(["rm", "-r", home]).status == 0)
    }
    if isMounted { try shop.mounted.mount() }
    try shop.succeed("user", "add", anna.account.name)
    #expect(try traces(anna.account.uid) == [] && traces(ben.account.uid) == ["trash", "denied", "done"])
  }

  /// The attack: by the request of 'user remove' an account has deleted what the log says of it, and what
  /// root has decided about its apps.
  ///
  /// Of two, one has a home and one has none.
  @Test func nobodyHasThemselvesForgotten() throws {
    let cleo = try TemporaryAccount()
    for account in [ben, cleo] {
      let allowed = try shop.run(as: account, "consent", "allow", Self.app, "photos")
      try #require(allowed.status == 0, "\(allowed.errors)")
      try leaveTraces(account)
      try shop.succeed("consent", "deny", Self.app, "photos", "--user", account.account.name)
    }
    func log() throws -> [String] {
      try [ben, cleo].map {
        try shop.mounted.run("log", "--user", $0.account.name, "--store", shop.mounted.store).output
      }
    }
    #expect(try eventually { try log().allSatisfy { $0.contains(", by root] denied") } })
    let before = try log()
    for account in [ben, cleo] {
      let rows = try rows(account.account.uid)
      for (action, more) in [("forget", ""), ("forget", #","home":"x""#), ("forgetHome", #","home":"x""#)] {
        let line =
          #"{"verb":"order","order":{"action":"\#(action)","user":\#(account.account.uid),"#
          + #""allowsDowngrade":false,"keepsData":false\#(more)}}"#
        let answer = try ask(line, as: account)
        #expect(answer.contains("only root may do this"), "\(answer)")
      }
      #expect(try self.rows(account.account.uid) == rows)
      #expect(try traces(account.account.uid) == ["trash", "denied", "done"])
      let state = try shop.run(as: account, "consent", "list", Self.app, "photos")
      #expect(state.output.contains("denied"), "\(state)")
    }
    #expect(try log() == before)
  }

  // MARK: Users without a home

  /// Who has used the store without a home keeps what they have decided when they get one.
  @Test(arguments: [true, false]) func decisionsStayWithTheFirstHome(isMounted: Bool) throws {
    let cleo = try [TemporaryAccount(), TemporaryAccount()]
    for account in cleo {
      for words in [
        ["consent", "deny", Self.app, "photos"], ["handlers", ".txt", "--set", Self.app],
      ] {
        let result = try shop.run(as: account, words)
        try #require(result.status == 0, "\(words): \(result.errors)")
      }
      let name = "disk-\(account.account.name)"
      try shop.mounted.temporary.makeDirectory(name, mode: 0o755)
      let path = shop.mounted.temporary.appending(name)
      try #require(chown(path, account.account.uid, account.account.gid) == 0)
      let added = try shop.run(as: account, "volume", "add", path)
      try #require(added.status == 0, "\(added.errors)")
      try leaveTraces(account)
    }
    // The number of the second one was somebody else's when that was decided.
    _ = try sql("UPDATE holders SET name = 'somebody' WHERE user = \(cleo[1].account.uid)")
    let trash = shop.mounted.path(".Trash/\(cleo[0].account.uid)/deep/letter")
    if !isMounted { try shop.succeed("unmount") }
    for account in cleo { try shop.succeed("user", "add", account.account.name) }
    #expect(try rows(cleo[0].account.uid) == [1, 1, 0, 0] && others(cleo[0].account.uid) == [1, 0])
    #expect(try traces(cleo[0].account.uid) == ["trash", "denied", "done"])
    #expect(try rows(cleo[1].account.uid) == [0, 0, 0, 0] && others(cleo[1].account.uid) == [0, 0])
    #expect(try traces(cleo[1].account.uid) == [])
    if !isMounted { try shop.mounted.mount() }
    let consents = try cleo.map { try shop.run(as: $0, "consent", "list", Self.app, "photos").output }
    #expect(consents.map { $0.contains("denied") } == [true, false], "\(consents)")
    #expect(access(trash, F_OK) == 0)
    // The home goes, and with it all of that.
    try shop.succeed("user", "remove", cleo[0].account.name, "--delete-home")
    #expect(try rows(cleo[0].account.uid) == [0, 0, 0, 0] && others(cleo[0].account.uid) == [0, 0])
    #expect(try traces(cleo[0].account.uid) == [])
  }

  /// Of whom nothing is noted, nothing is deleted that they may have thrown away themselves.
  @Test func trashOfAnUnknownHolderStays() throws {
    let cleo = try TemporaryAccount()
    let own = "\(shop.mounted.point)/.Trash/\(cleo.account.uid)"
    let client = try Client(uid: cleo.account.uid, gid: cleo.account.gid)
    try #require(try client.errno("mkdir", own, "448") == 0)
    try shop.succeed("user", "add", cleo.account.name)
    #expect(try client.errno("list", own) == 0)
    try shop.succeed("user", "remove", cleo.account.name, "--delete-home")
    #expect(try client.errno("list", own) == ENOENT)
  }

  // MARK: Homes that are away

  /// A home elsewhere is away while the store is not mounted, and its login may have got another name.
  @Test(arguments: [true, false]) func aHomeThatIsAwayIsItsOwnersByNumber(isKnown: Bool) throws {
    let (dora, emil) = (try TemporaryAccount(), try TemporaryAccount())
    try shop.mounted.temporary.makeDirectory("homes", mode: 0o700)
    for account in [dora, emil] {
      try shop.succeed(
        "user", "add", account.account.name, "--home", shop.mounted.temporary.appending("homes"))
      for words in [["consent", "deny", Self.app, "photos"], ["path", Self.app, "home"]] {
        let result = try shop.run(as: account, words)
        try #require(result.status == 0, "\(words): \(result.errors)")
      }
    }
    let owners = "SELECT owner FROM home_owners ORDER BY owner"
    #expect(
      try sql(owners) == [dora, emil].map { "\($0.account.uid)\n" }.sorted().joined())
    let before = try rows(dora.account.uid)
    try #require(before == [1, 0, 0, 1])
    try shop.succeed("unmount")
    // As it is with homes of an earlier version.
    if !isKnown { _ = try sql("DELETE FROM home_owners") }
    try dora.renamed { renamed in
      let added = try shop.mounted.run("user", "add", renamed.name, "--store", shop.mounted.store)
      // By what is not known, nothing is forgotten, and nobody gets what was another's.
      #expect(added.status == (isKnown ? 0 : 1), "\(added)")
      #expect(isKnown || added.errors.contains("its owner is not known"), "\(added)")
      #expect(try rows(dora.account.uid) == before && rows(emil.account.uid) == before)
    }
    try shop.mounted.mount()
    #expect(try eventually { try sql(owners).split(separator: "\n").count == 2 })
    let denied = try shop.run(as: dora, "consent", "list", Self.app, "photos")
    #expect(denied.output.contains("denied"), "\(denied)")
    // Somebody of whom nothing is noted gets a home all the same.
    let newcomer = try TemporaryAccount()
    try shop.succeed("unmount")
    _ = try sql("DELETE FROM home_owners")
    try shop.succeed("user", "add", newcomer.account.name)
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
    // The number is still her account's, which has another name than that home.
    try shop.succeed("user", "remove", "other", "--delete-home")
    #expect(try rows(anna.account.uid) == [1, 1, 1, 0])
    try shop.succeed("user", "add", her)
    #expect(try rows(anna.account.uid) == [1, 1, 1, 0])
    try shop.succeed("user", "remove", her, "--delete-home")
    #expect(try rows(anna.account.uid) == [0, 0, 0, 0])
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
    let listed = try Program.run(
      ["setpriv", "--reuid=\(ben.account.uid)", "--clear-groups", "ls", shop.mounted.path("Volumes")])
    #expect(listed.output == "disk-\(ben.account.name)\n", "\(listed)")
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
