// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// Where rclone keeps what programs have written until the server has it.
///
/// It uploads a file a moment after that was closed, and tries again while it runs. What it has not uploaded
/// when it ends, it uploads when it is started with the same cache again.
struct UploadCache: Equatable {
  let path: String

  /// The cache of one directory of a server: two programs in one cache would destroy it.
  init(of remote: String, for user: EngineUser) {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in remote.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    let place = user.value(of: "XDG_CACHE_HOME") ?? (user.value(of: "HOME") ?? "") + "/.cache"
    path = "\(place)/insula/uploads-\(String(hash, radix: 16))"
  }

  /// Makes it, and keeps others from it while what this gives is open: EBUSY if another program goes on to
  /// upload from it.
  func open(milliseconds: Int, _ isGivenUp: () -> Bool) throws(Errno) -> OwnedFD {
    var made = ""
    for name in path.parts(between: "/") {
      made += "/\(name)"
      _ = mkdir(made, S_IRWXU)
    }
    let opened = try FD.cwd.openFollowing(path, O_RDONLY | O_DIRECTORY)
    for _ in 0..<(milliseconds / 100) {
      if flock(opened.fd.raw, LOCK_EX | LOCK_NB) == 0 { return opened }
      guard errno == EWOULDBLOCK, !isGivenUp() else { break }
      poll(nil, 0, 100)
    }
    throw .EBUSY
  }

  /// How many files have changes that the server does not have yet.
  ///
  /// rclone keeps a file of JSON about each, which says so from the first change on. EOVERFLOW if there are
  /// more than rclone would have.
  func pending() throws(Errno) -> Int {
    var directories = [path + "/vfsMeta"]
    var (count, left) = (0, Self.mostEntries)
    while let directory = directories.popLast() {
      let entries: [(name: [UInt8], type: UInt8)]
      do throws(Errno) { entries = try Self.entries(of: directory, atMost: left) } catch .ENOENT { continue }
      left -= entries.count
      for (name, type) in entries {
        let path = "\(directory)/\(String(decoding: name, as: UTF8.self))"
        if type == UInt8(S_IFDIR >> 12) {
          directories.append(path)
        } else if type == UInt8(S_IFREG >> 12), (try? Self.isDirty(path)) == true {
          count += 1
        }
      }
    }
    return count
  }

  private static let mostEntries = 200_000

  private static func entries(
    of path: String, atMost limit: Int
  ) throws(Errno) -> [(name: [UInt8], type: UInt8)] {
    let directory = try FD.cwd.openFollowing(path, O_RDONLY | O_DIRECTORY)
    return try directory.fd.entries(atMost: limit)
  }

  private static func isDirty(_ path: String) throws(Errno) -> Bool {
    let file = try FD.cwd.openFollowing(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW)
    let text = String(decoding: try file.fd.readToEnd(limit: 1 << 20), as: UTF8.self)
    return text.includes("\"Dirty\": true")
  }
}
