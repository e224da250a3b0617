// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
internal import Synchronization

/// A process that keeps a mount busy.
package struct MountUser: Equatable, CustomStringConvertible {
  let pid: Int32
  let name: String
  let reasons: [String]
  /// The paths of what it uses, as the process has them.
  let paths: [String]
  /// Whether it sees the mounts that we see.
  let isInOurNamespace: Bool

  package var description: String { "pid \(pid) (\(name)): \(reasons.joined(separator: ", "))" }
}

/// Who uses something, as far as this user may look.
package struct MountUsers {
  package let users: [MountUser]
  /// Processes that may use it too, in words.
  ///
  /// Nobody waits for one that does not let itself be looked at (`ProcessLook`), and it stops nothing by that
  /// alone: any user can have such processes.
  package let hidden: [String]

  /// Who uses the filesystem of a device number.
  package static func all(of device: DeviceNumber) -> MountUsers {
    all(of: [device])
  }

  /// Who uses one of several filesystems: one look at each process, however many there are.
  package static func all(of devices: Set<DeviceNumber>) -> MountUsers {
    all(link: { lies($0, on: devices) }, map: { other, _ in devices.contains(other) }, mounted: devices)
  }

  /// Who uses a directory or something in it, by the paths that the kernel has; `path` is an absolute one
  /// without links.
  ///
  /// What an app or a session has in a view of its own has the same path there.
  package static func all(in path: String) -> MountUsers {
    let beginning = path + "/"
    @Sendable func isInside(_ other: String) -> Bool {
      other.utf8.elementsEqual(path.utf8) || other.utf8.starts(with: beginning.utf8)
    }
    return all(link: { isInside(target($0)) }, map: { _, path in isInside(path) }, mounted: nil)
  }

  /// Looks at each process for links in /proc and maps that are meant.
  private static func all(
    link: @escaping @Sendable (_ link: String) -> Bool,
    map: @escaping @Sendable (DeviceNumber, _ path: String) -> Bool, mounted devices: Set<DeviceNumber>?
  ) -> MountUsers {
    let processes = names(in: "/proc").compactMap { Int32($0) }.filter { $0 != ProcessID.own }
    let ours = target("/proc/self/ns/mnt")
    let look = ProcessLook()
    let namespaces = SeenNamespaces()
    // What needs no lock of theirs is seen of all.
    let links = look.answers(about: processes) { pid -> (uses: [Use], mounts: [String], isOurs: Bool) in
      // That of others' processes can't be read; what one of them uses here is seen all the same.
      let theirs = target("/proc/\(pid)/ns/mnt")
      let isOurs = devices == nil || theirs == ours || theirs == unknown
      let mounts =
        isOurs ? nil : devices.flatMap { devices in namespaces.mounts(theirs) { mount(pid, devices) } }
      return (uses(pid, link), mounts.map { [$0] } ?? [], isOurs)
    }
    let maps = look.answers(about: processes) { pid in paths(mappedBy: "/proc/\(pid)", map) }
    var (users, hidden): ([MountUser], [String]) = ([], [])
    for pid in processes.inOrder(by: <) {
      let uses = (links[pid]?.uses ?? []) + (maps[pid] ?? []).map { Use(words: "maps ", path: $0) }
      let found = uses.map { $0.words + $0.path + $0.end } + (links[pid]?.mounts ?? [])
      if !found.isEmpty {
        users.append(
          MountUser(
            pid: pid, name: command(pid), reasons: found, paths: uses.map(\.path),
            isInOurNamespace: links[pid]?.isOurs ?? true))
      } else if links[pid] == nil || maps[pid] == nil, ProcessID.hasThread(pid) {
        hidden.append(words(ofHidden: pid))
      }
    }
    return MountUsers(users: users, hidden: hidden)
  }

  /// What is said of a process that could not be looked at.
  package static func words(ofHidden pid: Int32) -> String {
    "pid \(pid) (\(command(pid))) does not let itself be looked at"
  }

  /// What a process sees of it in a mount namespace of its own.
  private static func mount(_ pid: Int32, _ devices: Set<DeviceNumber>) -> String? {
    let lines = MountLines(Array(text(of: "/proc/\(pid)/mountinfo").utf8))
    return devices.lazy.compactMap(lines.first).first.map {
      "has it mounted at \($0) in another mount namespace"
    }
  }

  /// What is mounted in each namespace that was looked at: a user can have a great many processes in one with
  /// a great many mounts.
  private final class SeenNamespaces: Sendable {
    private let seen = Mutex<[String: String?]>([:])

    func mounts(_ namespace: String, _ look: () -> String?) -> String? {
      if let known = seen.withLock({ $0[namespace] }) { return known }
      let found = look()
      seen.withLock { $0[namespace] = .some(found) }
      return found
    }
  }

  /// How a process uses something, in words around its path.
  private struct Use: Sendable {
    let words: String
    let path: String
    var end = ""
  }

  /// Those of its links in /proc that `isMeant`.
  private static func uses(_ pid: Int32, _ isMeant: (_ link: String) -> Bool) -> [Use] {
    let process = "/proc/\(pid)"
    var found: [Use] = []
    for (link, meaning) in [
      ("cwd", "working directory"), ("root", "root directory"), ("exe", "runs a program"),
    ]
    where isMeant("\(process)/\(link)") {
      found.append(Use(words: meaning + " ", path: target("\(process)/\(link)")))
    }
    for descriptor in names(in: "\(process)/fd") where isMeant("\(process)/fd/\(descriptor)") {
      found.append(Use(words: "has ", path: target("\(process)/fd/\(descriptor)"), end: " open"))
    }
    return found
  }

  /// Looks at what the kernel remembers, so that a daemon that hangs doesn't make us hang too.
  private static func lies(_ path: String, on devices: Set<DeviceNumber>) -> Bool {
    let dontSync: Int32 = 0x4000
    var status = clx_statx()
    guard clx_statx(AT_FDCWD, path, dontSync, 0, &status) == 0 else { return false }
    return devices.contains(DeviceNumber(major: status.stx_dev_major, minor: status.stx_dev_minor))
  }

  private static func paths(
    mappedBy process: String, _ isMeant: (DeviceNumber, String) -> Bool
  ) -> [String] {
    var paths: [String] = []
    for line in text(of: "\(process)/maps").parts(between: "\n") {
      let fields = line.parts(between: " ", max: 5)
      guard fields.count == 6 else { continue }
      let numbers = fields[3].parts(between: ":").compactMap { UInt32($0, radix: 16) }
      guard numbers.count == 2 else { continue }
      let path = String(fields[5].drop { $0 == " " })
      guard isMeant(DeviceNumber(major: numbers[0], minor: numbers[1]), path) else { continue }
      if !paths.contains(path) { paths.append(path) }
    }
    return paths
  }

  /// The processes of a program that have something open by a path, or were started with it, as far as this
  /// user may look; and those that call themselves so and can't be looked at.
  package static func processes(of program: String, using path: String) -> (found: [Int32], hidden: [Int32]) {
    let processes = names(in: "/proc").compactMap { Int32($0) }.filter { command($0) == program }.inOrder(
      by: <)
    let answers = ProcessLook().answers(about: processes) { pid in
      if names(in: "/proc/\(pid)/fd").contains(where: { target("/proc/\(pid)/fd/\($0)") == path }) {
        return true
      }
      let words = text(of: "/proc/\(pid)/cmdline").utf8.split(separator: 0)
      return words.contains { $0.elementsEqual(path.utf8) }
    }
    return (
      processes.filter { answers[$0] == true },
      processes.filter { answers[$0] == nil && ProcessID.hasThread($0) }
    )
  }

  private static func command(_ pid: Int32) -> String {
    let name = text(of: "/proc/\(pid)/comm").parts(between: "\n").first
    return name.map(String.init) ?? "?"
  }

  private static func names(in path: String) -> [String] {
    let entries = try? path.withName { (name) throws(Errno) in
      let directory = try FD.cwd.openFollowing(name, O_RDONLY | O_DIRECTORY)
      return try directory.fd.entries()
    }
    return (entries ?? []).map { String(decoding: $0.name, as: UTF8.self) }
  }

  private static func text(of path: String) -> String { FD.text(of: path, limit: 1 << 24) ?? "" }

  private static let unknown = "something"

  private static func target(_ path: String) -> String {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink(path, &buffer, buffer.count)
    guard count > 0 else { return unknown }
    return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
