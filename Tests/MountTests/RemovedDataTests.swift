// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Containers that were removed, as their users see them.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct RemovedDataTests {
  private static let app = "org.example.notes"

  private let shop: AppShop
  private let anna: TemporaryAccount
  private let ben: TemporaryAccount

  init() throws {
    shop = try AppShop()
    (anna, ben) = (try TemporaryAccount(), try TemporaryAccount())
    for account in [anna, ben] { try shop.succeed("user", "add", account.account.name) }
    try shop.succeed("install", try shop.make("Notes", version: "1.0"))
    for account in [anna, ben] {
      try shop.succeed("path", Self.app, "home", "--user", account.account.name)
      let letter = letter(of: account)
      try #require(FileManager.default.createFile(atPath: letter, contents: Data(count: 1 << 20)))
      try #require(chown(letter, account.account.uid, account.account.gid) == 0)
    }
  }

  private func letter(of account: TemporaryAccount) -> String {
    shop.mounted.backing(
      "Users/\(account.account.name)/Library/Containers/\(Self.app)/Data/Documents/letter")
  }

  private var whoHasLetters: [Bool] {
    [anna, ben].map { FileManager.default.fileExists(atPath: letter(of: $0)) }
  }

  private var held: [String] { get throws { try shop.mounted.temporary.names(in: "store/state/removed") } }

  /// The numbers that somebody sees; root if nobody is given.
  private func numbers(_ account: TemporaryAccount? = nil, _ more: String...) throws -> [Int] {
    let words = ["removed", "list", "--json"] + more
    let store = ["--store", shop.mounted.store]
    let result =
      try account.map { try shop.run(as: $0, words) } ?? shop.mounted.run(words + store)
    try #require(result.status == 0, "\(result.errors)")
    let list = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]]
    return try #require(list).compactMap { $0["number"] as? Int }
  }

  @Test func removedDataIsItsUsersAlone() throws {
    try shop.succeed("uninstall", Self.app)
    #expect(whoHasLetters == [false, false])
    #expect(try held.count == 2 && numbers().count == 2)
    let hers = try numbers(anna)
    let his = try numbers(ben)
    try #require(hers.count == 1 && his.count == 1 && hers != his)
    #expect(try numbers(nil, "--user", anna.account.name) == hers)
    // Nobody gets there by the tree or by the store.
    let client = try Client(uid: anna.account.uid, gid: anna.account.gid)
    #expect(try client.errno("unlink", shop.mounted.store + "/state/removed/x") == EACCES)
    // He can't have, delete or see hers.
    for words in [["restore", "\(hers[0])"], ["delete", "\(hers[0])"]] {
      let result = try shop.run(as: ben, ["removed"] + words)
      #expect(result.status == 1 && result.errors.contains("no removed container"), "\(result)")
    }
    for words in [["list"], ["delete", "--all"]] {
      #expect(try shop.run(as: ben, ["removed"] + words + ["--user", anna.account.name]).status == 7)
    }
    let wrong = try shop.run(as: ben, "removed", "delete")
    #expect(wrong.status == 2 && wrong.errors.contains("--all"), "\(wrong)")
    #expect(try shop.run(as: ben, "removed", "restore", "0").status == 2)
    // What is his, he deletes for good.
    let deleted = try shop.run(as: ben, "removed", "delete", "--all")
    #expect(deleted.status == 0 && deleted.output.contains("Deleted what was"), "\(deleted)")
    #expect(try numbers(ben) == [] && numbers() == hers && held.count == 1)
    // And she has hers back, by a way that the kernel knows of.
    let place = shop.mounted.path("Users/\(anna.account.name)/Library/Containers/\(Self.app)")
    #expect(access(place, F_OK) == -1 && Errno.last == .ENOENT)
    let restored = try shop.run(as: anna, "removed", "restore", "\(hers[0])")
    #expect(restored.status == 0, "\(restored)")
    #expect(whoHasLetters == [true, false] && access(place + "/Data/Documents/letter", F_OK) == 0)
    #expect(try numbers() == [] && held == [])
    #expect(try shop.run(as: anna, "removed", "restore", "\(hers[0])").status == 1)
    // It is kept for the next installation; a container that is there is not replaced.
    try shop.succeed("install", shop.mounted.temporary.appending("apps/Notes.app"))
    try shop.succeed("path", Self.app, "home", "--user", anna.account.name)
    try shop.succeed("uninstall", Self.app)
    try shop.succeed("install", shop.mounted.temporary.appending("apps/Notes.app"))
    try shop.succeed("path", Self.app, "home", "--user", anna.account.name)
    let again = try numbers(anna)
    try #require(again.count == 1)
    let refused = try shop.run(as: anna, "removed", "restore", "\(again[0])")
    #expect(refused.status == 1 && refused.errors.contains("Containers/\(Self.app) by now"), "\(refused)")
    try shop.expectNothingToComplainAbout()
  }

  /// An import takes the place of the data that are there: these are their user's for some days more.
  @Test func replacedDataIsRemovedData() throws {
    let directory = try shop.mounted.temporary.makeDirectory("packages", mode: 0o777)
    try #require(chmod(directory, 0o777) == 0)
    let package = directory + "/Notes.xcappdata"
    let exported = try shop.run(as: anna, "export", Self.app, package)
    try #require(exported.status == 0, "\(exported)")
    let documents = shop.mounted.path(
      "Users/\(anna.account.name)/Library/Containers/\(Self.app)/Data/Documents")
    let client = try Client(uid: anna.account.uid, gid: anna.account.gid)
    try #require(try client.errno("create", documents + "/later") == 0)
    try #require(try client.errno("close all") == 0)
    // Where there was nothing, nothing is kept.
    try shop.succeed("install", try shop.make("Other", version: "1.0", in: "more"))
    let first = try shop.run(as: anna, "import", package, "--to", "org.example.other")
    #expect(try first.status == 0 && numbers() == [], "\(first)")
    let refused = try shop.run(as: anna, "import", package)
    #expect(try refused.status == 1 && numbers() == [], "\(refused)")
    let replaced = try shop.run(as: anna, "import", package, "--replace")
    #expect(replaced.status == 0, "\(replaced)")
    #expect(access(documents + "/later", F_OK) == -1 && access(documents + "/letter", F_OK) == 0)
    let hers = try numbers(anna)
    try #require(hers.count == 1)
    #expect(try numbers(ben) == [] && held.count == 1)
    #expect(try shop.run(as: ben, "removed", "restore", "\(hers[0])").status == 1)
    let early = try shop.run(as: anna, "removed", "restore", "\(hers[0])")
    #expect(early.status == 1 && early.errors.contains("Containers/\(Self.app) by now"), "\(early)")
    try shop.expectNothingToComplainAbout()
    // What was imported goes with the app, and then the old data have their place again.
    try shop.succeed("uninstall", Self.app)
    #expect(try numbers(anna).count == 2 && numbers(ben).count == 1)
    let restored = try shop.run(as: anna, "removed", "restore", "\(hers[0])")
    #expect(restored.status == 0, "\(restored)")
    #expect(access(documents + "/later", F_OK) == 0 && access(documents + "/letter", F_OK) == 0)
    #expect(try client.errno("unlink", documents + "/later") == 0)
    try shop.expectNothingToComplainAbout()
  }

  @Test func removedDataCountsAsPurgeable() throws {
    func purgeable() throws -> Int {
      let result = try shop.run(as: anna, "storage", "--json")
      let report = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
      return try #require(report?["purgeable"] as? Int, "\(result)")
    }
    #expect(try purgeable() < 1 << 20)
    try shop.succeed("uninstall", Self.app)
    #expect(try purgeable() >= 1 << 20)
    // A purge takes it where a goal can't be met otherwise, and only then; each user's own.
    try shop.succeed("purge")
    #expect(try held.count == 2)
    #expect(try shop.run(as: anna, "purge", "--to", "99%", "--dry-run").output.contains("removed containers"))
    #expect(try held.count == 2)
    let purged = try shop.run(as: anna, "purge", "--to", "99%")
    #expect(purged.status == 1 && purged.output.contains("Deleted removed containers: 1."), "\(purged)")
    #expect(try numbers(anna) == [] && numbers(ben).count == 1 && held.count == 1)
    #expect(try purgeable() < 1 << 20)
  }

  /// The daemon deletes it in the end, and goes on with what another was stopped in.
  @Test func removedDataIsDeletedWhenItsTimeIsOver() throws {
    try shop.succeed("uninstall", Self.app)
    #expect(try held.count == 2)
    try shop.succeed("unmount")
    #expect(try numbers().count == 2)
    try shop.mounted.mount(options: "removed=0")
    #expect(try eventually { try held.isEmpty })
    #expect(try numbers() == [])
    try shop.expectNothingToComplainAbout()
  }

  /// Whoever loses their home loses this too.
  @Test func removedDataGoesWithTheHome() throws {
    try shop.succeed("uninstall", Self.app)
    try shop.succeed("user", "remove", anna.account.name, "--delete-home")
    #expect(try held.count == 1 && numbers() == numbers(ben))
  }
}
