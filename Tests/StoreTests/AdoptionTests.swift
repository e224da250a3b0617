// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// Homes that are there and become an account's, whatever is in them.
@Suite struct AdoptionTests {
  private let made: TestStore
  private let store: Store
  private let homes: Homes
  /// An account that this process may give a home to.
  private let account: Account
  private let home: String
  /// A number that no account has.
  private static let gone: UInt32 = 4_000_000_001

  init() throws {
    made = try TestStore()
    store = try made.open()
    homes = try Homes(tree: store.tree, path: made.path + "/tree", mode: store.description.mode)
    account = try #require(
      Program.isRoot ? Account.named("nobody") : Account.numbered(ProcessID.user))
    home = made.path + "/tree/Users/" + account.name
    try #require(mkdir(home, 0o755) == 0)
  }

  private func adopt() throws -> Adoption { try homes.adopt(account.name, in: store) }

  private func refusal() -> [String]? {
    do throws(StoreError) {
      _ = try homes.adopt(account.name, in: store)
      return nil
    } catch {
      if case .notAdoptable(_, let reasons) = error { return reasons }
      return ["\(error)"]
    }
  }

  private func status(_ path: String) -> stat {
    var status = stat()
    #expect(lstat(home + path, &status) == 0, "\(path)")
    return status
  }

  private func findings() throws -> [Finding] {
    var check = try StoreCheck(store, repairing: false)
    try check.run()
    return check.findings
  }

  private func write(_ text: String, _ path: String, mode: UInt32 = 0o644) {
    let fd = open(home + path, O_WRONLY | O_CREAT, mode)
    #expect(fd >= 0 && Glibc.write(fd, text, text.utf8.count) == text.utf8.count && fchmod(fd, mode) == 0)
    close(fd)
  }

  private func give(_ path: String, to user: UInt32) { #expect(lchown(home + path, user, user) == 0) }

  /// A directory whose name only looks like that of an app's bundle is none, and changes hands.
  @Test(.enabled(if: Program.isRoot, "giving files away needs root"))
  func whatLooksLikeAnAppChangesHands() throws {
    let (bundle, other) = ("/Applications/\u{c9}.app", "/Applications/E\u{301}.app")
    for path in ["/Applications", bundle, other] { try #require(mkdir(home + path, 0o755) == 0) }
    for path in ["", "/Applications", bundle, other] { give(path, to: Self.gone) }
    var app = try InstalledApp.example(user: Self.gone)
    app.path = "Users/\(account.name)" + bundle
    try Registry(of: store).add(app)
    _ = try adopt()
    #expect(status(bundle).st_uid == Self.gone && status(other).st_uid == account.uid)
  }

  @Test func emptyDirectoryBecomesAWholeHome() throws {
    write("mine", "/letter")
    let adoption = try adopt()
    #expect(adoption.mended.filter { $0.kind == .missing }.map(\.path) == HomeDirectory.all.map(\.path))
    #expect(adoption.left.isEmpty && adoption.tamed.count == 0)
    for directory in HomeDirectory.all {
      let status = status("/" + directory.path)
      #expect(status.st_mode & 0o7777 == directory.mode && status.st_uid == account.uid)
    }
    #expect(status("").st_uid == account.uid && status("/letter").st_uid == account.uid)
    #expect(made.temporary.text(of: "store/tree/Users/\(account.name)/letter") == "mine")
    #expect(try findings().isEmpty)
    // Once more there is nothing to do.
    let again = try adopt()
    #expect(again.mended.isEmpty && again.given == 0 && again.left.isEmpty)
  }

  /// Nothing of the owner's choices is undone.
  @Test func whatIsThereStays() throws {
    _ = try adopt()
    write("kept", "/Documents/file")
    #expect(chmod(home + "/Documents", 0o750) == 0 && chmod(home + "/Public", 0o700) == 0)
    #expect(try adopt().mended.isEmpty)
    #expect(status("/Documents").st_mode & 0o7777 == 0o750 && status("/Public").st_mode & 0o7777 == 0o700)
    #expect(made.temporary.text(of: "store/tree/Users/\(account.name)/Documents/file") == "kept")
  }

  @Test(arguments: ["link", "fifo", "file", "socket"])
  func whatStandsInThePlaceOfADirectoryIsRefused(kind: String) throws {
    let outside = try made.temporary.makeDirectory("outside", mode: 0o711)
    switch kind {
    case "link": #expect(symlink(outside, home + "/Library") == 0)
    case "fifo": #expect(mkfifo(home + "/Library", 0o644) == 0)
    case "socket": #expect(mknod(home + "/Library", S_IFSOCK | 0o644, 0) == 0)
    default: write("x", "/Library")
    }
    let before = status("/Library")
    let words = ["link": "a symbolic link", "fifo": "a fifo", "file": "a file", "socket": "a socket"]
    #expect(refusal() == ["Library is \(words[kind] ?? "") and must be a directory"])
    #expect(status("/Library").st_ino == before.st_ino && status("").st_mode & 0o7777 == 0o755)
    #expect(access(home + "/Documents", F_OK) != 0, "nothing was changed")
    var linked = stat()
    #expect(stat(outside, &linked) == 0 && linked.st_mode & 0o7777 == 0o711)
  }

  @Test func linkInThePlaceOfTheHomeIsNoHome() throws {
    #expect(rmdir(home) == 0 && symlink("Shared", home) == 0)
    #expect(refusal()?.first?.contains("there is no home") == true)
  }

  /// Links in it are objects like others, and lead nowhere.
  @Test func linksAreNotFollowed() throws {
    let outside = try made.temporary.write("theirs", to: "outside")
    #expect(chmod(outside, 0o4755) == 0)
    let directory = try made.temporary.makeDirectory("elsewhere")
    try made.temporary.write("x", to: "elsewhere/program")
    #expect(chmod(directory + "/program", 0o4755) == 0)
    #expect(symlink(outside, home + "/link") == 0 && symlink(directory, home + "/folder") == 0)
    let adoption = try adopt()
    #expect(adoption.tamed.count == 0)
    for path in [outside, directory + "/program"] {
      var status = stat()
      #expect(stat(path, &status) == 0 && status.st_mode & 0o7777 == 0o4755)
      #expect(status.st_uid == ProcessID.user)
    }
  }

  @Test func damagedAndMissingACLsAreThoseOfANewHome() throws {
    _ = try adopt()
    let metadata = Metadata(isSystem: Program.isRoot)
    let acl = "\(metadata.aclName)", flags = "\(metadata.flagsName)"
    #expect(setxattr(home + "/Documents", acl, "no list", 7, 0) == 0)
    #expect(setxattr(home + "/Library", flags, "x", 1, 0) == 0)
    #expect(removexattr(home + "/Movies", acl) == 0)
    let mended = try adopt().mended
    #expect(
      mended == [
        HomeFault(path: "Documents", kind: .unreadable), HomeFault(path: "Library", kind: .unreadable),
        HomeFault(path: "Movies", kind: .acl),
      ])
    #expect(try findings().isEmpty)
  }

  @Test func unusableModesAreCorrected() throws {
    _ = try adopt()
    #expect(
      chmod(home + "/Documents", 0) == 0 && chmod(home + "/Music", 0o777) == 0 && chmod(home, 0o733) == 0)
    let mended = try adopt().mended
    #expect(mended.map(\.path) == ["Documents", "Music", ""])
    #expect(status("/Documents").st_mode & 0o7777 == 0o700 && status("/Music").st_mode & 0o7777 == 0o775)
    #expect(status("").st_mode & 0o7777 == 0o731)
  }

  // MARK: As root

  @Test(.enabled(if: Program.isRoot, "giving files away needs root"))
  func formerOwnersThingsChangeHandsAndNothingElseDoes() throws {
    for path in ["/Documents", "/Drawer"] { #expect(mkdir(home + path, 0o755) == 0) }
    write("x", "/Drawer/file")
    write("y", "/Drawer/others")
    #expect(symlink("nowhere", home + "/Drawer/link") == 0)
    #expect(mknod(home + "/Drawer/disk", S_IFBLK | 0o666, 0x0701) == 0)
    for path in ["", "/Documents", "/Drawer", "/Drawer/file", "/Drawer/link", "/Drawer/disk"] {
      give(path, to: Self.gone)
    }
    give("/Drawer/others", to: 4_000_000_002)
    let adoption = try adopt()
    #expect(adoption.previous == Self.gone && adoption.given == 4)
    for path in ["", "/Documents", "/Drawer", "/Drawer/file", "/Drawer/link"] {
      #expect(status(path).st_uid == account.uid && status(path).st_gid == account.gid, "\(path)")
    }
    #expect(status("/Drawer/disk").st_uid == Self.gone)
    #expect(status("/Drawer/others").st_uid == 4_000_000_002)
    #expect(adoption.left[.device]?.first == ["Drawer/disk"])
    #expect(adoption.left[.othersProperty]?.first == ["Drawer/others (uid 4000000002)"])
    #expect(try findings().isEmpty)
  }

  /// Whoever had the home has made other names for files that are not theirs to give.
  @Test(.enabled(if: Program.isRoot, "giving files away needs root"))
  func filesWithNamesElsewhereStayWhoseTheyAre() throws {
    let secret = try made.temporary.write("root's", to: "secret")
    #expect(chmod(secret, 0o4700) == 0)
    #expect(link(secret, home + "/mine") == 0)
    write("twice", "/one")
    #expect(link(home + "/one", home + "/two") == 0)
    // Put there by root, as the other file.
    let adoption = try adopt()
    #expect(status("/mine").st_uid == 0 && status("/mine").st_mode & 0o7777 == 0o4700)
    #expect(status("/one").st_uid == account.uid && status("/two").st_uid == account.uid)
    #expect(adoption.left[.linkedElsewhere]?.first == ["mine"])
  }

  /// What the disk protects keeps nobody from the rest, and is told: it may be a program with more rights.
  @Test(.enabled(if: Program.isRoot, "giving files away needs root"))
  func whatCannotBeChangedIsListed() throws {
    for (path, user) in [("/former", Self.gone), ("/own", account.uid), ("/harmless", account.uid)] {
      write("#!/bin/sh", path, mode: 0o755)
      give(path, to: user)
    }
    let capability: [UInt8] = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    #expect(setxattr(home + "/own", "security.capability", capability, 20, 0) == 0)
    give("", to: Self.gone)
    let protected = ["/former", "/own", "/harmless"].map { home + $0 }
    // Not every filesystem has that.
    guard try Program.run(["chattr", "+i"] + protected).status == 0 else { return }
    defer { _ = try? Program.run(["chattr", "-i"] + protected) }
    write("x", "/letter")
    give("/letter", to: Self.gone)
    let adoption = try adopt()
    #expect(Set(adoption.left[.protected]?.first ?? []) == ["former", "own"])
    #expect(status("/letter").st_uid == account.uid && status("").st_uid == account.uid)
  }

  @Test(.enabled(if: Program.isRoot, "giving files away needs root"))
  func programsRunAsNobodyElse() throws {
    for (path, user, mode) in [
      ("/root", 0, 0o4755), ("/own", account.uid, 0o2755), ("/former", Self.gone, 0o6755),
      ("/plain", Self.gone, 0o755),
    ] as [(String, UInt32, UInt32)] {
      write("#!/bin/sh", path)
      give(path, to: user)
      #expect(chmod(home + path, mode) == 0)
    }
    give("", to: Self.gone)
    let capability: [UInt8] = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    write("#!/bin/sh", "/capable")
    give("/capable", to: account.uid)
    #expect(chmod(home + "/capable", 0o755) == 0)
    #expect(setxattr(home + "/capable", "security.capability", capability, 20, 0) == 0)
    let adoption = try adopt()
    for path in ["/root", "/own", "/former", "/plain"] {
      #expect(status(path).st_mode & 0o6000 == 0, "\(path)")
    }
    #expect(status("/root").st_uid == 0)
    #expect(Set(adoption.tamed.first) == ["root", "own", "former", "capable"])
    #expect(getxattr(home + "/capable", "security.capability", nil, 0) < 0)
  }

  @Test(.enabled(if: Program.isRoot, "giving files away needs root"))
  func homeOfSomebodyWhoIsThereIsTheirs() throws {
    let other = try #require(Account.numbered(1) ?? Account.numbered(2))
    give("", to: other.uid)
    #expect(refusal()?.first?.contains("belongs to \(other.name), who has an account here") == true)
    #expect(status("").st_uid == other.uid)
  }

  @Test(.enabled(if: Program.isRoot, "mounting needs root"))
  func mountInAHomeIsRefused() throws {
    #expect(mkdir(home + "/Documents", 0o755) == 0)
    #expect(mount("tmpfs", home + "/Documents", "tmpfs", 0, nil) == 0)
    defer { umount2(home + "/Documents", Int32(MNT_DETACH)) }
    #expect(refusal() == ["something is mounted at Documents"])
  }
}
