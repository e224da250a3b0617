// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

// How a hostile app may keep another team's app from its user for ever: it names that app's iCloud container
// first. Nobody can remove one through the mount, and an app that is removed leaves it.

/// A container in iCloud that an app has left makes way for another team's app, if its user wants that.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct LeftInCloudTests {
  private static let cloud = "iCloud.org.victim"

  private let shop: AppShop
  private let anna: TemporaryAccount
  private let ben: TemporaryAccount

  init() throws {
    shop = try AppShop()
    (anna, ben) = (try TemporaryAccount(), try TemporaryAccount())
    for account in [anna, ben] { try shop.succeed("user", "add", account.account.name) }
    try shop.addIdentity("squatter", team: "SQUATTER12")
    let squatter = try shop.make(
      "Squatter", version: "1.0", in: "squatter", clouds: [Self.cloud], by: "squatter")
    for account in [anna, ben] {
      try act(as: account, "install", squatter)
      try act(as: account, "path", "org.example.squatter", "icloud")
      try act(as: account, "uninstall", "org.example.squatter")
    }
  }

  private func act(as account: TemporaryAccount, _ words: String...) throws {
    let result = try shop.run(as: account, words)
    try #require(result.status == 0, "\(words): \(result)")
  }

  private func place(of account: TemporaryAccount) -> String {
    shop.mounted.path("Users/\(account.account.name)/Library/Mobile Documents/iCloud~org~victim")
  }

  private func isThere(_ account: TemporaryAccount) -> Bool { access(place(of: account), F_OK) == 0 }

  @Test func anotherTeamsContainerMakesWay() throws {
    let victim = try shop.make("Victim", version: "1.0", clouds: [Self.cloud])
    let name = anna.account.name
    let advice = "'insula uninstall \(Self.cloud) --user \(name)' removes the container"
    let refused = try shop.run(as: anna, "install", victim)
    #expect(refused.status == 1 && refused.errors.contains(advice), "\(refused)")
    try shop.succeed("install", victim, "--everyone")
    let useless = try shop.run(as: anna, "path", "org.example.victim", "icloud")
    #expect(useless.status == 1 && useless.errors.contains(advice), "\(useless)")
    // No other way leads there, and nobody else has this one.
    let removed = try Program.run(
      ["setpriv", "--reuid=\(anna.account.uid)", "--regid=\(anna.account.gid)", "--clear-groups", "rm", "-r"]
        + [place(of: anna)])
    #expect(removed.status == 1 && isThere(anna), "\(removed)")
    let strange = try shop.run(as: ben, "uninstall", Self.cloud, "--user", name)
    #expect(strange.status == 7 && isThere(anna), "\(strange)")
    let everyones = try shop.mounted.run("uninstall", Self.cloud, "--everyone", "--store", shop.mounted.store)
    #expect(everyones.status == 1 && isThere(anna) && isThere(ben), "\(everyones)")

    try act(as: anna, "uninstall", Self.cloud, "--user", name)
    #expect(!isThere(anna) && isThere(ben))
    let list = try shop.run(as: anna, "removed", "list", "--json")
    #expect(list.output.contains("\"\(Self.cloud)\"") && list.output.contains("SQUATTER12"), "\(list)")
    #expect(try !shop.run(as: ben, "removed", "list", "--json").output.contains(Self.cloud))
    try act(as: anna, "path", "org.example.victim", "icloud")
    #expect(isThere(anna))
    // Now it is the app's that is there; and ben's still keeps it from him.
    let used = try shop.run(as: anna, "uninstall", Self.cloud, "--user", name)
    #expect(used.status == 1 && isThere(anna), "\(used)")
    #expect(try shop.run(as: ben, "path", "org.example.victim", "icloud").status == 1)
    // Root does it for him.
    try shop.succeed("uninstall", Self.cloud, "--user", ben.account.name)
    try act(as: ben, "path", "org.example.victim", "icloud")
    try shop.expectNothingToComplainAbout()
  }
}
