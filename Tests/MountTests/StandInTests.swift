// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// The owner of a directory sees and removes a fifo or a socket that somebody else has left in it, and can't
/// use it.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct StandInTests {
  private static let owner: UInt32 = 54321
  private static let stranger: UInt32 = 54322
  private static let other: UInt32 = 54323
  private static let modes: [String?] = [nil, "nopassthrough", "nohandles,nopassthrough"]

  /// A directory of the owner's in which strangers make things.
  private struct Place {
    let mounted: MountedStore
    let owner: Client
    let stranger: Client
    let other: Client
    let directory: String

    init(_ options: String?) throws {
      mounted = try MountedStore.mounted(options: options)
      owner = try Client(uid: StandInTests.owner)
      stranger = try Client(uid: StandInTests.stranger)
      other = try Client(uid: StandInTests.other)
      directory = mounted.path("Users/Shared/dir")
      #expect(try owner.errno("mkdir", directory, "\(0o777)") == 0)
      #expect(try owner.errno("chmod", directory, "\(0o777)") == 0)
    }

    /// Something of the stranger's that nobody else may use.
    func make(_ kind: String, _ name: String) throws -> String {
      let path = "\(directory)/\(name)"
      #expect(try stranger.errno(kind == "fifo" ? "mkfifo" : "bind", path, "\(0o600)") == 0)
      #expect(try stranger.errno("chmod", path, "\(0o600)") == 0)
      return path
    }

    func use(_ path: String, _ kind: String, by client: Client) throws -> Int32 {
      if kind == "socket" { return try client.errno("connect", path) }
      let result = try client.errno("open", path, "\(O_RDWR | O_NONBLOCK)")
      _ = try client.errno("close all")
      return result
    }

    func type(_ path: String, by uid: UInt32) throws -> ProgramResult {
      try Program.run(["setpriv", "--reuid=\(uid)", "--clear-groups", "stat", "-c", "%F %a %U %h", path])
    }
  }

  private static let standIn = "socket 0 root 1\n"
  private func refusal(_ kind: String) -> Int32 { kind == "fifo" ? ENXIO : ECONNREFUSED }

  /// Whoever of the two comes first: users share what the kernel knows of a name.
  @Test(arguments: modes, ["fifo", "socket"])
  func eachFindsTheirOwnWhoeverComesFirst(mode: String?, kind: String) throws {
    let place = try Place(mode)
    for ownerIsFirst in [false, true] {
      let path = try place.make(kind, "\(ownerIsFirst)")
      for round in 0..<4 {
        if ownerIsFirst || round > 0 {
          #expect(try place.use(path, kind, by: place.owner) == refusal(kind))
          #expect(try place.type(path, by: Self.owner).output == Self.standIn)
        }
        #expect(try place.use(path, kind, by: place.stranger) == 0)
        #expect(try place.type(path, by: Self.stranger).output.hasPrefix("\(kind) 600 "))
        #expect(try place.stranger.errno("stat", path) == 0)
        #expect(try place.use(path, kind, by: place.owner) == refusal(kind))
        #expect(try place.other.errno("stat", path) == EACCES)
        #expect(try place.use(path, kind, by: place.other) == EACCES)
      }
      // Opened to all it is what it is, and closed again it is not.
      #expect(try place.stranger.errno("chmod", path, "\(0o666)") == 0)
      for client in [place.owner, place.other] { #expect(try place.use(path, kind, by: client) == 0) }
      #expect(try place.type(path, by: Self.owner).output.hasPrefix("\(kind) 666 "))
      #expect(try place.stranger.errno("chmod", path, "\(0o600)") == 0)
      #expect(try place.use(path, kind, by: place.owner) == refusal(kind))
      #expect(try place.use(path, kind, by: place.other) == EACCES)
    }
  }

  @Test(arguments: modes, ["fifo", "socket"])
  func theOwnerOfTheDirectoryListsAndRemoves(mode: String?, kind: String) throws {
    let place = try Place(mode)
    let paths = try (0..<4).map { try place.make(kind, "\($0)") }
    func asOwner(_ words: String...) throws -> ProgramResult {
      try Program.run(["setpriv", "--reuid=\(Self.owner)", "--clear-groups"] + words)
    }
    // The stranger has used some of them, and the kernel knows those.
    for path in paths.prefix(2) { #expect(try place.use(path, kind, by: place.stranger) == 0) }
    let listed = try asOwner("ls", "-l", place.directory)
    #expect(listed.status == 0 && listed.output.split(separator: "\n").count == 5, "\(listed)")
    let typed = try asOwner("find", place.directory, "-mindepth", "1", "-printf", "%f\n")
    #expect(typed.status == 0 && typed.output.split(separator: "\n").count == 4, "\(typed)")
    // What is done to the name is done to what has it; what is done to the stand-in is refused.
    let moved = place.directory + "/moved"
    #expect(try place.owner.errno("rename", paths[0], moved) == 0)
    #expect(try place.use(moved, kind, by: place.stranger) == 0)
    #expect(try place.owner.errno("link", moved, place.directory + "/linked") == EPERM)
    #expect(try place.owner.errno("chmod", moved, "\(0o777)") == EPERM)
    #expect(try place.owner.errno("chown", moved, "\(Self.owner)", "\(Self.owner)") == EPERM)
    #expect(try place.owner.errno("touch", moved) == EACCES)
    #expect(try place.owner.errno("setxattr", moved, "user.a", "b") == EPERM)
    #expect(try place.owner.errno("setxattr", moved, "system.insula.acl", "b") == EPERM)
    #expect(try place.use(moved, kind, by: place.owner) == refusal(kind))
    #expect(try place.use(moved, kind, by: place.stranger) == 0)
    #expect(try place.owner.errno("unlink", moved) == 0)
    #expect(try place.stranger.errno("stat", moved) == ENOENT)
    // In a sticky directory its owner removes everything, too.
    #expect(try place.owner.errno("chmod", place.directory, "\(0o1777)") == 0)
    #expect(try place.owner.errno("unlink", paths[1]) == 0)
    #expect(try place.other.errno("unlink", paths[2]) == EACCES)
    // Whoever does not own the directory any more is told nothing.
    #expect(chown(place.directory, Self.other, Self.other) == 0)
    #expect(try place.owner.errno("stat", paths[2]) == EACCES)
    #expect(try place.other.errno("stat", paths[2]) == 0)
    #expect(chown(place.directory, Self.owner, Self.owner) == 0)
    let removed = try Program.run([
      "setpriv", "--reuid=\(Self.owner)", "--clear-groups", "rm", "-r", "--", paths[2], paths[3],
    ])
    #expect(removed.status == 0, "\(removed)")
    #expect(try place.owner.run("list", place.directory).words == ["2"])
  }

  /// While its owner uses it, the directory's owner never gets into it.
  @Test(arguments: modes) func nobodyIsLetInBySomebodyElsesLook(mode: String?) throws {
    let place = try Place(mode)
    let path = try place.make("fifo", "fifo")
    let script = """
      import os, sys
      path, people = sys.argv[1], [int(word) for word in sys.argv[2:]]
      children = []
      for uid in people:
          read, write = os.pipe()
          child = os.fork()
          if child == 0:
              os.setgroups([]); os.setgid(uid); os.setuid(uid)
              counts = {}
              for number in range(4000):
                  try: os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK)); result = 0
                  except OSError as error: result = error.errno
                  counts[result] = counts.get(result, 0) + 1
              os.write(write, repr(sorted(counts.items())).encode()); os._exit(0)
          os.close(write)
          children.append((child, read))
      for child, read in children:
          print(os.read(read, 4096).decode()); os.waitpid(child, 0)
      """
    let result = try Program.run([
      "/usr/bin/python3", "-c", script, path, "\(Self.owner)", "\(Self.stranger)", "\(Self.other)",
    ])
    #expect(
      result.output == "[(\(ENXIO), 4000)]\n[(0, 4000)]\n[(\(EACCES), 4000)]\n", "\(result)")
  }

  /// Without root there is one user, who finds and removes what is theirs, whatever its mode.
  @Test func withoutRootEverythingIsTheUsers() throws {
    let mounted = try MountedStore(asNobody: true)
    try mounted.mount()
    let user = try Client(uid: 65534)
    let path = mounted.path("Users/Shared/fifo")
    #expect(try user.errno("mkfifo", path, "\(0o600)") == 0)
    #expect(try user.errno("chmod", path, "0") == 0)
    #expect(try user.errno("stat", path) == 0)
    #expect(try user.errno("unlink", path) == 0)
  }
}
