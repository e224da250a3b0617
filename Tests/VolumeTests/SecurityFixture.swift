// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Synchronization
internal import TestSupport
@testable internal import Volume

extension View {
  static let aclAlias = "system.insula.acl"
  static let flagsAlias = "system.insula.flags"

  func setAttribute(
    _ name: String, of path: String, to value: [UInt8], flags: Int32 = 0, by caller: Caller = .root
  ) throws(Errno) {
    let node = try node(path)
    try name.withName { (name) throws(Errno) in
      try withRoom(value.count) { (room) throws(Errno) in
        room.copyBytes(from: value)
        try setAttribute(name, of: node, to: UnsafeRawBufferPointer(room), flags: flags, by: caller)
      }
    }
  }

  func attribute(_ name: String, of path: String, by caller: Caller = .root) throws(Errno) -> [UInt8] {
    let node = try node(path)
    return try withRoom(1 << 16) { (room) throws(Errno) in
      let count = try name.withName { (name) throws(Errno) in
        try attribute(name, of: node, into: room, by: caller)
      }
      return Array(room[..<count])
    }
  }

  func removeAttribute(_ name: String, of path: String, by caller: Caller = .root) throws(Errno) {
    let node = try node(path)
    try name.withName { (name) throws(Errno) in try removeAttribute(name, of: node, by: caller) }
  }

  func attributeNames(of path: String, by caller: Caller = .root) throws(Errno) -> [String] {
    let node = try node(path)
    return try withRoom(4096) { (room) throws(Errno) in
      let count = try attributeNames(of: node, into: room, by: caller)
      return room[..<count].split(separator: 0).map { String(decoding: $0, as: UTF8.self) }.sorted()
    }
  }

  /// Gives an object an ACL through its xattr alias.
  func setACL(_ path: String, _ entries: AccessControlEntry..., by caller: Caller = .root) throws(Errno) {
    try setAttribute(Self.aclAlias, of: path, to: AccessControlList(entries).filesec, by: caller)
  }

  /// An object's ACL as its xattr alias shows it; nil if there is none.
  func acl(of path: String, by caller: Caller = .root) throws(Errno) -> AccessControlList? {
    let bytes: [UInt8]
    do throws(Errno) { bytes = try attribute(Self.aclAlias, of: path, by: caller) } catch .ENODATA {
      return nil
    }
    return try withRoom(bytes.count) { (room) throws(Errno) in
      room.copyBytes(from: bytes)
      do throws(MalformedACL) { return try AccessControlList(filesec: UnsafeRawBufferPointer(room)) } catch {
        throw .EINVAL
      }
    }
  }

  func setFlags(_ path: String, _ words: String, by caller: Caller = .root) throws(Errno) {
    try setAttribute(Self.flagsAlias, of: path, to: Array(words.utf8), by: caller)
  }

  func flags(of path: String) throws(Errno) -> String {
    String(decoding: try attribute(Self.flagsAlias, of: path), as: UTF8.self)
  }

  /// Like ``errno(_:)``, on a thread that keeps its rights while it makes things in another's name, as the
  /// daemon's do.
  ///
  /// Where ACLs give more than modes, that counts; a test's own thread must not, since programs that it
  /// starts would inherit it.
  func errnoOfWorker(_ body: @Sendable (View) throws(Errno) -> Void) -> Errno? {
    let outcome = Mutex<Errno?>(.EIO)
    withoutActuallyEscaping(body) { body in
      let thread = try? JoinableThread(name: "worker") {
        var result: Errno?
        do throws(Errno) {
          try ThreadIdentity.prepare()
          try body(self)
        } catch {
          result = error
        }
        outcome.withLock { $0 = result }
      }
      thread?.join()
    }
    return outcome.withLock { $0 }
  }

  func stat(_ path: String, by caller: Caller) throws(Errno) {
    _ = try attributes(of: try node(path), handle: nil, by: caller)
  }

  /// Opens and closes; gives how the kernel was told to serve it.
  @discardableResult
  func open(_ path: String, _ flags: Int32, by caller: Caller) throws(Errno) -> OpenMode {
    let node = try node(path)
    let opened = try open(node, flags: flags, clearsSetID: false, by: caller)
    release(node, handle: opened.handle, flockOwner: nil)
    return opened.mode
  }

  func openDirectory(_ path: String, by caller: Caller) throws(Errno) {
    let node = try node(path)
    let opened = try openDirectory(node, by: caller)
    releaseDirectory(node, handle: opened.handle)
  }

  func access(_ path: String, _ mask: Int32, by caller: Caller) throws(Errno) {
    try access(try node(path), mask: mask, by: caller)
  }

  func link(_ path: String, as newPath: String, by caller: Caller) throws(Errno) {
    let node = try node(path)
    _ = try at(newPath) { (name, parent) throws(Errno) in
      try link(node, as: name, in: parent, by: caller)
    }
  }

  func makeFifo(_ path: String, mode: FileMode, by caller: Caller) throws(Errno) {
    _ = try at(path) { (name, parent) throws(Errno) in
      try makeNode(name, in: parent, mode: S_IFIFO | mode, device: 0, by: caller)
    }
  }
}

extension Principal {
  static let alice = Principal.user(Caller.alice.uid)
  static let bob = Principal.user(Caller.bob.uid)
}
