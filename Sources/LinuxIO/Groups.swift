// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// The supplementary groups of a running thread, as /proc tells; they are read when they are first asked for, and once.
///
/// What is read here takes no lock that an execve of the thread could hold.
package struct SupplementaryGroups: ~Copyable {
  private enum State {
    case notAsked
    case unknown
    case known([UInt32])
  }
  private let thread: Int32
  private var state = State.notAsked

  package init(ofThread thread: Int32) { self.thread = thread }

  /// Whether a group is among them; nil where that can't be told (the thread has ended, or is in a process namespace that
  /// we don't see).
  package mutating func contains(_ gid: UInt32) -> Bool? {
    if case .notAsked = state {
      state = readGroups(ofThread: thread).map { .known($0) } ?? .unknown
    }
    guard case .known(let groups) = state else { return nil }
    return groups.contains(gid)
  }
}

private func readGroups(ofThread thread: Int32) -> [UInt32]? {
  guard thread > 0, let text = try? readProcessStatus(thread) else { return nil }
  return text.withUnsafeBytes { bytes in
    guard let line = range(of: "\nGroups:", in: bytes) else { return nil }
    var groups: [UInt32] = []
    var value: UInt64 = 0
    var inNumber = false
    for byte in bytes[line...] {
      if byte >= 0x30, byte <= 0x39 {
        value = (value &* 10 &+ UInt64(byte - 0x30)) & 0xffff_ffff
        inNumber = true
      } else {
        if inNumber { groups.append(UInt32(truncatingIfNeeded: value)) }
        value = 0
        inNumber = false
        if byte == 0x0a { return groups }
      }
    }
    // The end of the line is missing, so groups may be missing too.
    return nil
  }
}

private func readProcessStatus(_ thread: Int32) throws(Errno) -> [UInt8] {
  let fd = OwnedFD(owning: try check(clx_open("/proc/\(thread)/status", O_RDONLY | O_CLOEXEC, 0)))
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
