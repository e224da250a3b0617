// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Apps that come and go while the tree is mounted, by the commands that a person types.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct InstallTests {
  @Test func appComesAndGoesUnderTheEyesOfThoseWhoLook() throws {
    let shop = try AppShop()
    let mounted = shop.mounted
    let app = try shop.make("Notes", version: "1.0")
    let place = mounted.path("Applications/Notes.app")
    // The kernel remembers that there is nothing.
    #expect(access(place, F_OK) == -1 && Errno.last == .ENOENT)
    #expect(try mounted.temporary.names(in: "point/Applications") == ["Utilities"])
    try shop.succeed("install", app)
    #expect(access(place, F_OK) == 0)
    #expect(try mounted.temporary.names(in: "point/Applications").sorted() == ["Notes.app", "Utilities"])
    try mounted.temporary.makeDirectory("Documents")
    let ran = try Program.run(
      [place + "/Contents/MacOS/Notes"], environment: ["HOME": mounted.temporary.path])
    #expect(ran.status == 0, "\(ran.errors)")
    // An open file stays what it is while another version takes the place.
    let program = try contents(of: place + "/Contents/Info.plist")
    let old = try check(open(place + "/Contents/Info.plist", O_RDONLY))
    defer { close(old) }
    try shop.succeed("update", try shop.make("Notes", version: "2.0", in: "second"))
    #expect(try contents(of: place + "/Contents/Info.plist") != program)
    #expect(try FD(old).readToEnd(limit: 1 << 20) == program)
    try shop.succeed("uninstall", "org.example.notes")
    #expect(access(place, F_OK) == -1 && Errno.last == .ENOENT)
    #expect(try mounted.temporary.names(in: "point/Applications") == ["Utilities"])
    try shop.expectNothingToComplainAbout()
  }

  /// The daemon reads nothing that it serves itself.
  @Test func bundleInTheTreeIsCopiedFirst() throws {
    let shop = try AppShop()
    let anna = try TemporaryAccount()
    try shop.succeed("user", "add", anna.account.name)
    let home = shop.mounted.path("Users/\(anna.account.name)")
    for (verb, version) in [("install", "1.0"), ("update", "2.0")] {
      let app = try shop.make("Notes", version: version, in: "apps\(version)")
      let copied = try Program.run(
        ["sh", "-ec", #"rm -rf "$2/N"; mkdir "$2/N"; cp -a "$1" "$2/N"; chown -R "$3" "$2/N""#, "sh", app]
          + ["\(home)/Downloads", "\(anna.account.uid)"])
      try #require(copied.status == 0, "\(copied)")
      let made = try shop.run(as: anna, verb, "\(home)/Downloads/N/Notes.app", "--user", anna.account.name)
      #expect(made.status == 0, "\(verb): \(made.errors)")
      let plist = try contents(of: "\(home)/Applications/Notes.app/Contents/Info.plist")
      #expect(try contents(of: "\(app)/Contents/Info.plist") == plist)
    }
    try shop.expectNothingToComplainAbout()
  }

  @Test func userHasAppsOfTheirOwnAndOthersMayNotTouchThem() throws {
    let shop = try AppShop()
    let mounted = shop.mounted
    let anna = try TemporaryAccount()
    let ben = try TemporaryAccount()
    for account in [anna, ben] { try shop.succeed("user", "add", account.account.name) }
    let app = try shop.make("Notes", version: "1.0")
    let home = "Users/\(anna.account.name)"
    // Not for everyone, since she is no admin; and not for him.
    #expect(try shop.run(as: anna, "install", app, "--everyone").status == 7)
    #expect(try shop.run(as: anna, "install", app, "--user", ben.account.name).status == 7)
    let made = try shop.run(as: anna, "install", app, "--user", anna.account.name)
    #expect(made.status == 0, "\(made.errors)")
    var status = stat()
    #expect(stat(mounted.backing("\(home)/Applications/Notes.app"), &status) == 0)
    #expect(status.st_uid == anna.account.uid)
    #expect(
      stat(mounted.backing("\(home)/Library/Containers/org.example.notes/Data/Documents"), &status) == 0)
    #expect(status.st_uid == anna.account.uid && status.st_mode & 0o777 == 0o700)
    // Her own, and sealed all the same.
    let owner = try Client(uid: anna.account.uid, gid: anna.account.gid)
    #expect(
      try owner.errno("unlink", mounted.path("\(home)/Applications/Notes.app/Contents/Info.plist")) == EROFS)
    #expect(try shop.run(as: ben, "uninstall", "org.example.notes", "--user", anna.account.name).status == 7)
    let gone = try shop.run(as: anna, "uninstall", "org.example.notes", "--user", anna.account.name)
    #expect(gone.status == 0, "\(gone.errors)")
    #expect(stat(mounted.backing("\(home)/Library/Containers/org.example.notes"), &status) == -1)
    try shop.expectNothingToComplainAbout()
  }

  /// Where nobody says for whom, it is for everyone if the caller may do that, and otherwise for the caller.
  @Test func whoIsMeantIsKnownWhereItIsUnambiguous() throws {
    let shop = try AppShop()
    let mounted = shop.mounted
    let (anna, ben) = (try TemporaryAccount(), try TemporaryAccount())
    try shop.succeed("user", "add", anna.account.name)
    let one = try shop.make("Notes", version: "1.0")
    let two = try shop.make("Notes", version: "2.0", in: "second")
    let own = "Users/\(anna.account.name)/Applications/Notes.app"
    let made = try shop.run(as: anna, "install", one)
    #expect(made.status == 0 && made.output.contains("for yourself"), "\(made)")
    #expect(access(mounted.backing(own), F_OK) == 0)
    #expect(access(mounted.backing("Applications/Notes.app"), F_OK) == -1)
    let homeless = try shop.run(as: ben, "install", one)
    #expect(homeless.status == 7 && homeless.errors.contains("no home"), "\(homeless)")
    // Root's is everyone's, and both are there; an update of hers is hers.
    try shop.succeed("install", one)
    let updated = try shop.run(as: anna, "update", two)
    #expect(updated.status == 0 && updated.output.contains("for yourself"), "\(updated)")
    let again = try mounted.run("update", two, "--store", mounted.store)
    #expect(again.status == 0 && again.errors.contains(anna.account.name), "\(again)")
    // Root must say which one is to go.
    let ambiguous = try mounted.run("uninstall", "org.example.notes", "--store", mounted.store)
    #expect(ambiguous.status == 2 && ambiguous.errors.contains("--user \(anna.account.name)"), "\(ambiguous)")
    #expect(access(mounted.backing(own), F_OK) == 0)
    let both = try mounted.run("uninstall", "org.example.notes", "--everyone", "--user", "x")
    #expect(both.status == 2, "\(both)")
    #expect(try shop.run(as: anna, "uninstall", "org.example.notes").status == 0)
    #expect(access(mounted.backing(own), F_OK) == -1)
    #expect(access(mounted.backing("Applications/Notes.app"), F_OK) == 0)
    #expect(try shop.run(as: anna, "uninstall", "org.example.notes").status == 7)
    try shop.succeed("uninstall", "org.example.notes")
    // An administrator who is not root.
    try shop.succeed("user", "add", ben.account.name)
    try shop.expectNothingToComplainAbout()
  }

  private func contents(of path: String) throws -> [UInt8] {
    let file = try path.withName { (name) throws(Errno) in try FD.cwd.open(name, O_RDONLY) }
    return try file.fd.readToEnd(limit: 1 << 20)
  }

  /// The daemon is root and reads the bundle: nothing that its sender may not read.
  @Test func bundleIsReadAsWhoeverSendsIt() throws {
    let shop = try AppShop()
    let anna = try TemporaryAccount()
    try shop.succeed("user", "add", anna.account.name)
    let app = try shop.make("Notes", version: "1.0")
    let secret = app + "/Contents/Resources"
    #expect(chmod(secret, 0o700) == 0 && chown(secret, 0, 0) == 0)
    let refused = try shop.run(as: anna, "install", app, "--user", anna.account.name)
    #expect(refused.ending == .failed && refused.errors.contains("Resources"), "\(refused)")
    #expect(try shop.mounted.temporary.names(in: "store/state/staging") == [])
    #expect(chmod(secret, 0o755) == 0)
    let made = try shop.run(as: anna, "install", app, "--user", anna.account.name)
    #expect(made.status == 0, "\(made.errors)")
  }

  @Test func adminInstallsForEveryone() throws {
    let shop = try AppShop()
    var status = stat()
    #expect(stat(shop.mounted.backing("Applications"), &status) == 0)
    let admin = try TemporaryAccount()
    let app = try shop.make("Notes", version: "1.0")
    let refused = try shop.run(as: admin, "install", app)
    #expect(refused.status == 7, "\(refused.errors)")
    let made = try shop.run(as: admin, groups: [status.st_gid], "install", app)
    #expect(made.status == 0, "\(made.errors)")
    #expect(try shop.run(as: admin, "uninstall", "org.example.notes").status == 7)
    #expect(try shop.run(as: admin, groups: [status.st_gid], "uninstall", "org.example.notes").status == 0)
  }

  @Test func whatIsNotTrustedOrNotWholeIsRefusedByItsOwnNumber() throws {
    let shop = try AppShop()
    let mounted = shop.mounted
    let app = try shop.make("Notes", version: "1.0")
    try mounted.temporary.write("changed", to: "apps/Notes.app/Contents/Resources/Welcome.txt")
    let changed = try mounted.run("install", app, "--store", mounted.store)
    let verified = try mounted.run("verify", "--store", mounted.store, app)
    #expect(changed.status == verified.status && changed.status >= 20, "\(changed.errors)")
    #expect(changed.errors.contains("Welcome.txt"))
    #expect(try mounted.temporary.names(in: "point/Applications") == ["Utilities"])
    #expect(try mounted.temporary.names(in: "store/state/staging") == [])
  }

  @Test func readOnlyMountTakesNoRequests() throws {
    let shop = try AppShop()
    let mounted = shop.mounted
    let app = try shop.make("Notes", version: "1.0")
    try shop.succeed("install", app)
    try shop.succeed("unmount")
    try mounted.mount(options: "ro")
    let refused = try mounted.run("uninstall", "org.example.notes", "--store", mounted.store)
    #expect(refused.ending == .failed && refused.errors.contains("read-only"), "\(refused)")
    #expect(access(mounted.path("Applications/Notes.app/Contents/Info.plist"), R_OK) == 0)
  }

  @Test func withoutADaemonTheSameHappens() throws {
    let shop = try AppShop()
    let mounted = shop.mounted
    try shop.succeed("unmount")
    let app = try shop.make("Notes", version: "1.0")
    try shop.succeed("install", app)
    #expect(access(mounted.backing("Applications/Notes.app/Contents/Info.plist"), R_OK) == 0)
    try shop.expectNothingToComplainAbout()
    try mounted.mount()
    #expect(access(mounted.path("Applications/Notes.app/Contents/Info.plist"), R_OK) == 0)
    #expect(unlink(mounted.path("Applications/Notes.app/Contents/Info.plist")) == -1 && Errno.last == .EROFS)
    try shop.succeed("uninstall", "org.example.notes")
    #expect(access(mounted.path("Applications/Notes.app"), F_OK) == -1)
  }

  /// Beside a daemon too, which has the store.
  @Test func checkLooksAtSealsAndWhenAskedAtEveryFile() throws {
    let shop = try AppShop()
    let mounted = shop.mounted
    try shop.succeed("install", try shop.make("Notes", version: "1.0"))
    let file = mounted.backing("Applications/Notes.app/Contents/Resources/Welcome.txt")
    let raw = try check(open(file, O_WRONLY | O_APPEND))
    try FD(raw).writeAll(Array("x".utf8))
    close(raw)
    #expect(try mounted.run("check", mounted.store).status == 0)
    let deep = try mounted.run("check", mounted.store, "--deep")
    #expect(deep.status == 8 && deep.output.contains("Welcome.txt"), "\(deep.output)")
    let signature = mounted.backing("Applications/Notes.app/Contents/_CodeSignature/CodeSignature")
    #expect(unlink(signature) == 0)
    let shallow = try mounted.run("check", mounted.store)
    #expect(shallow.status == 8 && shallow.output.contains("it has a different signature"))
  }
}
