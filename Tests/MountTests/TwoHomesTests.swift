// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Two homes of one number: what goes with one of them is what lies in it.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct TwoHomesTests {
  private let shop: AppShop
  private let anna: TemporaryAccount
  private let ben: TemporaryAccount

  init() throws {
    shop = try AppShop()
    (anna, ben) = (try TemporaryAccount(), try TemporaryAccount())
    for (name, directory) in [("Notes", "a"), ("Other", "b"), ("Third", "c")] {
      _ = try shop.make(name, version: "1.0", in: directory)
    }
    for account in [anna, ben] { try shop.succeed("user", "add", account.account.name) }
  }

  private func bundle(_ name: String, _ directory: String) -> String {
    shop.mounted.temporary.appending("\(directory)/\(name).app")
  }

  private func run(as account: TemporaryAccount, _ words: String...) throws -> ProgramResult {
    let result = try shop.run(as: account, words)
    try #require(result.status == 0, "\(words): \(result)")
    return result
  }

  /// The paths of what somebody can restore.
  private func removed(of account: TemporaryAccount) throws -> [String] {
    let result = try run(as: account, "removed", "list", "--json")
    let rows = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]] ?? []
    return try rows.map { row in
      String(decoding: try JSONSerialization.data(withJSONObject: row, options: .sortedKeys), as: UTF8.self)
    }
  }

  private func sql(_ text: String) throws -> String {
    let result = try Program.run(["sqlite3", shop.mounted.store + "/state/insula.db", text])
    try #require(result.status == 0, "\(result.errors)")
    return result.output
  }

  /// Writes a file into the data of an app.
  private func put(_ app: String, _ home: String) throws -> String {
    let file = shop.mounted.backing("Users/\(home)/Library/Containers/\(app)/Data/Documents/precious")
    try #require(try Program.run(["sh", "-c", "echo precious >\"$1\"", "sh", file]).status == 0)
    return file
  }

  /// The attack on oneself: a login gets another name and a new home, and root removes the old one.
  @Test(arguments: [true, false]) func anOldHomeTakesNothingOfTheNewOne(isMounted: Bool) throws {
    let old = anna.account.name
    try shop.succeed("install", bundle("Notes", "a"))
    for account in [anna, ben] {
      try shop.succeed("install", bundle("Other", "b"), "--user", account.account.name)
      _ = try run(as: account, "path", "org.example.notes", "home")
    }
    // In the old home something was removed, by both of them.
    try shop.succeed("uninstall", "org.example.notes")
    try #require(try removed(of: anna).count == 1 && removed(of: ben).count == 1)
    try shop.succeed("install", bundle("Notes", "a"))
    try shop.succeed("install", bundle("Third", "c"))
    try anna.renamed { renamed in
      try shop.succeed("user", "add", renamed.name)
      for account in [anna, ben] {
        for app in ["notes", "other", "third"] {
          _ = try run(as: account, "path", "org.example.\(app)", "home")
        }
        _ = try run(as: account, "consent", "deny", "org.example.notes", "photos")
      }
      try shop.succeed("uninstall", "org.example.third")
      let files = try [
        put("org.example.notes", renamed.name), put("org.example.other", renamed.name),
        put("org.example.other", ben.account.name),
      ]
      let his = try removed(of: ben)
      try #require(try removed(of: anna).count == 2 && his.count == 2)
      if !isMounted { try shop.succeed("unmount") }
      try shop.succeed("user", "remove", old, "--delete-home")
      #expect(access(shop.mounted.backing("Users/\(old)"), F_OK) == -1 && Errno.last == .ENOENT)
      for file in files { #expect(access(file, F_OK) == 0, "\(file)") }
      if !isMounted { try shop.mounted.mount() }
      let hers = try removed(of: anna)
      #expect(hers.count == 1 && hers[0].contains("org.example.third"), "\(hers)")
      #expect(try removed(of: ben) == his)
      for account in [anna, ben] {
        let consents = try run(as: account, "consent", "list", "org.example.notes", "photos")
        #expect(consents.output.contains("denied"), "\(consents)")
      }
      // The app was in the old home; its data are kept for the next installation.
      let apps = try shop.mounted.run("apps", "--store", shop.mounted.store).output
      #expect(apps.contains(ben.account.name) && !apps.contains(old), "\(apps)")
      let left = try sql(
        "SELECT path FROM containers WHERE user = \(anna.account.uid) ORDER BY path"
      ).split(separator: "\n")
      #expect(left.allSatisfy { $0.hasPrefix("Users/\(renamed.name)/") } && left.count == 2, "\(left)")
      try shop.expectNothingToComplainAbout()
      // Nothing of the old home stands in the way of what is in the new one.
      try shop.succeed("install", bundle("Other", "b"), "--user", renamed.name)
      _ = try run(as: anna, "path", "org.example.other", "home")
      #expect(access(files[1], F_OK) == 0)
      let number = try sql("SELECT id FROM removed WHERE user = \(anna.account.uid) AND deleting = 0")
      _ = try run(as: anna, "removed", "restore", String(number.prefix { $0 != "\n" }))
      try shop.succeed("user", "remove", renamed.name, "--delete-home")
      #expect(try sql("SELECT count(*) FROM consents WHERE user = \(anna.account.uid)") == "0\n")
      #expect(try removed(of: ben) == his)
    }
  }

  /// A home that was put there from outside is root's, or has the number of somebody who uses the store
  /// without a home: what they have decided and removed stays.
  @Test(arguments: [true, false]) func aStrangeHomeTakesNothingOfItsOwners(isMounted: Bool) throws {
    let cleo = try TemporaryAccount()
    try shop.succeed("install", bundle("Notes", "a"))
    try shop.succeed("install", bundle("Third", "c"))
    try shop.succeed("user", "add", "root")
    try shop.succeed("path", "org.example.third", "home", "--user", "root")
    try shop.succeed("uninstall", "org.example.third")
    try shop.succeed("consent", "deny", "org.example.notes", "photos")
    _ = try run(as: cleo, "consent", "deny", "org.example.notes", "photos")
    try shop.succeed("unmount")
    for (home, owner) in [("strange-root", 0), ("strange-cleo", cleo.account.uid)] {
      let path = shop.mounted.backing("Users/\(home)")
      try #require(
        try Program.run(["install", "-d", "-o", "\(owner)", path, path + "/Documents"]).status == 0)
    }
    if isMounted { try shop.mounted.mount() }
    let rows = """
      SELECT user, identifier, allowed FROM consents ORDER BY user;
      SELECT user, path, deleting FROM removed; SELECT user, path FROM containers
      """
    let before = try sql(rows)
    try #require(before.split(separator: "\n").count == 3, "\(before)")
    for home in ["strange-root", "strange-cleo"] {
      try shop.succeed("user", "remove", home, "--delete-home")
      #expect(access(shop.mounted.backing("Users/\(home)"), F_OK) == -1 && Errno.last == .ENOENT)
    }
    #expect(try sql(rows) == before)
    // Root's number is never anybody else's.
    try shop.succeed("user", "remove", "root", "--delete-home")
    #expect(try sql("SELECT count(*) FROM consents WHERE user = 0") == "1\n")
    #expect(try sql("SELECT count(*) FROM removed WHERE user = 0 AND deleting = 0") == "0\n")
  }

  /// A removal that is refused has deleted nothing: while an app runs, and in the home of another user.
  @Test func aRefusedRemovalHasDeletedNothing() throws {
    try shop.succeed("install", bundle("Notes", "a"))
    try shop.succeed("install", bundle("Third", "c"))
    for account in [anna, ben] { _ = try run(as: account, "path", "org.example.third", "home") }
    try shop.succeed("uninstall", "org.example.third")
    let name = anna.account.name
    let ready = shop.mounted.path("Users/\(name)/Library/Containers/org.example.notes/Data/Documents/ready")
    let become = ["setpriv", "--reuid=\(anna.account.uid)", "--regid=\(anna.account.gid)", "--clear-groups"]
    let app = try JoinableThread(name: "app") { [shop] in
      _ = try? shop.mounted.run(
        [
          "run", "org.example.notes", "--store", shop.mounted.point, "--", "sh", "-c",
          "echo >$HOME/Documents/ready; exec sleep 300",
        ], before: become)
    }
    #expect(eventually { access(ready, F_OK) == 0 })
    let before = [try removed(of: anna), try removed(of: ben)]
    try #require(before.map(\.count) == [1, 1])
    let refused = try shop.mounted.run("user", "remove", name, "--delete-home", "--store", shop.mounted.store)
    #expect(refused.status == 3 && refused.errors.contains("org.example.notes"), "\(refused)")
    #expect(try [removed(of: anna), removed(of: ben)] == before)
    try shop.succeed("kill", "org.example.notes", "--user", name)
    app.join()
    #expect(
      try eventually {
        try shop.mounted.run("user", "remove", name, "--delete-home", "--store", shop.mounted.store).status
          == 0
      })
    #expect(try removed(of: ben) == before[1])
  }
}
