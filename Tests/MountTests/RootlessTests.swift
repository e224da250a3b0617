// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What one user's own mount can't be.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct RootlessTests {
  private static let uid: UInt32 = 65534

  @Test func everyObjectBelongsToTheUser() throws {
    let mounted = try MountedStore(asNobody: true)
    try mounted.mount()
    let shared = mounted.path("Users/Shared/")
    let user = try Client(uid: Self.uid)
    #expect(try user.errno("create", shared + "file", "\(0o666)") == 0)
    #expect(try user.errno("mkdir", shared + "directory", "\(0o777)") == 0)
    #expect(try user.errno("symlink", "file", shared + "link") == 0)
    #expect(try user.errno("mkfifo", shared + "pipe", "\(0o666)") == 0)
    for name in ["file", "directory", "link", "pipe"] {
      let owner = try user.run("stat", shared + name).words.prefix(2)
      #expect(owner == ["\(Self.uid)", "\(Self.uid)"], "\(name)")
      for (uid, gid) in [(0, 0), (54321, Int(Self.uid)), (Int(Self.uid), 54321)] {
        #expect(try user.errno("chown", shared + name, "\(uid)", "\(gid)") == EPERM, "\(name)")
      }
      #expect(try user.errno("chown", shared + name, "\(Self.uid)", "\(Self.uid)") == 0, "\(name)")
    }
    let others = try Program.runAsNobody(["find", mounted.point, "!", "-uid", "\(Self.uid)"])
    #expect(others.status == 0 && others.output.isEmpty, "\(others.output)\(others.errors)")
  }

  @Test(arguments: [false, true])
  func dataGoesThroughTheDaemonOnlyWithoutRoot(asNobody: Bool) throws {
    let mounted = try MountedStore(asNobody: asNobody)
    try mounted.mount()
    let passthrough = try mounted.flag("passthrough")
    #expect(!(asNobody && passthrough))
    let user = try Client(uid: asNobody ? Self.uid : 0)
    let path = mounted.path("Users/Shared/file")
    // The first write asks for capabilities of the file, once.
    #expect(try user.errno("create", path, "\(0o644)") == 0 && user.errno("write", "0", "first") == 0)
    let start = try mounted.settledRequests()
    for _ in 0..<20 { #expect(try user.errno("write", "0", String(repeating: "x", count: 1000)) == 0) }
    let written = try mounted.settledRequests()
    #expect(passthrough ? written == start : written >= start + 20)
    #expect(try user.errno("close all") == 0)
    // Behind the daemon, so that the kernel has nothing of it.
    let text = String(repeating: "0123456789abcdef", count: 1 << 16)
    let backing = try mounted.temporary.write(text, to: "store/tree/Users/Shared/other")
    #expect(chown(backing, asNobody ? Self.uid : 0, asNobody ? Self.uid : 0) == 0)
    #expect(try user.errno("open", mounted.path("Users/Shared/other"), "\(O_RDONLY)") == 0)
    let opened = try mounted.settledRequests()
    for offset in stride(from: 0, to: 1 << 20, by: 1 << 18) {
      #expect(try user.run("read", "0", "\(offset)").words == [String(text.prefix(4096))])
    }
    let read = try mounted.settledRequests()
    #expect(passthrough ? read == opened : read >= opened + 4)
  }

  /// The kernel leaves access times to us.
  ///
  /// Our own descriptors spare them where they are asked to; what else the options can
  /// say is for the filesystem below, which a user can't mount with others.
  @Test(arguments: [nil, "noatime", "relatime", "strictatime", "nodiratime"])
  func accessTimesAreThoseOfTheFilesystemBelowOrSpared(option: String?) throws {
    let mounted = try MountedStore(asNobody: true)
    try mounted.mount(options: option)
    let options = try #require(try MountTable.current().top(at: mounted.point)?.options.split(separator: ","))
    #expect(options.contains("noatime") == (option == "noatime"))
    #expect(!options.contains("strictatime") && !options.contains("nodiratime"))
    let script = """
      umask 022; cd "$1" || exit; echo text > file; mkdir directory; touch directory/name
      touch -a -d 2001-01-01 file directory; cat file > /dev/null; \
      ls directory > /dev/null; stat -c %X file directory
      """
    func times(_ directory: String) throws -> [Int] {
      let result = try Program.runAsNobody(["sh", "-c", script, "sh", directory])
      #expect(result.status == 0, "\(result.errors)")
      return result.output.split(separator: "\n").compactMap { Int($0) }
    }
    // Beside the store, on the same filesystem.
    let plain = try times(mounted.temporary.makeDirectory("plain", mode: 0o777))
    let here = try times(mounted.path("Users/Shared"))
    let year2001 = 978_307_200
    let isSpared = [option == "noatime", option == "noatime" || option == "nodiratime"]
    let expected = zip(plain, isSpared).map { $0 == year2001 || $1 }
    #expect(plain.count == 2 && here.map { $0 == year2001 } == expected)
  }
}
