// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A home on a disk that does not answer at all: what others do looks at nothing in it.
@Suite(
  .enabled(
    if: MountedStore.isPossible && SilentDisk.isPossible,
    "mounting needs root and /dev/fuse, or fuse2fs is missing"), .serialized, .mayTake(seconds: 240))
struct SilentHomeTests {
  private static let notes = "org.example.notes"
  private static let own = "org.example.own"

  private let disk: SilentDisk
  private let shop: AppShop
  /// Have homes in the store.
  private let anna: TemporaryAccount
  private let ben: TemporaryAccount
  /// Has a home on the disk.
  private let carl: TemporaryAccount

  /// All have a copy of an app, and all but Ben have used it and everyone's.
  init() throws {
    disk = try SilentDisk()
    shop = try AppShop()
    (anna, ben, carl) = (try TemporaryAccount(), try TemporaryAccount(), try TemporaryAccount())
    for (name, version) in [("Notes", "1"), ("Player", "1"), ("Own", "1"), ("Own", "2")] {
      _ = try shop.make(name, version: version, in: "\(name)-\(version)")
    }
    try #require(mkdir("\(disk.path)/homes", 0o700) == 0)
    for account in [anna, ben] { try shop.succeed("user", "add", account.account.name) }
    try shop.succeed("user", "add", carl.account.name, "--home", "\(disk.path)/homes")
    try shop.succeed("install", bundle("Notes"))
    for account in [anna, ben, carl] {
      try expect(account, "install", bundle("Own"), "--user", account.account.name)
    }
    for account in [anna, carl] {
      for app in [Self.notes, Self.own] { try expect(account, "path", app, "home") }
    }
  }

  private func bundle(_ name: String, _ version: String = "1") -> String {
    shop.mounted.temporary.appending("\(name)-\(version)/\(name).app")
  }

  private func expect(
    _ account: TemporaryAccount?, _ words: String..., location: SourceLocation = #_sourceLocation
  ) throws {
    let result = try shop.runInTime(as: account, words)
    #expect(result.status == 0, "\(words): \(result)", sourceLocation: location)
  }

  /// Only apps of a Mac's shape may have such names.
  private func canMakeDotName(_ name: String, _ account: TemporaryAccount, _ app: String) throws -> Bool {
    let data = shop.mounted.path("Users/\(account.account.name)/Library/Containers/\(app)/Data")
    let client = try Client(uid: account.account.uid, gid: account.account.gid)
    return try client.run("create", "\(data)/\(name)").errno == 0
  }

  /// The attack: every change of apps, of whomever, looked into all bundles and containers.
  @Test func othersChangeTheirApps() throws {
    for account in [anna, carl] {
      for app in [Self.notes, Self.own] { #expect(try canMakeDotName(".before", account, app)) }
    }
    let worker = try #require(try shop.mounted.daemon())
    try disk.fallSilent()
    // What is known of the home is in no cache.
    let place = shop.mounted.path("Users/\(carl.account.name)/Applications/Own.app/Contents")
    let looking = Process()
    looking.executableURL = URL(fileURLWithPath: "/usr/bin/timeout")
    looking.arguments = ["200", "ls", "-lR", place]
    looking.standardOutput = FileHandle.nullDevice
    try Program.withSignalsUnblocked { try looking.run() }
    #expect(eventually { waitsForDisk(worker) })
    // Everyone's app for the first time, as a start, and one's own.
    try expect(ben, "path", Self.notes, "home")
    try expect(ben, "run", Self.own, "--", "true")
    try expect(anna, "update", bundle("Own", "2"), "--user", anna.account.name)
    try expect(anna, "uninstall", Self.own, "--user", anna.account.name)
    try expect(nil, "install", bundle("Player"))
    try expect(ben, "uninstall", Self.own, "--user", ben.account.name)
    #expect(try canMakeDotName(".now", anna, Self.notes) && canMakeDotName(".now", ben, Self.notes))
    try disk.answer()
    looking.waitUntilExit()
    // What there is in that home is known as before, and what changes there as well.
    for app in [Self.notes, Self.own] { #expect(try canMakeDotName(".after", carl, app)) }
    try expect(carl, "path", "org.example.player", "home")
    #expect(try canMakeDotName(".after", carl, "org.example.player"))
    try expect(carl, "uninstall", Self.own, "--user", carl.account.name, "--keep-data")
    #expect(try !canMakeDotName(".gone", carl, Self.own))
    try expect(carl, "install", bundle("Own", "2"), "--user", carl.account.name)
    #expect(try canMakeDotName(".again", carl, Self.own))
    try shop.expectNothingToComplainAbout()
  }
}
