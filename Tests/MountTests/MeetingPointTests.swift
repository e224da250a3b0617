// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

/// A fifo or a socket that was open to all is not, once it has been closed.
///
/// umask 0, bind, chmod is how daemons make their sockets.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct MeetingPointTests {
  private static let owner: UInt32 = 54321
  private static let stranger: UInt32 = 54322

  private enum Closing: String, CaseIterable {
    case chmod, chown, list, link, rename, exchange
  }

  /// Opens or connects, in whatever way leads to it.
  private func reach(_ path: String, _ kind: String, by client: Client) throws -> Int32 {
    if kind == "socket" { return try client.errno("connect", path) }
    let result = try client.errno("open", path, "\(O_RDWR | O_NONBLOCK)")
    _ = try client.errno("close all")
    return result
  }

  @Test(arguments: ["fifo", "socket"], Closing.allCases)
  private func whatWasOpenToAllIsClosed(kind: String, how: Closing) throws {
    let mounted = try MountedStore.mounted()
    let base = mounted.path("Users/Shared/")
    let owner = try Client(uid: Self.owner)
    let stranger = try Client(uid: Self.stranger)
    var path = base + "meet"
    if kind == "socket" {
      #expect(try owner.errno("bind", path) == 0)
      #expect(try owner.errno("chmod", path, "\(0o777)") == 0)
    } else {
      #expect(try owner.errno("mkfifo", path, "\(0o666)") == 0)
      #expect(try owner.errno("chmod", path, "\(0o666)") == 0)
    }
    #expect(try reach(path, kind, by: stranger) == 0)
    let others = base + "other"
    switch how {
    case .chmod:
      break
    case .chown:
      // It stays open to its new owner.
      #expect(chown(path, 54323, 54323) == 0)
      #expect(chmod(path, 0o600) == 0)
    case .list:
      let list = AccessControlList([AccessControlEntry(.deny, .user(Self.stranger), [.read, .write])]).filesec
      #expect(lsetxattr(path, "system.insula.acl", list, list.count, 0) == 0)
    case .link:
      // By each of its names.
      #expect(try owner.errno("link", path, others) == 0)
      #expect(try reach(others, kind, by: stranger) == 0)
    case .rename:
      #expect(try owner.errno("rename", path, others) == 0)
      path = others
      #expect(try reach(path, kind, by: stranger) == 0)
    case .exchange:
      #expect(try owner.errno("create", others, "\(0o644)") == 0)
      #expect(try stranger.errno("stat", others) == 0)
      #expect(try owner.errno("exchange", path, others) == 0)
      path = others
    }
    if how != .chown, how != .list { #expect(try owner.errno("chmod", path, "\(0o600)") == 0) }
    #expect(try reach(path, kind, by: stranger) == EACCES)
    #expect(try stranger.errno("stat", path) == EACCES)
    if how == .link { #expect(try reach(base + "meet", kind, by: stranger) == EACCES) }
    // Opened again, it lets everyone in again.
    switch how {
    case .list: #expect(lremovexattr(path, "system.insula.acl") == 0)
    default: #expect(chmod(path, 0o777) == 0)
    }
    #expect(try reach(path, kind, by: stranger) == 0)
  }

  @Test(arguments: ["fifo", "socket"])
  func whatIsClosedThroughOneViewIsClosedInAll(kind: String) throws {
    let mounts = try TwoMounts()
    let paths = (0..<2).map { mounts.temporary.appending("\($0)/Users/Shared/meet") }
    let owner = try Client(uid: Self.owner)
    let stranger = try Client(uid: Self.stranger)
    #expect(try owner.errno(kind == "fifo" ? "mkfifo" : "bind", paths[0], "\(0o666)") == 0)
    #expect(try owner.errno("chmod", paths[0], "\(0o777)") == 0)
    for path in paths { #expect(try stranger.errno("stat", path) == 0) }
    #expect(try owner.errno("chmod", paths[1], "\(0o600)") == 0)
    for path in paths { #expect(try stranger.errno("stat", path) == EACCES) }
  }
}
