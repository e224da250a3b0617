// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

/// ACLs on a real mount, with real users.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct AccessControlTests {
  static let alias = "system.insula.acl"
  static let alice: UInt32 = 54321
  static let bob: UInt32 = 54322
  private static let team: UInt32 = 54400

  func setACL(_ path: String, _ entries: AccessControlEntry...) {
    let bytes = AccessControlList(entries).filesec
    #expect(lsetxattr(path, Self.alias, bytes, bytes.count, 0) == 0)
  }

  /// What a client sends to set an ACL.
  private func hex(_ entries: AccessControlEntry...) -> String {
    AccessControlList(entries).filesec.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  private func list(_ path: String) -> [UInt8]? {
    var room = [UInt8](repeating: 0, count: 4096)
    let count = lgetxattr(path, Self.alias, &room, room.count)
    return count < 0 ? nil : Array(room[..<count])
  }

  @Test func usersAndGroupsOfRealProcesses() throws {
    let mounted = try MountedStore.mounted()
    let file = mounted.path("Users/Shared/file")
    let owner = try Client(uid: Self.alice)
    let member = try Client(uid: 54323, gid: Self.team)
    let supplementary = try Client(uid: 54324, groups: [Self.team, 54401])
    let stranger = try Client(uid: Self.bob, groups: [54401])
    let read = "\(O_RDONLY)"
    let write = "\(O_WRONLY)"
    #expect(try owner.errno("create", file, "\(0o600)") == 0)
    #expect(
      try owner.errno(
        "setxattr hex", file, Self.alias, hex(AccessControlEntry(.permit, .group(Self.team), .read)))
        == 0)
    for client in [member, supplementary] {
      #expect(try client.errno("open", file, read) == 0)
      #expect(try client.errno("open", file, write) == EACCES)
      #expect(try client.errno("removexattr", file, Self.alias) == EPERM)
    }
    #expect(try stranger.errno("open", file, read) == EACCES)
    #expect(try owner.errno("chmod", file, "\(0o644)") == 0)
    #expect(
      try owner.errno(
        "setxattr hex", file, Self.alias, hex(AccessControlEntry(.deny, .group(Self.team), .read)))
        == 0)
    for client in [member, supplementary] {
      #expect(try client.errno("open", file, read) == EACCES)
      #expect(try client.errno("access", file, "\(R_OK)") == EACCES)
    }
    #expect(try stranger.errno("open", file, read) == 0)
    #expect(try owner.errno("removexattr", file, Self.alias) == 0)
    #expect(try supplementary.errno("open", file, read) == 0)
  }

  /// What one user has looked at, and the kernel remembers, is not shown to another who may not.
  @Test(arguments: [nil, "nopassthrough,nohandles"])
  func attributesAreRefusedWhateverTheKernelRemembers(options: String?) throws {
    let mounted = try MountedStore.mounted(options: options)
    let file = mounted.path("Users/Shared/file")
    let owner = try Client(uid: Self.alice)
    let stranger = try Client(uid: Self.bob)
    #expect(try owner.errno("create", file, "\(0o644)") == 0)
    for _ in 0..<100 {
      #expect(try stranger.errno("stat", file) == 0)
      setACL(file, AccessControlEntry(.deny, .user(Self.bob), .readAttributes))
      #expect(try owner.errno("stat", file) == 0)
      #expect(try owner.errno("list", mounted.path("Users/Shared")) == 0)
      #expect(try stranger.errno("stat", file) == EACCES)
      #expect(lremovexattr(file, Self.alias) == 0)
    }
  }

  /// Two kernels' memories of one volume: neither shows what was forbidden through the other.
  @Test func changeThroughOneMountHoldsInAnother() throws {
    let mounts = try TwoMounts()
    let owner = try Client(uid: Self.alice)
    let stranger = try Client(uid: Self.bob)
    #expect(try owner.errno("mkdir", mounts.path(0, "dir"), "\(0o755)") == 0)
    #expect(try owner.errno("create", mounts.path(0, "dir/file"), "\(0o644)") == 0)
    let file = hex(AccessControlEntry(.deny, .user(Self.bob), .readAttributes))
    let directory = hex(AccessControlEntry(.deny, .user(Self.bob), .search))
    for round in 0..<100 {
      let (here, there) = (round & 1, 1 - round & 1)
      #expect(try stranger.errno("stat", mounts.path(there, "dir/file")) == 0)
      #expect(try owner.errno("setxattr hex", mounts.path(here, "dir/file"), Self.alias, file) == 0)
      #expect(try stranger.errno("stat", mounts.path(there, "dir/file")) == EACCES)
      #expect(try owner.errno("removexattr", mounts.path(here, "dir/file"), Self.alias) == 0)
      #expect(try stranger.errno("stat", mounts.path(there, "dir/file")) == 0)
      #expect(try owner.errno("setxattr hex", mounts.path(here, "dir"), Self.alias, directory) == 0)
      #expect(try stranger.errno("stat", mounts.path(there, "dir/file")) == EACCES)
      #expect(try owner.errno("removexattr", mounts.path(here, "dir"), Self.alias) == 0)
    }
  }

  /// By ACL or by flag; what the client does with the descriptor afterwards changes nothing.
  @Test(arguments: ["list", "uappnd"], [nil, "nopassthrough"])
  func whoMayOnlyAppendNeverWritesElsewhere(how: String, options: String?) throws {
    let mounted = try MountedStore.mounted(options: options)
    let file = mounted.path("Users/Shared/log")
    let owner = try Client(uid: Self.alice)
    let other = try Client(uid: Self.bob)
    #expect(try owner.errno("create", file, "\(0o644)") == 0)
    #expect(try owner.errno("write", "0", "begin.") == 0)
    #expect(try owner.errno("close", "0") == 0)
    let refusal = how == "list" ? EACCES : EPERM
    if how == "list" {
      setACL(file, AccessControlEntry(.permit, .user(Self.bob), .append))
    } else {
      #expect(chmod(file, 0o666) == 0)
      #expect(try owner.errno("setxattr", file, "system.insula.flags", how) == 0)
    }
    var expected = "begin."
    var index = 0
    for mode in [O_WRONLY, O_RDWR] {
      #expect(try other.errno("open", file, "\(mode)") == refusal)
      #expect(try other.errno("open", file, "\(mode | O_APPEND | O_TRUNC)") == refusal)
      #expect(try other.errno("open", file, "\(mode | O_APPEND)") == 0)
      #expect(try other.errno("write", "\(index)", "one.") == 0)
      #expect(try other.errno("set flags", "\(index)", "0") == 0)
      #expect(try other.errno("write at", "\(index)", "0", "two.") == 0)
      expected += "one.two."
      #expect(FD.text(of: file, limit: 4096) == expected)
      #expect(try other.errno("map", "\(index)", "4096") == (mode == O_RDWR ? ENODEV : EACCES))
      #expect(try other.errno("ftruncate", "\(index)", "0") == refusal)
      let punch = "\(CLX_FALLOC_KEEP_SIZE | CLX_FALLOC_PUNCH_HOLE)"
      #expect(try other.errno("fallocate", "\(index)", punch, "0", "4") == EPERM)
      #expect(try other.errno("fallocate", "\(index)", "\(CLX_FALLOC_ZERO_RANGE)", "0", "4") != 0)
      #expect(try other.errno("fallocate", "\(index)", "\(CLX_FALLOC_KEEP_SIZE)", "0", "8192") == 0)
      if mode == O_RDWR { #expect(try other.errno("copy range", "\(index)", "0", "2", "2") == EBADF) }
      #expect(FD.text(of: file, limit: 4096) == expected)
      index += 1
    }
    #expect(FD.text(of: mounted.backing("Users/Shared/log"), limit: 4096) == expected)
  }

  /// Where each write comes to the daemon: of who may only append, and beside root, who has the disk's
  /// reserve.
  @Test(arguments: ["append", "beside root"])
  func setIDGoesWithAStrangersWrite(how: String) throws {
    let mounted = try MountedStore.mounted()
    let file = mounted.path("Users/Shared/program")
    let root = try Client()
    let other = try Client(uid: Self.bob)
    #expect(try root.errno("create", file, "\(0o755)") == 0)
    if how == "append" {
      #expect(try root.errno("close", "0") == 0)
      setACL(file, AccessControlEntry(.permit, .user(Self.bob), .append))
    }
    let mode: mode_t = how == "append" ? 0o755 : 0o777
    #expect(chmod(file, 0o6000 | mode) == 0)
    #expect(try other.errno("open", file, "\(O_WRONLY | O_APPEND)") == 0)
    #expect(try other.errno("write", "0", "text") == 0)
    var status = stat()
    #expect(stat(file, &status) == 0 && status.st_mode & 0o7777 == mode, "\(status.st_mode)")
  }

  @Test func whatIsMadeHasItsACLAndNothingIsLeftBehind() throws {
    let mounted = try MountedStore(asNobody: false)
    let staging = mounted.store + "/state/staging"
    #expect(mkdir(staging + "/left", 0o700) == 0 && close(creat(staging + "/left/file", 0o600)) == 0)
    try mounted.mount(options: "noatime")
    let dir = mounted.path("Users/Shared/dir")
    let client = try Client(uid: Self.alice)
    #expect(try client.errno("mkdir", dir, "\(0o777)") == 0)
    setACL(dir, AccessControlEntry(.deny, .user(Self.bob), .read, [.fileInherit, .directoryInherit]))
    #expect(try client.errno("mkdir", dir + "/sub", "\(0o755)") == 0)
    #expect(try client.errno("create", dir + "/sub/file", "\(0o644)") == 0)
    #expect(try client.errno("mkfifo", dir + "/sub/fifo", "\(0o666)") == 0)
    #expect(try client.errno("symlink", "x", dir + "/sub/link") == 0)
    let inherited = AccessControlList([AccessControlEntry(.deny, .user(Self.bob), .read, .inherited)])
    for name in ["file", "fifo"] { #expect(list("\(dir)/sub/\(name)") == inherited.filesec) }
    #expect(list(dir + "/sub/link") == nil)
    let stranger = try Client(uid: Self.bob)
    #expect(try stranger.errno("open", dir + "/sub/file", "\(O_RDONLY)") == EACCES)
    #expect(try stranger.errno("list", dir + "/sub") == EACCES)
    #expect(try mounted.temporary.names(in: "store/state/staging").isEmpty)
    // Kept with the file whatever happens to the daemon.
    try mounted.killDaemon()
    try unmount(mounted.point, lazily: true)
    try mounted.mount()
    #expect(list(dir + "/sub/file") == inherited.filesec)
    #expect(try stranger.errno("open", dir + "/sub/file", "\(O_RDONLY)") == EACCES)
  }

  @Test func homesKeepTheirDirectories() throws {
    let mounted = try MountedStore.mounted()
    let account = try TemporaryAccount()
    let added = try mounted.run("user", "add", "--store", mounted.store, account.account.name)
    #expect(added.status == 0, "\(added.errors)")
    let home = mounted.path("Users/" + account.account.name)
    let owner = try Client(uid: account.account.uid, gid: account.account.gid)
    for name in HomeDirectory.all.map(\.path) where !name.hasPrefix("Library/") {
      #expect(try owner.errno("rmdir", home + "/" + name) == EACCES)
      #expect(try owner.errno("rename", home + "/" + name, home + "/other") == EACCES)
    }
    #expect(try owner.errno("create", home + "/Documents/file", "\(0o600)") == 0)
    let removal = try Program.run(
      [
        "setpriv", "--reuid=\(account.account.uid)", "--regid=\(account.account.gid)", "--clear-groups", "rm",
        "-r",
        home + "/Documents",
      ])
    #expect(removal.ending == .failed && removal.errors.contains("Permission denied"))
    #expect(try owner.errno("stat", home + "/Documents/file") == ENOENT)
    #expect(try owner.errno("mkdir", home + "/Documents/sub", "\(0o700)") == 0)
    #expect(try owner.errno("rmdir", home + "/Documents/sub") == 0)
    // What one adds oneself is not protected; and who takes the ACL away first may remove what is.
    #expect(try owner.errno("mkdir", home + "/Code", "\(0o700)") == 0)
    #expect(try owner.errno("rmdir", home + "/Code") == 0)
    #expect(try owner.errno("removexattr", home + "/Sites", Self.alias) == 0)
    #expect(try owner.errno("unlink", home + "/Sites/.localized") == 0)
    #expect(try owner.errno("rmdir", home + "/Sites") == 0)
    #expect(try owner.errno("rmdir", home + "/Library/Sounds") == 0)
    var words = [CChar](repeating: 0, count: 64)
    #expect(lgetxattr(home + "/Library", "system.insula.flags", &words, words.count) == 6)
    #expect(String(decoding: words.prefix(6).map { UInt8(bitPattern: $0) }, as: UTF8.self) == "hidden")
    // Root ignores ACLs, and flags that stand in the way are taken away.
    #expect(try owner.errno("create", home + "/Documents/kept", "\(0o600)") == 0)
    #expect(try owner.errno("setxattr", home + "/Documents/kept", "system.insula.flags", "uchg") == 0)
    // A home in which something is open would not be removed.
    #expect(try owner.errno("close all") == 0)
    let removed = try mounted.run(
      "user", "remove", "--store", mounted.store, "--delete-home", account.account.name)
    #expect(removed.status == 0, "\(removed.errors)")
    #expect(try mounted.temporary.names(in: "point/Users") == ["Shared"])
  }

  /// Others leave things; they keep them as theirs, and the box's owner may do everything with them.
  @Test func dropBoxTakesFilesAndShowsThemToItsOwner() throws {
    let mounted = try MountedStore.mounted()
    let account = try TemporaryAccount()
    // Made before the store is mounted or after, it is the same.
    #expect(try mounted.run("user", "add", "--store", mounted.store, account.account.name).status == 0)
    let box = mounted.path("Users/\(account.account.name)/Public/Drop Box")
    let owner = try Client(uid: account.account.uid, gid: account.account.gid)
    let giver = try Client(uid: Self.alice)
    let stranger = try Client(uid: Self.bob)
    #expect(try giver.errno("create", box + "/gift", "\(0o600)") == 0)
    #expect(try giver.errno("write", "0", "for you") == 0)
    let status = try owner.run("stat", box + "/gift")
    #expect(Array(status.words.prefix(2)) == ["\(Self.alice)", "\(account.account.gid)"])
    #expect(try giver.errno("list", box) == EACCES && stranger.errno("list", box) == EACCES)
    #expect(try stranger.errno("open", box + "/gift", "\(O_RDONLY)") == EACCES)
    #expect(try owner.errno("list", box) == 0)
    #expect(try owner.errno("open", box + "/gift", "\(O_RDWR)") == 0)
    #expect(try owner.run("read", "0", "0").words == ["for you"])
    // A directory of someone else's, and what is in it.
    #expect(try giver.errno("mkdir", box + "/folder", "\(0o700)") == 0)
    #expect(try giver.errno("create", box + "/folder/inner", "\(0o600)") == 0)
    #expect(try owner.errno("list", box + "/folder") == 0)
    #expect(try owner.errno("open", box + "/folder/inner", "\(O_RDONLY)") == 0)
    #expect(try owner.errno("unlink", box + "/folder/inner") == 0)
    #expect(try owner.errno("rmdir", box + "/folder") == 0)
    #expect(try owner.errno("chown", box + "/gift", "\(account.account.uid)", "\(account.account.gid)") == 0)
    #expect(try owner.errno("unlink", box + "/gift") == 0)
    #expect(try owner.errno("rmdir", box) == EACCES)
  }

  @Test func copyingProgramsCarryACLs() throws {
    let mounted = try MountedStore.mounted()
    let shared = mounted.path("Users/Shared")
    #expect(mkdir(shared + "/from", 0o755) == 0 && close(creat(shared + "/from/file", 0o644)) == 0)
    let entry = AccessControlEntry(.deny, .user(Self.bob), [.read, .delete])
    setACL(shared + "/from", entry)
    setACL(shared + "/from/file", entry)
    let archive = mounted.temporary.appending("archive")
    for words in [
      ["cp", "-r", "--preserve=xattr", "from", "to"], ["rsync", "-rX", "from/", "to/"],
      [
        "sh", "-c",
        "tar --xattrs --xattrs-include='*' -cf \(archive) -C from . && "
          + "mkdir to && tar --xattrs --xattrs-include='*' -xf \(archive) -C to",
      ],
      ["mv", "from", "to"],
    ] {
      let result = try Program.run(words, in: shared)
      #expect(result.status == 0, "\(words): \(result.errors)")
      for name in ["/to", "/to/file"] {
        #expect(list(shared + name) == AccessControlList([entry]).filesec, "\(words) \(name)")
      }
      if words[0] != "mv" { #expect(try Program.run(["rm", "-r", shared + "/to"]).status == 0) }
    }
  }

  /// A program is for those whom mode or ACL lets run it; but the kernel wants an x bit somewhere in the
  /// mode.
  @Test func programsRunForThoseWhoMayRunThem() throws {
    let mounted = try MountedStore.mounted()
    let program = mounted.path("Users/Shared/program")
    #expect(try Program.run(["cp", "/bin/true", program]).status == 0)
    func run() throws -> Int32 {
      try Program.run(["setpriv", "--reuid=\(Self.bob)", "--regid=\(Self.bob)", "--clear-groups", program])
        .status
    }
    #expect(chmod(program, 0o744) == 0)
    #expect(try run() != 0)
    setACL(program, AccessControlEntry(.permit, .user(Self.bob), .execute))
    #expect(try run() == 0)
    #expect(chmod(program, 0o644) == 0)
    #expect(try run() != 0)
    #expect(chmod(program, 0o755) == 0)
    setACL(program, AccessControlEntry(.deny, .user(Self.bob), .execute))
    #expect(try run() != 0)
  }

  @Test func chattrAndLsattrKnowTheFlags() throws {
    let mounted = try MountedStore.mounted()
    let file = mounted.path("Users/Shared/file")
    let owner = try Client(uid: Self.alice)
    #expect(try owner.errno("create", file, "\(0o644)") == 0)
    for (letter, word) in [("i", "schg"), ("a", "sappnd"), ("d", "nodump")] {
      let set = try Program.run(["chattr", "+" + letter, file])
      #expect(set.status == 0, "\(set.errors)")
      var words = [UInt8](repeating: 0, count: 64)
      let count = lgetxattr(file, "system.insula.flags", &words, words.count)
      #expect(count > 0 && String(decoding: words.prefix(max(count, 0)), as: UTF8.self) == word)
      let shown = try Program.run(["lsattr", file])
      #expect(shown.output.split(separator: " ").first?.contains(letter) == true, "\(shown.output)")
      #expect(try owner.errno("open", file, "\(O_WRONLY)") == (letter == "d" ? 0 : EPERM))
      let opened = open(file, O_WRONLY | O_TRUNC)
      #expect((opened >= 0) == (letter == "d"))
      // Left open, it would keep the daemon after the mount is gone.
      if opened >= 0 { close(opened) }
      #expect(try Program.run(["chattr", "-" + letter, file]).status == 0)
    }
    #expect(try owner.errno("setxattr", file, "system.insula.flags", "uchg") == 0)
    #expect(unlink(file) == -1 && Errno.last == .EPERM)
    #expect(try Program.run(["lsattr", file]).output.prefix(22).contains("i"))
  }

  /// A user's own daemon keeps and enforces the same rules, as far as it has them in its hands.
  @Test func rootlessModeHasACLsAndFlags() throws {
    let account = try TemporaryAccount()
    let mounted = try MountedStore.mounted(owner: account.account)
    let owner = try Client(uid: account.account.uid, gid: account.account.gid)
    let dir = mounted.path("Users/Shared/dir")
    #expect(try owner.errno("mkdir", dir, "\(0o755)") == 0)
    let deny = hex(AccessControlEntry(.deny, .everyone, .delete, [.fileInherit, .directoryInherit]))
    #expect(try owner.errno("setxattr hex", dir, Self.alias, deny) == 0)
    // Modes under which a user's attributes could not be set or read.
    for mode in [0o000, 0o444, 0o644] {
      #expect(try owner.errno("create", dir + "/file\(mode)", "\(mode)") == 0)
      #expect(
        try owner.run("stat", dir + "/file\(mode)").words.dropFirst(2).first == "\(0o100000 | mode)")
      #expect(try owner.errno("unlink", dir + "/file\(mode)") == EACCES)
      #expect(try owner.errno("setxattr", dir + "/file\(mode)", "system.insula.flags", "uchg") == 0)
      #expect(try owner.errno("removexattr", dir + "/file\(mode)", Self.alias) == EPERM)
      #expect(try owner.errno("setxattr", dir + "/file\(mode)", "system.insula.flags", "") == 0)
      #expect(try owner.errno("removexattr", dir + "/file\(mode)", Self.alias) == 0)
      #expect(try owner.errno("unlink", dir + "/file\(mode)") == 0)
      #expect(try owner.errno("mkdir", dir + "/sub\(mode)", "\(mode)") == 0)
      #expect(try owner.run("stat", dir + "/sub\(mode)").words.dropFirst(2).first == "\(0o040000 | mode)")
      #expect(try owner.errno("rmdir", dir + "/sub\(mode)") == EACCES)
    }
    // The daemon opens files as its user, so what their mode does not give, no ACL does.
    #expect(try owner.errno("create", mounted.path("Users/Shared/given"), "\(0o400)") == 0)
    let permit = hex(AccessControlEntry(.permit, .everyone, .all))
    #expect(try owner.errno("setxattr hex", mounted.path("Users/Shared/given"), Self.alias, permit) == 0)
    #expect(try owner.errno("open", mounted.path("Users/Shared/given"), "\(O_WRONLY)") == EACCES)
    // Linux has attributes of users on files and directories alone.
    #expect(try owner.errno("mkfifo", dir + "/fifo", "\(0o600)") == 0)
    #expect(try owner.errno("setxattr hex", dir + "/fifo", Self.alias, deny) == EOPNOTSUPP)
    #expect(try owner.errno("unlink", dir + "/fifo") == 0)
    #expect(try mounted.run("user", "add", "--store", mounted.store, account.account.name).status == 0)
    let home = mounted.path("Users/" + account.account.name)
    #expect(try owner.errno("rmdir", home + "/Movies") == EACCES)
    let removed = try mounted.run(
      "user", "remove", "--store", mounted.store, "--delete-home", account.account.name)
    #expect(removed.status == 0, "\(removed.errors)")
    #expect(try owner.errno("stat", home) == ENOENT)
  }
}
