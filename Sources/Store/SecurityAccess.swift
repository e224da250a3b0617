// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy

/// How a command gets at lists and flags: in the store itself, or through the mount while a daemon has it.
enum SecurityAccess: Sendable {
  case store(Metadata)
  case mount

  func setList(_ list: AccessControlList?, on object: FD) throws(Errno) {
    guard case .store(let metadata) = self else {
      return try set("system.insula.acl", to: list?.filesec, on: object)
    }
    try metadata.setList(list, on: object)
  }

  func setFlags(_ flags: FileFlags, on object: FD) throws(Errno) {
    guard case .store(let metadata) = self else {
      return try set("system.insula.flags", to: Array(flags.words.utf8), on: object)
    }
    try metadata.setFlags(flags, on: object)
  }

  /// Takes the list and the flags away, as far as that can be done: what follows says what is still in the way.
  func clear(_ object: FD) {
    // The flags first: they stand against a change of the list.
    try? setFlags([], on: object)
    try? setList(nil, on: object)
  }

  /// Takes lists and flags away from a whole tree.
  func clearTree(_ name: Name, in parent: FD) throws(Errno) {
    let top = try parent.child(name)
    clear(top.fd)
    let root = try parent.openDirectory(name)
    var pending: [[[UInt8]]] = [[]]
    while let path = pending.popLast() {
      guard let directory = try? Self.open(path, in: root.fd) else { continue }
      for entry in (try? directory.fd.entries()) ?? [] {
        try? entry.name.withName { (name) throws(Errno) in
          let child = try directory.fd.child(name)
          clear(child.fd)
        }
        if entry.type == UInt8(DT_DIR) { pending.append(path + [entry.name]) }
      }
    }
  }

  /// Removes something with all that is in it, be it protected by lists and flags, as a mount enforces them.
  func removeTree(_ name: Name, in parent: FD) throws(Errno) {
    do throws(Errno) {
      try parent.removeTree(name)
    } catch .EACCES, .EPERM {
      try clearTree(name, in: parent)
      try parent.removeTree(name)
    }
  }

  private static func open(_ path: [[UInt8]], in root: FD) throws(Errno) -> OwnedFD {
    var directory = try root.reopened(O_RDONLY | O_DIRECTORY)
    for name in path {
      directory = try name.withName { (name) throws(Errno) in try directory.fd.openDirectory(name) }
    }
    return directory
  }

  private func set(_ name: String, to value: [UInt8]?, on object: FD) throws(Errno) {
    try name.withName { (name) throws(Errno) in
      guard let value else {
        do throws(Errno) { return try object.removeAttribute(name.bytes) } catch .ENODATA { return }
      }
      let room = UnsafeMutableRawBufferPointer.allocate(byteCount: value.count, alignment: 8)
      defer { room.deallocate() }
      room.copyBytes(from: value)
      try object.setAttribute(name.bytes, to: UnsafeRawBufferPointer(room), flags: 0)
    }
  }
}
