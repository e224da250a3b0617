// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// The four domains, as several users find them.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .serialized)
struct DomainTests {
  @Test func systemDomainIsReadOnlyForRootToo() throws {
    let mounted = try MountedStore.mounted()
    let file = mounted.path("System/Library/file")
    #expect(FD.text(of: "/proc/self/status", limit: 1 << 16) != nil)
    let raw = try check(creat(mounted.backing("System/Library/file"), 0o666))
    close(raw)
    let outside = mounted.path("Users/Shared/file")
    let outsideRaw = try check(creat(outside, 0o644))
    close(outsideRaw)
    for client in [try Client(), try Client(uid: 54321)] {
      for new in ["System/Library/new", "System/new", "new"].map(mounted.path) {
        #expect(try client.errno("create", new, "\(0o644)") == EROFS)
        #expect(try client.errno("mkdir", new, "\(0o755)") == EROFS)
        #expect(try client.errno("symlink", "x", new) == EROFS)
        #expect(try client.errno("mkfifo", new, "\(0o644)") == EROFS)
        #expect(try client.errno("link", outside, new) == EROFS)
        #expect([EROFS, EPERM].contains(try client.errno("rename", outside, new)))
      }
      #expect(try client.errno("rename", file, mounted.path("Users/Shared/moved")) == EROFS)
      #expect(try client.errno("exchange", file, outside) == EROFS)
      #expect(try client.errno("unlink", file) == EROFS)
      #expect(try client.errno("rmdir", mounted.path("System/Library/CoreServices")) == EROFS)
      #expect(try client.errno("open", file, "\(O_WRONLY)") == EROFS)
      #expect(try client.errno("open", file, "\(O_RDONLY | O_TRUNC)") == EROFS)
      #expect(
        try client.errno("open", mounted.path("System/Library"), "\(CLX_O_TMPFILE | O_RDWR)", "\(0o600)")
          == EROFS)
      #expect(try client.errno("truncate", file, "0") == EROFS)
      #expect(try client.errno("chmod", file, "\(0o777)") == EROFS)
      #expect(try client.errno("chown", file, "0", "0") == EROFS)
      #expect(try client.errno("touch", file) == EROFS)
      #expect(try client.errno("setxattr", file, "user.a", "b") == EROFS)
      #expect(try client.errno("removexattr", file, "user.a") == EROFS)
      #expect(try client.errno("access", file, "\(W_OK)") == EROFS)
      #expect(try client.errno("open", file, "\(O_RDONLY)") == 0)
      #expect(try client.errno("list", mounted.path("System/Library")) == 0)
    }
  }

  @Test func skeletonStays() throws {
    let mounted = try MountedStore.mounted()
    for name in ["Library/Caches", "Library/Preferences", "Applications/Utilities", "Users/Shared"] {
      let path = mounted.path(name)
      #expect(rmdir(path) == -1 && Errno.last == .EPERM, "\(name)")
      #expect(rename(path, path + "-moved") == -1 && Errno.last == .EPERM, "\(name)")
      #expect(mkdir(path + "-other", 0o755) == 0)
      #expect(rename(path + "-other", path) == -1 && Errno.last == .EPERM, "\(name)")
    }
    for name in ["Library", "Applications", "Users", "Network", "Volumes", "System"] {
      #expect(rmdir(mounted.path(name)) == -1 && Errno.last == .EROFS, "\(name)")
      let elsewhere = mounted.path(name == "Users" ? "Volumes/x" : "Users/x")
      #expect(rename(mounted.path(name), elsewhere) == -1 && Errno.last == .EROFS, "\(name)")
    }
  }

  @Test func localDomainIsTheAdminGroups() throws {
    let mounted = try MountedStore.mounted()
    let stranger = try Client(uid: 54321)
    let gid = try #require(UInt32(try stranger.run("stat", mounted.path("Applications")).words[1]))
    let admin = try Client(uid: 54322, gid: 54322, groups: [gid])
    for place in ["Applications", "Applications/Utilities", "Library", "Library/Frameworks"] {
      let app = mounted.path(place + "/Thing")
      #expect(try stranger.errno("mkdir", app, "\(0o755)") == EACCES)
      #expect(try admin.errno("mkdir", app, "\(0o755)") == 0)
      // A new object takes its directory's group.
      #expect(try stranger.run("stat", app).words[..<2] == ["54322", "\(gid)"])
      #expect(try stranger.errno("rmdir", app) == EACCES)
      #expect(try admin.errno("rmdir", app) == 0)
    }
    #expect(try admin.errno("mkdir", mounted.path("Library/Extensions/x"), "\(0o755)") == EACCES)
    #expect(try stranger.errno("create", mounted.path("Library/Caches/x"), "\(0o644)") == 0)
    #expect(try admin.errno("unlink", mounted.path("Library/Caches/x")) == EPERM)
  }

  @Test func homesAreTheirOwners() throws {
    let mounted = try MountedStore.mounted()
    let account = try TemporaryAccount()
    let added = try mounted.run("user", "add", account.account.name, "--store", mounted.store)
    #expect(added.status == 0, "\(added.errors)")
    let home = mounted.path("Users/" + account.account.name)
    let owner = try Client(uid: account.account.uid, gid: account.account.gid)
    let other = try Client(uid: 54321)
    for name in ["Documents", "Library", "Desktop"] {
      #expect(try owner.errno("create", home + "/\(name)/file", "\(0o644)") == 0)
      #expect(try other.errno("stat", home + "/\(name)/file") == EACCES)
      #expect(try other.errno("list", home + "/" + name) == EACCES)
    }
    #expect(try other.errno("list", home) == EACCES)
    #expect(try other.errno("mkdir", home + "/new", "\(0o755)") == EACCES)
    // Public is for others to read, and its box for others to leave things in.
    #expect(try owner.errno("create", home + "/Public/file", "\(0o644)") == 0)
    #expect(try other.errno("list", home + "/Public") == 0)
    #expect(try other.errno("open", home + "/Public/file", "\(O_RDONLY)") == 0)
    #expect(try other.errno("open", home + "/Public/file", "\(O_RDWR)") == EACCES)
    #expect(try other.errno("create", home + "/Public/new", "\(0o644)") == EACCES)
    #expect(try other.errno("create", home + "/Public/Drop Box/gift", "\(0o644)") == 0)
    #expect(try other.errno("list", home + "/Public/Drop Box") == EACCES)
    #expect(try owner.errno("list", home + "/Public/Drop Box") == 0)
    #expect(try owner.errno("open", home + "/Public/Drop Box/gift", "\(O_RDONLY)") == 0)
    #expect(try owner.errno("unlink", home + "/Public/Drop Box/gift") == 0)
    // Shared is for all, and each may remove only what is his.
    #expect(try other.errno("create", mounted.path("Users/Shared/mine"), "\(0o644)") == 0)
    #expect(try owner.errno("unlink", mounted.path("Users/Shared/mine")) == EPERM)
    #expect(try other.errno("mkdir", mounted.path("Users/fake"), "\(0o755)") == EACCES)
  }
}
