// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Data that somebody has kept is lost through nobody else.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct KeptDataTests {
  private static let app = "org.example.notes"
  private static let group = "group.org.example"

  private let shop: AppShop
  private let anna: TemporaryAccount
  private let ben: TemporaryAccount
  private let bundle: String

  init() throws {
    shop = try AppShop()
    (anna, ben) = (try TemporaryAccount(), try TemporaryAccount())
    for account in [anna, ben] { try shop.succeed("user", "add", account.account.name) }
    bundle = try shop.make("Notes", version: "1.0", groups: [Self.group])
    try shop.addIdentity("stranger", team: "STRANGER12")
  }

  private func places(of account: TemporaryAccount) -> [String] {
    let library = "Users/\(account.account.name)/Library"
    return [
      "\(library)/Containers/\(Self.app)/Data/Documents", "\(library)/Group Containers/\(Self.group)",
    ].map { shop.mounted.backing("\($0)/letter") }
  }

  private func isWhole(_ account: TemporaryAccount) -> [Bool] {
    places(of: account).map { FileManager.default.contents(atPath: $0) == Data("mine".utf8) }
  }

  /// Has an app make its containers, and puts a letter into each.
  private func write(for account: TemporaryAccount) throws {
    for place in ["home", "group:\(Self.group)"] {
      try shop.succeed("path", Self.app, place, "--user", account.account.name)
    }
    for path in places(of: account) {
      try #require(FileManager.default.createFile(atPath: path, contents: Data("mine".utf8)))
      try #require(chown(path, account.account.uid, account.account.gid) == 0)
    }
  }

  private func act(as account: TemporaryAccount, _ verb: String, _ word: String, _ more: String...) throws {
    let result = try shop.run(as: account, [verb, word] + more)
    try #require(result.status == 0, "\(verb): \(result.errors)")
  }

  /// By whom it is kept, and what the other user installs and removes then.
  @Test(arguments: [false, true], ["the same", "of another team", "an update without the group"])
  func keptDataOutlivesTheCopyOfAnotherUser(isHers: Bool, copy: String) throws {
    let everyones = isHers ? [] : ["--everyone"]
    if isHers {
      try act(as: anna, "install", bundle)
      try write(for: anna)
      try act(as: anna, "uninstall", Self.app, "--keep-data")
    } else {
      try shop.succeed("install", bundle)
      for account in [anna, ben] { try write(for: account) }
      try shop.succeed("uninstall", Self.app, "--keep-data")
    }
    #expect(everyones.isEmpty == isHers && isWhole(anna) == [true, true])
    switch copy {
    case "of another team":
      // Who has data of the one app themselves can't have the other.
      let strange = try shop.make(
        "Notes", version: "1.0", in: "strange", groups: [Self.group], by: "stranger")
      if isHers {
        try act(as: ben, "install", strange)
        try act(as: ben, "uninstall", Self.app)
      } else {
        #expect(try shop.run(as: ben, "install", strange).status == 1)
      }
    case "an update without the group":
      try act(as: ben, "install", bundle)
      try act(as: ben, "update", try shop.make("Notes", version: "2.0", in: "second"))
      #expect(!FileManager.default.fileExists(atPath: places(of: ben)[1]))
      #expect(isWhole(anna) == [true, true])
      try act(as: ben, "uninstall", Self.app)
    default:
      try act(as: ben, "install", bundle)
      try act(as: ben, "uninstall", Self.app)
      #expect(isWhole(ben) == [false, false])
    }
    #expect(isWhole(anna) == [true, true])
    // It is there for her next copy, and goes with that.
    try act(as: anna, "install", bundle)
    #expect(isWhole(anna) == [true, true])
    try act(as: anna, "uninstall", Self.app)
    #expect(isWhole(anna) == [false, false])
    try shop.expectNothingToComplainAbout()
  }

  /// What she has kept herself outlives everyone's app too, as long as that has not used it.
  @Test func keptDataOutlivesEveryonesApp() throws {
    try act(as: anna, "install", bundle)
    try write(for: anna)
    try act(as: anna, "uninstall", Self.app, "--keep-data")
    try shop.succeed("install", bundle)
    try write(for: ben)
    try shop.succeed("update", try shop.make("Notes", version: "2.0", in: "second"))
    #expect(isWhole(ben) == [true, false])
    try shop.succeed("uninstall", Self.app)
    #expect(isWhole(anna) == [true, true] && isWhole(ben) == [false, false])
    // Not even by somebody who asks for that, save herself.
    #expect(try shop.run(as: ben, "uninstall", Self.app).status == 1)
    let everyones = ["uninstall", Self.app, "--everyone", "--store", shop.mounted.store]
    #expect(try shop.mounted.run(everyones).status == 1)
    #expect(isWhole(anna) == [true, true])
    try act(as: anna, "uninstall", Self.app)
    #expect(isWhole(anna) == [false, true])
    try act(as: anna, "uninstall", Self.group)
    #expect(isWhole(anna) == [false, false])
  }

  /// One person has both kinds of apps there, and need not say which one it was.
  @Test func keptDataInARootlessStore() throws {
    let fixture = try PlaceFixture(rootless: true)
    let bundle = fixture.cast.mounted.temporary.appending("apps/Editor.app")
    try fixture.perform(
      """
      set -e
      echo mine >$documents/letter; echo mine >"$group/letter"
      insula uninstall $app --user $owner --keep-data --store $store
      cat $documents/letter "$group/letter"
      insula install \(bundle) --everyone --store $store
      cat $documents/letter "$group/letter"
      insula uninstall $app --everyone --keep-data --store $store
      cat $documents/letter "$group/letter"
      insula install \(bundle) --user $owner --store $store
      insula uninstall $app --user $owner --keep-data --store $store
      insula uninstall $app --store $store
      test ! -e $documents && cat "$group/letter"
      insula uninstall group.org.example --store $store
      test ! -e "$group"
      """, as: .owner)
  }
}
