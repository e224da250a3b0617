// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A home that goes takes its owner's apps with it.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct HomeRemovalTests {
  @Test(arguments: [true, false]) func homeGoesWithTheAppsInIt(isMounted: Bool) throws {
    let shop = try AppShop()
    let account = try TemporaryAccount()
    let name = account.account.name
    try shop.succeed("user", "add", name)
    let app = try shop.make("Notes", version: "1.0")
    try shop.succeed("install", app)
    try shop.succeed("install", app, "--user", name)
    // A connection to a daemon is over with its order, so one app is no test of two.
    try shop.succeed("install", try shop.make("Other", version: "1.0", in: "more"), "--user", name)
    if !isMounted { try shop.succeed("unmount") }
    // Not without the word for it.
    let asked = try shop.mounted.run("user", "remove", name, "--store", shop.mounted.store)
    #expect(asked.status == 1 && asked.errors.contains("--delete-home"))
    try shop.succeed("user", "remove", name, "--delete-home")
    #expect(access(shop.mounted.backing("Users/\(name)"), F_OK) == -1 && Errno.last == .ENOENT)
    let apps = try shop.mounted.run("apps", "--store", shop.mounted.store)
    #expect(apps.output.contains("org.example.notes") && !apps.output.contains(name), "\(apps.output)")
    try shop.expectNothingToComplainAbout()
    // Nothing of it stands in the way of a new one.
    try shop.succeed("user", "add", name)
    try shop.succeed("install", app, "--user", name)
    try shop.expectNothingToComplainAbout()
  }
}
