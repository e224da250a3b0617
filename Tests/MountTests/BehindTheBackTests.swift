// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Someone works in the backing directory, or the daemon dies.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct BehindTheBackTests {
  /// What is in a file, or the error.
  private func contents(_ path: String) -> Result<String, Errno> {
    do throws(Errno) {
      let bytes = try path.withName { (name) throws(Errno) in
        let file = try FD.cwd.openFollowing(name, O_RDONLY)
        return try file.fd.readToEnd(limit: 1 << 20)
      }
      return .success(String(decoding: bytes, as: UTF8.self))
    } catch {
      return .failure(error)
    }
  }

  private func write(_ text: String, to path: String) throws {
    let raw = clx_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
    let file = OwnedFD(owning: try check(raw))
    try file.fd.writeAll(text.utf8)
  }

  @Test(arguments: [nil, "nohandles,nopassthrough", "nohandles", "nopassthrough"])
  func changesBehindTheDaemonAreHonestErrors(options: String?) throws {
    let mounted = try MountedStore.mounted(options: options)
    let base = "Users/Shared/"
    // What a planted link leads to is a file of the test's own: a client that follows the link, as this one
    // does below, writes to its target with its own rights.
    let outside = try TemporaryDirectory()
    let bait = outside.appending("bait")
    try write("bait", to: bait)
    for round in 0..<100 {
      let name = base + "file\(round)"
      try write("first \(round)", to: mounted.path(name))
      #expect(contents(mounted.path(name)) == .success("first \(round)"))
      #expect(unlink(mounted.backing(name)) == 0)
      switch round % 4 {
      case 0: try write("other \(round)", to: mounted.backing(name))
      case 1: #expect(mkdir(mounted.backing(name), 0o755) == 0)
      case 2: #expect(symlink(bait, mounted.backing(name)) == 0)
      default: break
      }
      // What was known is what is found, or what is there now, or an error: never anything else.
      switch contents(mounted.path(name)) {
      case .success(let text):
        let isThereNow = round % 4 == 0 && text == "other \(round)" || round % 4 == 2 && text == "bait"
        #expect(text == "first \(round)" || isThereNow)
      case .failure(let error): #expect([.ESTALE, .ENOENT, .EISDIR, .ENXIO, .EIO, .ELOOP].contains(error))
      }
      // Nor does anything that is done to it stop the daemon.
      _ = chmod(mounted.path(name), 0o600)
      _ = truncate(mounted.path(name), 3)
      _ = rename(mounted.path(name), mounted.path(name) + ".moved")
      _ = unlink(mounted.path(name))
      _ = rmdir(mounted.path(name))
      try write("bait", to: bait)
    }
    try write("fine", to: mounted.path(base + "after"))
    #expect(contents(mounted.backing(base + "after")) == .success("fine"))
    #expect(try mounted.daemon() != nil)
  }

  @Test func wholeDirectoriesMayGo() throws {
    let mounted = try MountedStore.mounted(options: "nohandles")
    for name in ["a", "a/b", "a/b/c"] { #expect(mkdir(mounted.path("Users/Shared/" + name), 0o755) == 0) }
    try write("deep", to: mounted.path("Users/Shared/a/b/c/file"))
    let open = OwnedFD(
      owning: try check(clx_open(mounted.path("Users/Shared/a/b/c"), O_RDONLY | O_DIRECTORY, 0)))
    #expect(try Program.run(["rm", "-r", mounted.backing("Users/Shared/a")]).status == 0)
    switch contents(mounted.path("Users/Shared/a/b/c/file")) {
    case .success(let text): #expect(text == "deep")
    case .failure(let error): #expect([.ENOENT, .ESTALE].contains(error))
    }
    #expect(mkdirat(open.fd.raw, "new", 0o755) == -1 && [.ENOENT, .ESTALE].contains(Errno.last))
    // A directory that is gone has no entries, and Linux says so by an error.
    #expect(throws: Errno.ENOENT) { try open.fd.entries() }
    // The same names again, which are other directories.
    for name in ["a", "a/b"] { #expect(mkdir(mounted.backing("Users/Shared/" + name), 0o755) == 0) }
    #expect(mkdirat(open.fd.raw, "new", 0o755) == -1)
    #expect(access(mounted.backing("Users/Shared/a/b/new"), F_OK) == -1)
    #expect(try mounted.daemon() != nil)
  }

  @Test func killedDaemonLosesNothing() throws {
    let mounted = try MountedStore.mounted()
    let path = mounted.path("Users/Shared/file")
    try write("kept", to: path)
    let open = OwnedFD(owning: try check(clx_open(path, O_RDWR, 0)))
    let pid = try #require(try mounted.daemon())
    try mounted.killDaemon()
    #expect(access(path, F_OK) == -1 && Errno.last == .ENOTCONN)
    #expect(mkdir(mounted.path("Users/Shared/dir"), 0o755) == -1 && Errno.last == .ENOTCONN)
    #expect(mounted.isMounted)
    try mounted.mount()
    #expect(contents(path) == .success("kept"))
    try write("new", to: path)
    #expect(contents(path) == .success("new") && open.fd.raw >= 0)
    #expect(try mounted.daemon() != pid)
  }
}
