// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// Sockets that live in a directory, reached by the directory's descriptor and a name.
///
/// An address holds 108 bytes, which a store's path may exceed; the way through /proc never does.
package enum LocalSocket {
  /// Listens under `name`, which must be free; the name gets `mode`.
  ///
  /// Unless `takesDescriptors`, nobody can pass one on to a socket that is accepted, until that is allowed
  /// there.
  package static func listen(
    in directory: FD, name: String, mode: UInt32, takesDescriptors: Bool = true
  ) throws(Errno) -> OwnedFD {
    let socket = try make(Int32(SOCK_NONBLOCK.rawValue))
    // What is accepted takes after this one, from the moment of the connection on.
    if !takesDescriptors { _ = allowDescriptors(false, to: socket.fd) }
    try withAddress(directory, name) { (address, length) throws(Errno) in
      try check(bind(socket.fd.raw, address, length))
    }
    try name.withName { (name) throws(Errno) in
      let made = try directory.child(name)
      try made.fd.changeMode(mode)
    }
    // As many as the kernel allows (net.core.somaxconn): a short queue is easily filled by one.
    try check(Glibc.listen(socket.fd.raw, 4096))
    return socket
  }

  /// Makes sure that `name` is free: a socket that nobody listens on any more is removed.
  ///
  /// EADDRINUSE when somebody does.
  package static func clearStale(in directory: FD, name: String) throws(Errno) {
    if try isAlive(in: directory, name: name) { throw .EADDRINUSE }
    do throws(Errno) {
      try directory.remove(name, directory: false)
    } catch {
      guard error == .ENOENT else { throw error }
    }
  }

  private static func isAlive(in directory: FD, name: String) throws(Errno) -> Bool {
    // Whose queue is full is alive too, and this does not wait in it.
    let socket = try make(Int32(SOCK_NONBLOCK.rawValue))
    do throws(Errno) {
      try withAddress(directory, name) { (address, length) throws(Errno) in
        try retrying { Glibc.connect(socket.fd.raw, address, length) }
      }
      return true
    } catch {
      return error == .EAGAIN
    }
  }

  /// Connects to what listens under `name`; ECONNREFUSED if nobody does any more, and EAGAIN if its queue
  /// stays full, since it takes nobody in.
  package static func connect(in directory: FD, name: String) throws(Errno) -> OwnedFD {
    let socket = try make()
    try setPatience(seconds: 1, of: socket.fd)
    try withAddress(directory, name) { (address, length) throws(Errno) in
      try retrying { Glibc.connect(socket.fd.raw, address, length) }
    }
    try setPatience(seconds: 0, of: socket.fd)
    return socket
  }

  /// How long whoever connects or sends waits for room; 0 is without an end.
  ///
  /// Corresponds to SO_SNDTIMEO.
  private static func setPatience(seconds: Int, of socket: FD) throws(Errno) {
    var value = timeval(tv_sec: seconds, tv_usec: 0)
    let size = socklen_t(MemoryLayout<timeval>.size)
    try check(setsockopt(socket.raw, SOL_SOCKET, SO_SNDTIMEO, &value, size))
  }

  /// How much of what was sent the other end has not read; not in bytes.
  ///
  /// Corresponds to the ioctl `SIOCOUTQ`.
  package static func unheard(_ socket: FD) throws(Errno) -> Int {
    var count: Int32 = 0
    try check(clx_ioctl(socket.raw, UInt(TIOCOUTQ), &count))
    return Int(count)
  }

  /// Connects to a socket of somebody's who must be the one to answer (EACCES), and need not (EAGAIN).
  ///
  /// No link is followed.
  package static func connect(in directory: FD, name: String, of user: UInt32) throws(Errno) -> OwnedFD {
    let found = try directory.child(name)
    guard try found.fd.status().type == S_IFSOCK else { throw Errno(ENOTSOCK) }
    let socket = try make(Int32(SOCK_NONBLOCK.rawValue))
    try withSocketAddress(Array("/proc/self/fd/\(found.fd.raw)".utf8)) { (address, length) throws(Errno) in
      try retrying { Glibc.connect(socket.fd.raw, address, length) }
    }
    guard try peer(of: socket.fd).uid == user else { throw .EACCES }
    return socket
  }

  /// Connects to what takes datagrams at a path.
  package static func connectDatagram(to path: String) throws(Errno) -> OwnedFD {
    try serviceManager(at: path)
  }

  /// Listens no more: whoever wants to connect is refused.
  ///
  /// Corresponds to `shutdown(2)`.
  package static func stopListening(_ listener: FD) { _ = shutdown(listener.raw, Int32(SHUT_RDWR)) }

  /// Takes the next caller; EAGAIN if there is none.
  package static func accept(_ listener: FD) throws(Errno) -> OwnedFD {
    let flags = Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
    return OwnedFD(owning: try retrying { clx_accept4(listener.raw, flags) })
  }

  /// Lets the other end pass descriptors on to this socket, or makes that EPERM for them; false where the
  /// kernel can't, which is before Linux 6.16.
  ///
  /// Corresponds to `SO_PASSRIGHTS`.
  package static func allowDescriptors(_ isAllowed: Bool, to socket: FD) -> Bool {
    var value: Int32 = isAllowed ? 1 : 0
    let size = socklen_t(MemoryLayout.size(ofValue: value))
    return setsockopt(socket.raw, SOL_SOCKET, CLX_SO_PASSRIGHTS, &value, size) == 0
  }

  /// Whether this is a local stream socket that somebody can connect to.
  ///
  /// Corresponds to `SO_DOMAIN`, `SO_TYPE` and `SO_ACCEPTCONN`.
  package static func isListening(_ socket: FD) -> Bool { isStream(socket, accepting: 1) }

  /// Whether it is a connection of a process with another one on this machine.
  package static func isConnection(_ socket: FD) -> Bool { isStream(socket, accepting: 0) }

  private static func isStream(_ socket: FD, accepting: Int32) -> Bool {
    option(SO_DOMAIN, of: socket) == AF_UNIX && option(SO_ACCEPTCONN, of: socket) == accepting
      && option(SO_TYPE, of: socket) == Int32(SOCK_STREAM.rawValue)
  }

  private static func option(_ name: Int32, of socket: FD) -> Int32? {
    var value: Int32 = 0
    var size = socklen_t(MemoryLayout.size(ofValue: value))
    return getsockopt(socket.raw, SOL_SOCKET, name, &value, &size) == 0 ? value : nil
  }

  /// Has calls on this socket fail where they would wait (EAGAIN).
  ///
  /// Whoever else has the socket can undo that. Corresponds to `O_NONBLOCK`.
  package static func neverWait(_ socket: FD) throws(Errno) {
    try check(clx_set_nonblocking(socket.raw))
  }

  /// Who is at the other end, as the kernel noted when they connected.
  package static func peer(of socket: FD) throws(Errno) -> (pid: Int32, uid: UInt32, gid: UInt32) {
    var pid: pid_t = 0
    var uid: uid_t = 0
    var gid: gid_t = 0
    try check(clx_peer_credentials(socket.raw, &pid, &uid, &gid))
    return (pid, uid, gid)
  }

  /// The groups besides the first one that the other end had when it connected.
  package static func peerGroups(of socket: FD) throws(Errno) -> [UInt32] {
    var groups = [gid_t](repeating: 0, count: 32)
    while true {
      let count = clx_peer_groups(socket.raw, &groups, UInt32(groups.count))
      if count >= 0 { return Array(groups.prefix(Int(count))) }
      let error = Errno.last
      // No process has more than 65536.
      guard error == .ERANGE, groups.count < 1 << 16 else { throw error }
      groups = [gid_t](repeating: 0, count: 1 << 16)
    }
  }

  /// What has arrived, at most `limit` bytes, and a descriptor if one came with it; nil at the end.
  ///
  /// EAGAIN if there is nothing yet. The descriptor is for the caller to close; unless `takesDescriptor` it
  /// never becomes ours.
  package static func receive(
    from socket: FD, limit: Int, takesDescriptor: Bool = true
  ) throws(Errno) -> (bytes: [UInt8], descriptor: FD?)? {
    var chunk = [UInt8](repeating: 0, count: limit)
    var raw: Int32 = -1
    let count = try retrying {
      takesDescriptor
        ? clx_receive_with(socket.raw, &chunk, limit, &raw) : clx_receive_with(socket.raw, &chunk, limit, nil)
    }
    let descriptor = raw < 0 ? nil : FD(raw)
    // At the end there are no bytes, and no descriptor comes without any.
    return count == 0 ? nil : (Array(chunk[..<count]), descriptor)
  }

  /// Sends without waiting and without a signal when the other end is gone; the count that went out.
  ///
  /// With the first of the bytes goes a descriptor for the other end to have too, if one is given.
  package static func send(
    _ bytes: ArraySlice<UInt8>, with descriptor: FD? = nil, to socket: FD
  ) throws(Errno) -> Int {
    let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
    return try retrying {
      bytes.withUnsafeBytes { buffer in
        buffer.baseAddress.map {
          clx_send_with(socket.raw, $0, buffer.count, flags, descriptor?.raw ?? -1)
        } ?? 0
      }
    }
  }

  private static func make(_ flags: Int32 = 0) throws(Errno) -> OwnedFD {
    let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | flags
    return OwnedFD(owning: try check(socket(AF_UNIX, kind, 0)))
  }

  private static func withAddress(
    _ directory: FD, _ name: String, _ body: (UnsafePointer<sockaddr>, socklen_t) throws(Errno) -> Void
  ) throws(Errno) {
    let path = Array("/proc/self/fd/\(directory.raw)/\(name)".utf8)
    try withSocketAddress(path, body)
  }
}

/// Lends the address of a local socket; a path that starts with a zero names one outside the file tree.
func withSocketAddress(
  _ path: [UInt8], _ body: (UnsafePointer<sockaddr>, socklen_t) throws(Errno) -> Void
) throws(Errno) {
  var address = sockaddr_un()
  address.sun_family = sa_family_t(AF_UNIX)
  guard path.count < MemoryLayout.size(ofValue: address.sun_path) else { throw .ENAMETOOLONG }
  withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
  let header = MemoryLayout.size(ofValue: address) - MemoryLayout.size(ofValue: address.sun_path)
  let closing = path.first == 0 ? 0 : 1
  let length = socklen_t(header + path.count + closing)
  try withUnsafeBytes(of: &address) { (bytes) throws(Errno) in
    guard let base = bytes.baseAddress else { throw .EINVAL }
    try body(base.assumingMemoryBound(to: sockaddr.self), length)
  }
}

/// A socket that leads to the program that waits for us.
func serviceManager(at path: String) throws(Errno) -> OwnedFD {
  var bytes = Array(path.utf8)
  // systemd writes the zero that marks a name outside the file tree as an at sign.
  if bytes.first == UInt8(ascii: "@") { bytes[0] = 0 }
  let kind = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
  let socket = OwnedFD(owning: try check(Glibc.socket(AF_UNIX, kind, 0)))
  try withSocketAddress(bytes) { (address, length) throws(Errno) in
    try retrying { Glibc.connect(socket.fd.raw, address, length) }
  }
  return socket
}

/// Tells the program that waits for us what is going on.
///
/// Corresponds to `sd_notify(3)`.
package func notifyServiceManager(_ state: String, at path: String) throws(Errno) {
  let socket = try serviceManager(at: path)
  _ = try LocalSocket.send(Array(state.utf8)[...], to: socket.fd)
}
