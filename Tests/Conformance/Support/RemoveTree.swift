// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

/// Removes `name` in `dir` and all below it, whatever modes and names it has.
///
/// Goes by descriptors, since paths in a deep tree are longer than PATH_MAX.
func removeTree(_ dir: Int32, _ name: String) throws {
  try removeTree(dir, Array(name.utf8))
}

private func removeTree(_ dir: Int32, _ name: [UInt8]) throws {
  let path = name.map { CChar(bitPattern: $0) } + [0]
  let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
  var fd = clx_openat(dir, path, flags, 0)
  if fd == -1 && errno == EACCES {
    fchmodat(dir, path, 0o700, 0)
    fd = clx_openat(dir, path, flags, 0)
  }
  guard fd != -1 else { return try remove(dir, path, 0) }
  defer { close(fd) }
  fchmod(fd, 0o700)
  for entry in try children(fd) {
    if entry.type == UInt8(DT_DIR) || entry.type == UInt8(DT_UNKNOWN) {
      try removeTree(fd, entry.name)
    } else {
      try remove(fd, entry.name.map { CChar(bitPattern: $0) } + [0], 0)
    }
  }
  try remove(dir, path, AT_REMOVEDIR)
}

/// All of a directory before anything in it goes, so that nothing rests on how removal moves offsets.
private func children(_ fd: Int32) throws -> [Entry] {
  var all: [Entry] = []
  let trial = Trial(user: .root, peer: .root, inheritsGroup: false, lacksNothing: false)
  while true {
    let part = try trial.someEntries(fd, buffer: 65536)
    guard !part.isEmpty else { return all.filter { $0.text != "." && $0.text != ".." } }
    all += part
  }
}

private func remove(_ dir: Int32, _ path: [CChar], _ flags: Int32) throws {
  guard unlinkat(dir, path, flags) == -1 else { return }
  let error = errnoName(errno)
  let name = String(decoding: path.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  throw Failure(text: "expected that \(name) can be removed after the check, saw \(error)")
}
