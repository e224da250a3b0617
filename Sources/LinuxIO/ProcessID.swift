// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// The numbers by which the kernel knows this process.
package enum ProcessID {
  /// Corresponds to `getpid(2)`.
  package static var own: Int32 { getpid() }

  /// Corresponds to `geteuid(2)`.
  package static var user: UInt32 { geteuid() }

  /// Corresponds to `getegid(2)`.
  package static var group: UInt32 { getegid() }

  /// The supplementary groups.
  ///
  /// Corresponds to `getgroups(2)`.
  package static var groups: [UInt32] {
    let count = getgroups(0, nil)
    guard count > 0 else { return [] }
    return [UInt32](unsafeUninitializedCapacity: Int(count)) { groups, filled in
      filled = max(0, Int(getgroups(count, groups.baseAddress)))
    }
  }

  /// Whether it is somebody outside of this user namespace, as root of the machine is in a container.
  package static func isUnmapped(_ uid: UInt32) -> Bool {
    uid == 65_534
      && FD.text(of: "/proc/self/uid_map", limit: 1 << 16).map { !isMapped(uid, by: $0) } ?? false
  }

  /// Whether a user has a number outside, by the lines of a map: the first number, the one outside, how many.
  package static func isMapped(_ uid: UInt32, by map: String) -> Bool {
    map.parts(between: "\n").contains { line in
      let numbers = line.parts(between: " ").compactMap { UInt64($0) }
      return numbers.count == 3 && numbers[0] <= uid && UInt64(uid) - numbers[0] < numbers[2]
    }
  }

  /// Whether there is a process, or a thread of any, of this number.
  package static func hasThread(_ thread: Int32) -> Bool { access("/proc/\(thread)", F_OK) == 0 }

  /// Whether a thread is one of the machine's first process.
  package static func isOfFirst(_ thread: Int32) -> Bool { access("/proc/1/task/\(thread)", F_OK) == 0 }

  /// The names in a directory that are numbers, as those of processes and threads below /proc; none where it
  /// can't be read.
  package static func numbers(in path: String) -> [Int32] {
    guard let directory = try? FD.cwd.openFollowing(path, O_RDONLY | O_DIRECTORY),
      let entries = try? directory.fd.entries()
    else { return [] }
    return entries.compactMap { Int32(String(decoding: $0.name, as: UTF8.self)) }
  }

  /// What the kernel says of a process under a name, as in "Uid"; nil if it has gone.
  ///
  /// `process` is a number, "self" or "thread-self". Corresponds to `/proc/PID/status`.
  package static func field(_ name: String, of process: String) -> Substring? {
    let lines = FD.text(of: "/proc/\(process)/status", limit: 1 << 16)?.parts(between: "\n") ?? []
    return lines.first { $0.hasPrefix(name + ":\t") }?.dropFirst(name.utf8.count + 2)
  }

  /// The process of a thread, and what the thread calls itself; nil if it has ended.
  package static func process(ofThread thread: Int32) -> (id: Int32, name: String)? {
    guard thread > 0,
      let lines = FD.text(of: "/proc/\(thread)/status", limit: 1024)?.parts(between: "\n")
    else { return nil }
    func value(_ key: String) -> Substring? {
      lines.first { $0.hasPrefix(key) }?.dropFirst(key.utf8.count)
    }
    guard let name = value("Name:\t"), let id = value("Tgid:\t").flatMap({ Int32($0) }) else { return nil }
    return (id, String(name))
  }

  /// Whether a thread has ended, or will by a signal as soon as it does not wait for the kernel any more.
  package static func isBeingKilled(_ thread: Int32) -> Bool {
    guard thread > 0 else { return false }
    guard let text = FD.text(of: "/proc/\(thread)/status", limit: 1 << 14) else { return !hasThread(thread) }
    // A fatal signal becomes SIGKILL for each thread of its process.
    let kill: UInt64 = 1 << 8
    return text.parts(between: "\n").contains { line in
      guard line.hasPrefix("SigPnd:\t") || line.hasPrefix("ShdPnd:\t") else { return false }
      return (UInt64(line.dropFirst(8), radix: 16) ?? 0) & kill != 0
    }
  }

  /// Whether no process has this number any more; false if that can't be known.
  ///
  /// Takes no descriptor, so it holds for a caller that has none left. Corresponds to `kill(2)`, or, where
  /// that is filtered, to a look at `/proc`.
  package static func isGone(_ pid: Int32) -> Bool {
    guard pid > 0, kill(pid, 0) != 0 else { return false }
    if errno != EPERM { return errno == ESRCH }
    return access("/proc/\(pid)", F_OK) != 0 && errno == ENOENT && access("/proc/self", F_OK) == 0
  }

  /// Names a running process so that its end can be waited for.
  ///
  /// Corresponds to `pidfd_open(2)`.
  package static func open(_ pid: Int32) throws(Errno) -> OwnedFD {
    OwnedFD(owning: try check(clx_pidfd_open(pid, 0)))
  }

  /// Whether a user may send a process signals: it runs for them, or was started by them and can become them
  /// again.
  ///
  /// Nobody's if there is no such process; who asks sees to it that it is still the one that is meant.
  /// Corresponds to `kill(2)`.
  package static func maySignal(_ user: UInt32, _ pid: Int32) -> Bool {
    let ids = userIDs(of: pid)
    return ids.count == 4 && (ids[0] == user || ids[2] == user)
  }

  /// The user who has started a process, by its real id; nil if there is no such process.
  ///
  /// Whom it acts for makes no difference.
  package static func user(of pid: Int32) -> UInt32? { userIDs(of: pid).first ?? nil }

  /// The real, effective and saved ids, and that for files.
  private static func userIDs(of pid: Int32) -> [UInt32?] {
    (field("Uid", of: "\(pid)") ?? "").split(whereSeparator: \.isWhitespace).map { UInt32($0) }
  }

  /// Names the process at the other end of a socket, the very one that has connected.
  ///
  /// Corresponds to `SO_PEERPIDFD`.
  package static func openPeer(of socket: FD) throws(Errno) -> OwnedFD {
    var raw: Int32 = -1
    try check(clx_peer_process(socket.raw, &raw))
    return OwnedFD(owning: raw)
  }
}

extension FD {
  /// Sends a signal to the process that this names; ESRCH when it has ended.
  ///
  /// Corresponds to `pidfd_send_signal(2)`.
  package func send(signal: Int32) throws(Errno) {
    try check(clx_pidfd_send_signal(raw, signal))
  }
}

extension FD {
  /// Waits until there is something to read, or the other end is gone; false when the time is over.
  ///
  /// A process descriptor becomes readable when the process has ended and its descriptors are closed.
  package func waitUntilReadable(milliseconds: Int32) throws(Errno) -> Bool {
    var set = pollfd(fd: raw, events: Int16(POLLIN), revents: 0)
    return try retrying { poll(&set, 1, milliseconds) } > 0
  }

  /// Waits until it has failed, or nobody is at its other end; false when the time is over.
  package func waitUntilHungUp(milliseconds: Int32) throws(Errno) -> Bool {
    var set = pollfd(fd: raw, events: 0, revents: 0)
    return try retrying { poll(&set, 1, milliseconds) } > 0
  }

  /// Waits until there is room to write, or the other end is gone; false when the time is over.
  package func waitUntilWritable(milliseconds: Int32) throws(Errno) -> Bool {
    var set = pollfd(fd: raw, events: Int16(POLLOUT), revents: 0)
    return try retrying { poll(&set, 1, milliseconds) } > 0
  }
}
