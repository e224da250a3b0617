// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Homes elsewhere that are ejected and come back: all that their owners have in the store stays theirs, and
/// nobody else gets it.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct ReturningHomeTests {
  private static let app = "org.example.notes"

  private let shop: AppShop
  private let dora: TemporaryAccount
  private let emil: TemporaryAccount

  init() throws {
    shop = try AppShop()
    (dora, emil) = (try TemporaryAccount(), try TemporaryAccount())
    let made = [("Notes", "a"), ("Third", "c"), ("Own", "o")]
    for (name, directory) in made { _ = try shop.make(name, version: "1.0", in: directory) }
    try shop.succeed("install", bundle("Notes", "a"))
    try shop.succeed("install", bundle("Third", "c"))
    let common = shop.mounted.path("Users/Shared/common")
    try #require(try Program.run(["install", "-d", "-m", "777", common]).status == 0)
    for account in [dora, emil] { try settle(account) }
    try shop.succeed("uninstall", "org.example.third")
    for account in [dora, emil] { #expect(try numbers(account).count == 1) }
  }

  private func bundle(_ name: String, _ directory: String) -> String {
    shop.mounted.temporary.appending("\(directory)/\(name).app")
  }

  private func source(_ account: TemporaryAccount) -> String {
    shop.mounted.temporary.appending("homes-\(account.account.name)")
  }

  /// Gives somebody a home elsewhere, and has them do everything in the store that is kept for them.
  private func settle(_ account: TemporaryAccount) throws {
    let name = account.account.name
    try shop.mounted.temporary.makeDirectory("homes-\(name)", mode: 0o700)
    try shop.succeed("user", "add", name, "--home", source(account))
    try shop.mounted.temporary.makeDirectory("disk-\(name)", mode: 0o755)
    let disk = shop.mounted.temporary.appending("disk-\(name)")
    try #require(chown(disk, account.account.uid, account.account.gid) == 0)
    for words in [
      ["install", bundle("Own", "o"), "--user", name], ["path", "org.example.own", "home"],
      ["path", Self.app, "home"], ["path", "org.example.third", "home"],
      ["consent", "deny", Self.app, "photos"], ["consent", "allow", Self.app, "contacts"],
      ["handlers", ".txt", "--set", Self.app],
      ["grant", Self.app, shop.mounted.path("Users/Shared/common"), "--read-only"],
      ["grant", Self.app, shop.mounted.path("Users/\(name)/Documents"), "--read-write"],
      ["volume", "add", disk],
    ] { _ = try run(account, words) }
    let trash = "\(shop.mounted.point)/.Trash/\(account.account.uid)"
    let client = try Client(uid: account.account.uid, gid: account.account.gid)
    try #require(try client.errno("mkdir", trash, "448") == 0)
    try #require(try client.run("create", trash + "/letter").errno == 0)
    #expect(try client.errno("mkdir", trash + "x", "448") == EPERM)
    try #require(try client.errno("close all") == 0)
    let log = "\(shop.mounted.store)/state/log/\(account.account.uid).denied"
    #expect(eventually { access(log, F_OK) == 0 })
  }

  private func run(_ account: TemporaryAccount, _ words: [String]) throws -> String {
    let result = try shop.run(as: account, words)
    try #require(result.status == 0, "\(words): \(result)")
    return result.output
  }

  /// All that somebody has in the store besides the home.
  private func state(_ account: TemporaryAccount) throws -> [String] {
    let words = [
      ["consent", "list", Self.app], ["handlers", ".txt"], ["grants", "--json"], ["apps", "--json"],
      ["removed", "list", "--json"], ["log", "--denied"],
    ]
    let volumes = try run(account, ["volume", "list", "--json"]).split(separator: "\n")
    let disks = volumes.filter { $0.contains("\"path\"") && $0.contains("/disk-") }
    return try words.map { try run(account, $0) } + [disks.joined()] + trash(account)
  }

  private func trash(_ account: TemporaryAccount) throws -> [String] {
    let place = "store/tree/.Trash/\(account.account.uid)"
    return access(shop.mounted.temporary.appending(place), F_OK) == 0
      ? try shop.mounted.temporary.names(in: place) : []
  }

  private func numbers(_ account: TemporaryAccount) throws -> [String] {
    try sql("SELECT id FROM removed WHERE user = \(account.account.uid) AND deleting = 0").split(
      separator: "\n"
    ).map(String.init)
  }

  /// What lies beside a home, and can be restored.
  private func held(_ account: TemporaryAccount) throws -> [String] {
    let script = "ls \"$0\"/.insula/*-*/removed"
    let listed = try Program.run(["sh", "-c", script, source(account)])
    return listed.output.split(separator: "\n").map(String.init)
  }

  private func sql(_ text: String) throws -> String {
    // The daemon may just be writing.
    let command = ["sqlite3", "-cmd", ".timeout 20000", shop.mounted.store + "/state/insula.db", text]
    let result = try Program.run(command)
    try #require(result.status == 0, "\(result.errors)")
    return result.output
  }

  /// A worker begins, and has done what it does once when it begins: it forgets a row whose container is
  /// nowhere.
  private func startAnew() throws {
    _ = try shop.mounted.unmount()
    _ = try sql(
      """
      INSERT INTO removed (id, uuid, kind, identifier, user, path, removed)
      VALUES (-1, 'nowhere', 'data', 'org.example.x', 0, 'x', 1)
      """)
    try shop.mounted.mount()
    #expect(try eventually { try sql("SELECT count(*) FROM removed WHERE id = -1") == "0\n" })
  }

  private func eject(_ account: TemporaryAccount) throws {
    try shop.succeed("volume", "eject", "Users/\(account.account.name)")
  }

  private func add(_ account: TemporaryAccount) throws -> ProgramResult {
    try shop.mounted.run(
      "user", "add", account.account.name, "--home", source(account), "--store", shop.mounted.store)
  }

  @Test(arguments: [false, true]) func ejectedHomesComeBackWithAll(isStartedAnew: Bool) throws {
    let (hers, his) = (try state(dora), try state(emil))
    #expect(hers[0].contains("denied") && hers[2].contains("Documents"), "\(hers)")
    #expect(hers[6].contains("/disk-") && hers[7] == "letter", "\(hers)")
    try eject(dora)
    // Others go on, and remove what apps have left.
    try shop.succeed("install", bundle("Third", "c"))
    _ = try run(emil, ["path", "org.example.third", "home"])
    _ = try run(emil, ["removed", "delete", "--all"])
    _ = try sql(
      "UPDATE containers SET doomed = 1 WHERE user = \(dora.account.uid) AND identifier = '\(Self.app)'")
    try shop.succeed("uninstall", "org.example.third")
    if isStartedAnew { try startAnew() }
    #expect(try numbers(dora).count == 1 && held(dora).count == 1)
    #expect(try sql("SELECT count(*) FROM containers WHERE doomed = 1") == "1\n")
    // With the home it would be removed.
    _ = try sql("UPDATE containers SET doomed = 0")
    let added = try add(dora)
    #expect(added.status == 0 && added.errors == "", "\(added)")
    let now = try state(dora)
    for (one, other) in zip(now, hers) { #expect(one == other) }
    #expect(try state(emil).prefix(4) == his.prefix(4))
    // It is what it was, and not only listed.
    let become = ["setpriv", "--reuid=\(dora.account.uid)", "--regid=\(dora.account.gid)", "--clear-groups"]
    let ran = try shop.mounted.run(
      ["run", "org.example.own", "--store", shop.mounted.point, "--", "echo", "ran"], before: become)
    #expect(ran.status == 0 && ran.output == "ran\n", "\(ran)")
    let place = shop.mounted.path("Users/\(dora.account.name)/Library/Containers/org.example.third")
    #expect(access(place, F_OK) == -1 && Errno.last == .ENOENT)
    _ = try run(dora, ["removed", "restore", try #require(numbers(dora).first)])
    #expect(try access(place, F_OK) == 0 && held(dora) == [])
    try shop.expectNothingToComplainAbout()
  }

  /// A home that came back is deleted with all that lies beside it, and another one in the meantime is a
  /// home of its own.
  @Test func removalDeletesAllOfIt() throws {
    try eject(dora)
    try shop.succeed("user", "add", dora.account.name)
    #expect(try run(dora, ["consent", "list", Self.app, "photos"]).contains("denied"))
    try startAnew()
    #expect(try numbers(dora).count == 1 && held(dora).count == 1)
    let refused = try shop.run(as: dora, "removed", "restore", #require(numbers(dora).first))
    #expect(refused.status == 1, "\(refused)")
    _ = try shop.mounted.unmount()
    // Root takes that home away by hand.
    let home = shop.mounted.backing("Users/\(dora.account.name)")
    try #require(try Program.run(["rm", "-r", home]).status == 0)
    try shop.mounted.mount()
    #expect(try add(dora).status == 0)
    #expect(try numbers(dora).count == 1 && trash(dora) == ["letter"])
    try shop.succeed("user", "remove", dora.account.name, "--delete-home")
    #expect(try held(dora) == [] && numbers(dora) == [] && trash(dora) == [])
    #expect(try held(emil).count == 1 && numbers(emil).count == 1 && trash(emil) == ["letter"])
    #expect(try sql("SELECT count(*) FROM ejected_homes") == "0\n")
    try shop.expectNothingToComplainAbout()
  }

  /// Where somebody has another home while theirs is ejected.
  enum Meanwhile: CaseIterable { case mounted, unmounted, elsewhere }

  /// The attack: root removes the home that somebody had in the meantime, and with it all that belongs to the
  /// one that comes back.
  ///
  /// Two users have such a home, and one of them goes on in it.
  @Test(arguments: Meanwhile.allCases) func aHomeInTheMeantimeTakesNothingAway(_ place: Meanwhile) throws {
    let accounts = [dora, emil]
    let before = try accounts.map { try state($0) }
    _ = try shop.make("Other", version: "1.0", in: "b")
    for account in accounts {
      let name = account.account.name
      try eject(account)
      var words = ["user", "add", name]
      if place == .elsewhere {
        try shop.mounted.temporary.makeDirectory("meantime-\(name)", mode: 0o700)
        words += ["--home", shop.mounted.temporary.appending("meantime-\(name)")]
      }
      #expect(try shop.mounted.run(words + ["--store", shop.mounted.store]).status == 0)
      for words in [
        ["install", bundle("Other", "b"), "--user", name], ["path", "org.example.other", "home"],
        ["path", Self.app, "home"], ["uninstall", "org.example.other", "--user", name],
        ["install", bundle("Other", "b"), "--user", name],
      ] { _ = try run(account, words) }
      #expect(try numbers(account).count == 2)
    }
    let hers = try numbers(dora)
    if place == .unmounted { try shop.succeed("unmount") }
    try shop.succeed("user", "remove", dora.account.name, "--delete-home")
    // What was in that home is gone.
    #expect(try numbers(dora).count == 1 && Set(hers).isSuperset(of: numbers(dora)))
    #expect(
      try sql("SELECT user FROM apps WHERE identifier = 'org.example.other'") == "\(emil.account.uid)\n")
    #expect(try numbers(emil).count == 2 && sql("SELECT count(*) FROM ejected_homes") == "2\n")
    if place == .unmounted { try shop.mounted.mount() }
    #expect(try held(dora).count == 1 && trash(dora) == ["letter"] && trash(emil) == ["letter"])
    try shop.succeed("user", "remove", emil.account.name, "--delete-home")
    for (account, before) in zip(accounts, before) {
      let added = try add(account)
      #expect(added.status == 0 && added.errors == "", "\(added)")
      for (one, other) in zip(try state(account), before) { #expect(one == other) }
      let become = ["setpriv", "--reuid=\(account.account.uid)", "--regid=\(account.account.gid)"]
      for app in [Self.app, "org.example.own"] {
        let ran = try shop.mounted.run(
          ["run", app, "--store", shop.mounted.point, "--", "echo", "ran"],
          before: become + ["--clear-groups"])
        #expect(ran.status == 0 && ran.output == "ran\n", "\(ran)")
      }
      _ = try run(account, ["removed", "restore", try #require(numbers(account).first)])
    }
    try shop.expectNothingToComplainAbout()
  }

  /// The account is called otherwise by now, so it may be somebody else: they get nothing, and nothing of it
  /// is deleted.
  @Test func theNextHolderGetsNothing() throws {
    let his = try state(emil)
    try eject(dora)
    let data = try #require(try held(dora).first)
    try dora.renamed { renamed in
      let added = try shop.mounted.run("user", "add", renamed.name, "--store", shop.mounted.store)
      #expect(added.status == 0 && added.errors.contains("/state/former/\(renamed.uid)-"), "\(added)")
      #expect(added.errors.contains("may be a former holder's"), "\(added)")
      // What was removed from the home waits for it, and nobody sees it.
      #expect(try numbers(dora).count == 1 && trash(dora) == [] && held(dora) == [data])
      #expect(try !run(dora, ["removed", "list", "--json"]).contains("org.example"))
      for table in ["consents", "grants", "openers", "apps", "containers"] {
        #expect(try sql("SELECT count(*) FROM \(table) WHERE user = \(renamed.uid)") == "0\n", "\(table)")
      }
      #expect(try !run(dora, ["log"]).contains("common"))
      #expect(try state(emil) == his)
      let aside = try shop.mounted.temporary.names(in: "store/state/former")
      try #require(aside.count == 1)
      #expect(try shop.mounted.temporary.names(in: "store/state/former/\(aside[0])/trash") == ["letter"])
      let check = try shop.mounted.run("check", shop.mounted.store)
      #expect(check.output.contains("state/former/\(aside[0])"), "\(check)")
    }
    // The home comes back without them, and with what was removed from it.
    #expect(try add(emil).status == 1, "it is there")
    try shop.succeed("user", "add", dora.account.name, "--home", source(dora))
    _ = try run(dora, ["removed", "restore", try #require(numbers(dora).first)])
    #expect(try held(dora) == [])
  }

  /// What others have granted in the home gives nothing while another one has its name, and gives it again
  /// when the home is back.
  @Test(arguments: [false, true]) func whatOthersGrantedWaitsForTheHome(isStartedAnew: Bool) throws {
    let path = shop.mounted.path("Users/\(dora.account.name)/Public/f")
    func share(_ words: String) throws {
      let script = "mkdir -p '\(path)' && chmod 755 '\(path)' && echo \(words) >'\(path)/x'"
      try #require(try Program.run(become(dora) + ["sh", "-c", script]).status == 0)
    }
    func read() throws -> String {
      let words = ["run", Self.app, "--store", shop.mounted.point, "--", "cat", path + "/x"]
      return try shop.mounted.run(words, before: become(emil)).output
    }
    try share("dear")
    _ = try run(emil, ["grant", Self.app, path, "--read-only"])
    let before = try run(emil, ["grants", "--json"])
    #expect(try read() == "dear\n")
    try eject(dora)
    if isStartedAnew { try startAnew() }
    try shop.succeed("user", "add", dora.account.name)
    try share("next")
    #expect(try read() == "" && !run(emil, ["grants", "--json"]).contains("Public"))
    // What is granted there is that one's.
    _ = try run(emil, ["grant", Self.app, path, "--read-only"])
    #expect(try read() == "next\n")
    try shop.succeed("user", "remove", dora.account.name, "--delete-home")
    #expect(try !run(emil, ["grants", "--json"]).contains("Public"))
    #expect(try add(dora).status == 0)
    #expect(eventually { (try? run(emil, ["grants", "--json"])) == before })
    #expect(try read() == "dear\n")
    // It can be taken back while the home is not there.
    try eject(dora)
    _ = try run(emil, ["revoke", Self.app, "--all"])
    #expect(try add(dora).status == 0 && read() == "")
    try shop.expectNothingToComplainAbout()
  }

  private func become(_ account: TemporaryAccount) -> [String] {
    ["setpriv", "--reuid=\(account.account.uid)", "--regid=\(account.account.gid)", "--clear-groups"]
  }

  /// Root has the home back from a backup, as root's: adoption leaves its owner all that they had, and what
  /// is refused has forgotten nothing.
  @Test func adoptedHomesAreTheirOwners() throws {
    let cleo = try [TemporaryAccount(), TemporaryAccount()]
    for account in cleo {
      try shop.succeed("user", "add", account.account.name)
      for words in [["consent", "deny", Self.app, "photos"], ["path", Self.app, "home"]] {
        _ = try run(account, words)
      }
    }
    let rows = "SELECT user, identifier, allowed FROM consents ORDER BY user"
    let before = try sql(rows)
    try shop.succeed("unmount")
    let homes = cleo.map { shop.mounted.backing("Users/\($0.account.name)") }
    let away = shop.mounted.temporary.appending("away")
    try #require(rename(homes[0], away) == 0)
    let words = ["user", "add", cleo[0].account.name, "--adopt", "--store", shop.mounted.store]
    #expect(try shop.mounted.run(words).status == 1)
    #expect(try sql(rows) == before)
    try #require(try Program.run(["cp", "-r", away, homes[0]]).status == 0)
    try #require(try Program.run(["mv", homes[0] + "/Music", homes[0] + "/m"]).status == 0)
    try #require(try Program.run(["touch", homes[0] + "/Music"]).status == 0)
    #expect(try shop.mounted.run(words).status == 1)
    #expect(try sql(rows) == before)
    try #require(try Program.run(["rm", homes[0] + "/Music"]).status == 0)
    let adopted = try shop.mounted.run(words)
    #expect(adopted.status == 0, "\(adopted)")
    #expect(try sql(rows) == before)
    let containers = "SELECT count(*) FROM containers WHERE user = \(cleo[0].account.uid)"
    #expect(try sql(containers) == "1\n")
    try shop.mounted.mount()
    for account in cleo {
      #expect(try run(account, ["consent", "list", Self.app, "photos"]).contains("denied"))
    }
  }
}
