// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import Synchronization

/// The supplementary groups of a running thread, as /proc tells; they are read when they are first asked for,
/// and once.
///
/// A process can give groups up without privilege, in a user namespace into which setuid helpers have mapped
/// more groups than one. So it proves nothing that a thread of another user namespace lacks a group: it may
/// have come without it to pass by an entry that denies it. What is read here takes no lock that an execve of
/// the thread could hold.
package struct SupplementaryGroups: ~Copyable {
  private enum State {
    case notAsked
    case unknown
    case known([UInt32])
  }
  private let thread: Int32
  private let uid: UInt32
  private let gid: UInt32
  private var state = State.notAsked
  /// Whether a group that the thread lacks may be one that it has given up; nil until that matters.
  private var mayHaveLeftGroups: Bool?

  /// `uid` and `gid` are what the thread asks as.
  package init(ofThread thread: Int32, uid: UInt32, gid: UInt32) {
    self.thread = thread
    self.uid = uid
    self.gid = gid
  }

  /// Whether a group is among them; nil where that can't be told: the thread has ended, is in a process
  /// namespace that we don't see, asks as somebody else than it is, or may have given the group up.
  package mutating func contains(_ gid: UInt32) -> Bool? {
    if case .notAsked = state {
      state = readGroups(ofThread: thread, uid: uid, gid: self.gid).map { .known($0) } ?? .unknown
    }
    guard case .known(let groups) = state else { return nil }
    if groups.contains(gid) { return true }
    let mayHaveLeft = mayHaveLeftGroups ?? GroupMap.isForeign(thread)
    mayHaveLeftGroups = mayHaveLeft
    return mayHaveLeft ? nil : false
  }
}

/// Whether a group that a process or a thread lacks may be one that it has given up: it is in another user
/// namespace than we are.
package func mayHaveLeftGroups(_ process: Int32) -> Bool { GroupMap.isForeign(process) }

/// The groups that a user namespace maps to those of the namespace above it.
///
/// The map tells our own namespace from others: it takes privilege in the namespace above to map all groups
/// of ours. Unlike the namespace's number it can be read without the right to trace the process.
private enum GroupMap {
  /// Our own; nil where the kernel has no user namespaces.
  private static let own = try? readProcess("self", "gid_map")

  static func isForeign(_ thread: Int32) -> Bool {
    guard let own else { return false }
    return (try? readProcess("\(thread)", "gid_map")) != own
  }
}

/// Accounts of which a process has thousands of groups, in a user namespace where that takes no privilege.
///
/// To tell them the kernel writes all of them down, several times, which takes longer than all else that a
/// request does: whoever asked so again and again would have all who serve at it. So for a while nothing is
/// known of the groups of that account's processes in such namespaces, and nothing is read.
private enum GroupHoarders {
  /// A few thousand groups; without any it is less than two thousand bytes.
  static let longText = 32_768
  private static let seconds: UInt32 = 60
  private static let most = 1024

  private static let until = Mutex<[UInt32: UInt32]>([:])
  private static let count = Atomic<Int>(0)

  /// Usually there is none, and nobody waits for a lock.
  static var hasAny: Bool { count.load(ordering: .relaxed) > 0 }

  static func has(_ user: UInt32) -> Bool {
    let now = coarseSeconds()
    return until.withLock { until in
      until[SubordinateUsers.ofThisMachine.account(of: user)].map { Int32(bitPattern: $0 &- now) > 0 }
        ?? false
    }
  }

  static func note(_ user: UInt32) {
    let now = coarseSeconds()
    until.withLock { until in
      if until.count >= most { until = until.filter { Int32(bitPattern: $0.value &- now) > 0 } }
      if until.count >= most { until = [:] }
      until[SubordinateUsers.ofThisMachine.account(of: user)] = now &+ seconds
      count.store(until.count, ordering: .relaxed)
    }
  }
}

/// The groups of a thread; nil unless it has `uid` and `gid` as one of its real, effective, saved and
/// filesystem ids.
///
/// The kernel can let a thread act by another one's credentials, of which /proc says nothing (`io_uring`,
/// kernel threads).
private func readGroups(ofThread thread: Int32, uid: UInt32, gid: UInt32) -> [UInt32]? {
  guard thread > 0, !(GroupHoarders.hasAny && GroupHoarders.has(uid) && GroupMap.isForeign(thread)),
    let text = try? readProcess("\(thread)", "status")
  else { return nil }
  if text.count > GroupHoarders.longText, GroupMap.isForeign(thread) { GroupHoarders.note(uid) }
  return text.withUnsafeBytes { bytes in
    guard numbers(after: "\nUid:", in: bytes)?.contains(uid) == true,
      numbers(after: "\nGid:", in: bytes)?.contains(gid) == true
    else { return nil }
    return numbers(after: "\nGroups:", in: bytes)
  }
}

/// The numbers on the line that begins with `mark`; nil if its end is missing, since numbers may be missing
/// too.
private func numbers(after mark: StaticString, in bytes: UnsafeRawBufferPointer) -> [UInt32]? {
  guard let line = range(of: mark, in: bytes) else { return nil }
  var numbers: [UInt32] = []
  var value: UInt64 = 0
  var inNumber = false
  for byte in bytes[line...] {
    if byte >= 0x30, byte <= 0x39 {
      value = (value &* 10 &+ UInt64(byte - 0x30)) & 0xffff_ffff
      inNumber = true
    } else {
      if inNumber { numbers.append(UInt32(truncatingIfNeeded: value)) }
      value = 0
      inNumber = false
      if byte == 0x0a { return numbers }
    }
  }
  return nil
}

/// What is in a file of `/proc/PROCESS`.
private func readProcess(_ process: String, _ name: String) throws(Errno) -> [UInt8] {
  let fd = OwnedFD(owning: try check(clx_open("/proc/\(process)/\(name)", O_RDONLY | O_CLOEXEC, 0)))
  var text: [UInt8] = []
  // A process may be in 65,536 groups; each is at most ten digits and a space.
  let limit = 1 << 20
  var chunk = [UInt8](repeating: 0, count: 4096)
  while text.count < limit {
    let count = try retrying { read(fd.fd.raw, &chunk, chunk.count) }
    if count == 0 { break }
    text.append(contentsOf: chunk[..<count])
  }
  return text
}

/// Where what follows `mark` begins.
private func range(of mark: StaticString, in bytes: UnsafeRawBufferPointer) -> Int? {
  guard let base = bytes.baseAddress,
    let found = clx_memmem(base, bytes.count, mark.utf8Start, mark.utf8CodeUnitCount)
  else { return nil }
  return base.distance(to: found) + mark.utf8CodeUnitCount
}
