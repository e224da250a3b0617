// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// Whether a running thread has a group among its supplementary ones, as /proc tells.
///
/// False where that can't be told (the thread has ended, or is in a process namespace that we don't see): a right that
/// hangs on it is then not given. What is read here takes no lock that an execve of the caller could hold.
package func isSupplementaryGroup(_ gid: UInt32, ofThread thread: Int32) -> Bool {
  guard thread > 0, let text = try? readProcessStatus(thread) else { return false }
  var found = false
  text.withUnsafeBytes { bytes in
    guard let line = range(of: "\nGroups:", in: bytes) else { return }
    var value: UInt64 = 0
    var inNumber = false
    for byte in bytes[line...] {
      if byte >= 0x30, byte <= 0x39 {
        value = (value &* 10 &+ UInt64(byte - 0x30)) & 0xffff_ffff
        inNumber = true
      } else {
        if inNumber, value == UInt64(gid) { found = true }
        value = 0
        inNumber = false
        if byte == 0x0a || found { return }
      }
    }
  }
  return found
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
