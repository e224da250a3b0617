// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CFuse
internal import CLinux
internal import Glibc
package import LinuxIO

/// How a filesystem is put in its place.
package struct MountSettings: Sendable {
  /// What `mount` shows as the source.
  package var source = "insula"
  /// The `MS_*` bits of mount(2).
  package var flags: UInt = 0
  /// Whether other users than the one who mounts may enter.
  package var allowOther = false

  package init() {}
}

package enum Mount {
  /// Mounts by mount(2) over a directory, for root; gives the connection to serve.
  ///
  /// The kernel goes by the descriptor alone: whatever path the directory had, something else may be there by
  /// now. The permissions are ours to check, so `default_permissions` is not among the options.
  package static func direct(over directory: FD, _ settings: MountSettings) throws(Errno) -> OwnedFD {
    let connection = OwnedFD(owning: try check(clx_open("/dev/fuse", O_RDWR | O_CLOEXEC, 0)))
    var options = "fd=\(connection.fd.raw),rootmode=40000,user_id=\(geteuid()),group_id=\(getegid())"
    if settings.allowOther { options += ",allow_other" }
    // Root may keep device nodes in the tree; none is to work there.
    let flags = settings.flags | UInt(MS_NODEV)
    try check(mount(settings.source, "/proc/self/fd/\(directory.raw)", MountEntry.servedType, flags, options))
    return connection
  }

  /// A connection to the kernel, and the mount that it is to serve.
  package struct Detached: ~Copyable {
    private let connection: OwnedFD
    package let mount: SharedFD

    init(connection: consuming OwnedFD, mount: SharedFD) {
      self.connection = connection
      self.mount = mount
    }

    package consuming func takeConnection() -> OwnedFD { connection }
  }

  /// Makes a filesystem that only one user can enter, and a mount of it that has no place yet.
  ///
  /// Not even root can enter it. Corresponds to `fsmount(2)`.
  package static func detached(
    for user: UInt32, _ group: UInt32, source: String, _ limits: DetachedMount.Limits
  ) throws(Errno) -> Detached {
    let connection = OwnedFD(owning: try check(clx_open("/dev/fuse", O_RDWR | O_CLOEXEC, 0)))
    let options = [
      ("source", source), ("subtype", "insula"), ("fd", "\(connection.fd.raw)"), ("rootmode", "40000"),
      ("user_id", "\(user)"), ("group_id", "\(group)"),
    ]
    let mount = try DetachedMount.make(type: "fuse", options: options, limits)
    return Detached(connection: connection, mount: SharedFD(mount))
  }

  /// The same for a program of a user's that is to serve us: everyone can enter it, and it is for whoever has
  /// it to say who may.
  static func forProgram(
    of user: UInt32, _ group: UInt32, source: String, _ limits: DetachedMount.Limits
  ) throws(Errno) -> Detached {
    let connection = OwnedFD(owning: try check(clx_open("/dev/fuse", O_RDWR | O_CLOEXEC, 0)))
    let options = [
      ("source", source), ("fd", "\(connection.fd.raw)"), ("rootmode", "40000"), ("user_id", "\(user)"),
      ("group_id", "\(group)"),
    ]
    let mount = try DetachedMount.make(type: "fuse", options: options, flags: ["allow_other"], limits)
    return Detached(connection: connection, mount: SharedFD(mount))
  }

  /// Mounts in a user namespace of our own, over a directory; gives the connection for someone to serve.
  ///
  /// Only we can enter it. Corresponds to `mount(2)`.
  package static func ofOurOwn(
    over directory: FD, source: String, _ limits: DetachedMount.Limits
  ) throws(Errno) -> OwnedFD {
    let made = try detached(for: geteuid(), getegid(), source: source, limits)
    try made.mount.use { (mount) throws(Errno) in try mount.attach(over: directory) }
    return made.takeConnection()
  }

  /// Takes a mount away: that filesystem, where it is known, and no other that has come there meanwhile.
  ///
  /// Corresponds to `umount2(2)`.
  package static func remove(
    _ device: DeviceNumber? = nil, at path: String, lazily: Bool
  ) throws(Errno) {
    guard let device else { return try LinuxIO.unmount(path, lazily: lazily) }
    try MountTable.unmount(device, at: path, lazily: lazily)
  }

  /// Takes away the mount whose top a descriptor names; who uses it may finish.
  static func removeLazily(_ top: FD) throws(Errno) {
    try check(umount2("/proc/self/fd/\(top.raw)", CLX_MNT_DETACH))
  }

  /// Mounts through the set-user-id helper `fusermount3`, for anyone; gives the connection to serve.
  ///
  /// libfuse speaks to the helper; its session is only lent for that.
  package static func throughHelper(at path: String, options: [String]) throws(Errno) -> OwnedFD {
    let words = ["insula", "-o", options.joined(separator: ",")]
    var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
    defer { for argument in arguments { free(argument) } }
    var table = fuse_lowlevel_ops()
    let session = arguments.withUnsafeMutableBufferPointer { buffer in
      var args = fuse_args(argc: Int32(words.count), argv: buffer.baseAddress, allocated: 0)
      // libfuse adds to them, in a copy.
      defer { fuse_opt_free_args(&args) }
      return fuse_session_new(&args, &table, MemoryLayout<fuse_lowlevel_ops>.size, nil)
    }
    guard let session else { throw .EINVAL }
    defer { fuse_session_destroy(session) }
    guard fuse_session_mount(session, path) == 0 else { throw .EPERM }
    // The session closes its own descriptor; ours is another one of the same connection.
    return try FD(fuse_session_fd(session)).duplicated()
  }
}
