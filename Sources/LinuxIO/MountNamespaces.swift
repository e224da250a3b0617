// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// A mount namespace of which a process can be seen.
struct MountNamespace: Sendable {
  /// Who may mount something in it.
  enum Owner: Hashable, Sendable {
    /// Whoever is root here.
    case machine
    /// A user who has made a user namespace for it.
    case user(UInt32)
  }

  let owner: Owner
  /// Some that are in it; the first ones see it as a whole.
  let processes: [Int32]

  private static let maxProcesses = 8

  /// All but this process's own.
  static func others() -> [MountNamespace] {
    var known: [[UInt8]: [Int32]] = [:]
    let own = try? FD.cwd.linkTarget(of: "/proc/self/ns/mnt")
    for process in ProcessTable().numbers {
      guard let link = try? FD.cwd.linkTarget(of: "/proc/\(process)/ns/mnt"), link != own else { continue }
      known[link, default: []].append(process)
    }
    let all = known.values.filter { !$0.isEmpty }.compactMap { processes -> MountNamespace? in
      // A process with another root directory sees what is mounted below that, and nothing else.
      var some: [Int32] = []
      for process in processes where some.count < maxProcesses / 2 && seesAll(process) {
        some.append(process)
      }
      some += processes.prefix(maxProcesses / 2)
      guard let owner = some.firstResult({ Self.owner(ofProcess: $0) }) else { return nil }
      return MountNamespace(owner: owner, processes: some)
    }
    return all.inOrder { $0.processes.lexicographicallyPrecedes($1.processes) }
  }

  private static func seesAll(_ process: Int32) -> Bool {
    (try? FD.cwd.linkTarget(of: "/proc/\(process)/root")) == [UInt8(ascii: "/")]
  }

  /// Whose the mount namespace of a process is; nil if it has ended.
  ///
  /// The outermost user namespace inside ours says it: its owner is who has made it, while in it anybody may
  /// be root. One that is not inside ours is no ordinary user's of this machine.
  ///
  /// Corresponds to `ioctl_ns(2)`.
  static func owner(ofProcess process: Int32) -> Owner? {
    guard let namespace = try? FD.cwd.openFollowing("/proc/\(process)/ns/mnt", O_RDONLY),
      let ours = try? FD.cwd.openFollowing("/proc/self/ns/user", O_RDONLY),
      let own = try? ours.fd.status()
    else { return nil }
    guard var users = related(namespace.fd, getUserNamespace) else { return .machine }
    var owner: UInt32?
    // The kernel allows no more of them in each other.
    for _ in 0..<64 {
      guard let status = try? users.fd.status() else { return nil }
      if status.st_ino == own.st_ino {
        guard let owner, owner != 0, owner != ProcessID.user else { return .machine }
        return .user(owner)
      }
      var uid: UInt32 = 0
      guard clx_ioctl(users.fd.raw, getOwner, &uid) == 0 else { return .machine }
      owner = uid
      guard let above = related(users.fd, getParent) else { return .machine }
      users = above
    }
    return .machine
  }

  private static let getUserNamespace: UInt = 0xb701
  private static let getParent: UInt = 0xb702
  private static let getOwner: UInt = 0xb704

  /// Another namespace that belongs to one; EPERM, and so nil, if it is not inside ours.
  private static func related(_ namespace: FD, _ request: UInt) -> OwnedFD? {
    let raw = clx_ioctl(namespace.raw, request, nil)
    return raw < 0 ? nil : OwnedFD(owning: raw)
  }
}
