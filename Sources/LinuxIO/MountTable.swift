// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// One line of `/proc/self/mountinfo`.
package struct MountEntry: Equatable, Sendable {
  package let id: Int
  /// The mount that it lies in.
  package let parent: Int
  /// Major and minor number of the mounted filesystem's device.
  package let device: DeviceNumber
  /// The directory of that filesystem that is its top.
  package let root: String
  package let mountPoint: String
  package let options: String
  package let type: String
  package let source: String
  package let superOptions: String
}

extension MountEntry {
  /// Who has made a FUSE filesystem, and serves it; nil of others.
  ///
  /// Unlike its source, which is a text that whoever mounts chooses, this is what the kernel was told by the
  /// mounting process's own number, or by root.
  package var server: UInt32? {
    let prefix = "user_id="
    let option = superOptions.parts(between: ",").first { $0.hasPrefix(prefix) }
    return option.flatMap { UInt32($0.dropFirst(prefix.utf8.count)) }
  }

  /// The type of what our daemons serve.
  package static let servedType = "fuse.insula"

  /// Whether a daemon of ours serves it, whoever's that is.
  package var isServed: Bool { type.utf8.elementsEqual(Self.servedType.utf8) }

  /// Whether it is the filesystem of that number that a daemon of our own user serves: of one that is gone,
  /// the kernel gives the number to another filesystem at once.
  package func isOwn(_ device: DeviceNumber) -> Bool {
    self.device == device && isServed && server == ProcessID.user
  }

  /// Takes this mount away and no other, wherever its path leads by now; lazily, who uses it may finish.
  ///
  /// The table is a memory: whoever may rename a directory on the way can put another one or a link in its
  /// place. EINVAL if something else lies there by now, ELOOP if there is a link on the way.
  package func unmount(lazily: Bool) throws(Errno) {
    let (above, name) = mountPoint.splitAtName
    guard !name.isEmpty else { throw .EBUSY }
    let parent = try FD.cwd.openWithoutLinks("/\(above)", pathOnly | O_DIRECTORY)
    guard !lazily else {
      let top = try top(name, in: parent.fd)
      try check(umount2("/proc/self/fd/\(top.fd.raw)", CLX_MNT_DETACH))
      return
    }
    // Not by a descriptor of the mount, which would keep it busy. Where we are nobody can rename a directory
    // on which something is mounted.
    _ = try top(name, in: parent.fd)
    try LinuxIO.unmount("/proc/self/fd/\(parent.fd.raw)/\(name)", lazily: false)
  }

  /// Changes the flags of this mount and of no other, wherever its path leads by now.
  ///
  /// The errors are those of ``unmount(lazily:)``. Corresponds to `mount(2)` with `MS_REMOUNT`.
  package func remount(flags: UInt) throws(Errno) {
    let (above, name) = mountPoint.splitAtName
    guard !name.isEmpty else { throw .EBUSY }
    let parent = try FD.cwd.openWithoutLinks("/\(above)", pathOnly | O_DIRECTORY)
    let top = try top(name, in: parent.fd)
    try LinuxIO.remount("/proc/self/fd/\(top.fd.raw)", flags: flags)
  }

  /// What lies on top there, if it is this filesystem.
  private func top(_ name: String, in parent: FD) throws(Errno) -> OwnedFD {
    let top = try parent.open(name, pathOnly | O_DIRECTORY)
    guard try top.fd.deviceInMemory() == device else { throw .EINVAL }
    return top
  }
}

/// What `st_dev` says, taken apart.
package struct DeviceNumber: Hashable, Sendable, CustomStringConvertible {
  package let major: UInt32
  package let minor: UInt32

  package init(major: UInt32, minor: UInt32) {
    self.major = major
    self.minor = minor
  }

  /// Takes a packed number apart.
  package init(_ packed: UInt64) {
    major = clx_major(packed)
    minor = clx_minor(packed)
  }

  package var description: String { "\(major):\(minor)" }

  /// No filesystem has it: that of a mount that is gone.
  package static let none = DeviceNumber(major: .max, minor: .max)
}

/// What is mounted in this process's mount namespace, in the order of mounting.
package struct MountTable: Sendable {
  package let entries: [MountEntry]

  /// Understands the text of `/proc/self/mountinfo`; lines that make no sense are left out.
  package init(parsing text: String) {
    entries = text.parts(between: "\n").compactMap(Self.entry)
  }

  /// Reads it from the kernel.
  package static func current() throws(Errno) -> MountTable {
    let file = try FD.cwd.open("/proc/self/mountinfo", O_RDONLY)
    let bytes = try file.fd.readToEnd(limit: 1 << 26)
    return MountTable(parsing: String(decoding: bytes, as: UTF8.self))
  }

  /// What is on top at exactly this path, which must be absolute and free of links.
  package func top(at path: String) -> MountEntry? {
    entries.last { $0.mountPoint.utf8.elementsEqual(path.utf8) }
  }

  /// The whole of a filesystem that was mounted at a path: there, or where the directory has been moved to.
  ///
  /// Whoever may rename a directory above a mount moves the mount with it. Nil if it is not mounted any more,
  /// or something else lies over it.
  ///
  /// Once it is gone the kernel gives its number to the next filesystem, which is none of ours by that: only
  /// what is served by a daemon of ours is meant, and by that of `server`, where it is given.
  package func mount(
    of device: DeviceNumber, madeAt path: String, servedBy server: UInt32? = nil
  ) -> MountEntry? {
    func isMeant(_ entry: MountEntry) -> Bool {
      entry.device == device && entry.isServed && (server == nil || entry.server == server)
    }
    if let top = top(at: path), isMeant(top) { return top }
    return entries.first { isMeant($0) && $0.root == "/" && !$0.mountPoint.utf8.elementsEqual(path.utf8) }
  }

  /// Where that is.
  ///
  /// What can't be found out is taken to be at the path.
  package static func place(of device: DeviceNumber?, madeAt path: String) -> String? {
    guard let device, let table = try? current() else { return path }
    return table.mount(of: device, madeAt: path, servedBy: ProcessID.user)?.mountPoint
  }

  /// Takes away what lies on top at a path, if it is that filesystem.
  ///
  /// EINVAL if it is another one, also if it has the number of one of ours that is gone.
  package static func unmount(_ device: DeviceNumber, at path: String, lazily: Bool) throws(Errno) {
    guard let mount = try current().top(at: path), mount.isOwn(device) else { throw .EINVAL }
    try mount.unmount(lazily: lazily)
  }

  /// What lies below a directory, itself not counted.
  package func below(_ path: String) -> [MountEntry] {
    let prefix = path == "/" ? "/" : path + "/"
    return entries.filter { $0.mountPoint.begins(with: prefix) }
  }

  private static func entry(_ line: Substring) -> MountEntry? {
    let fields = line.parts(between: " ", keepingEmpty: true)
    guard fields.count >= 10, let id = Int(fields[0]), let parent = Int(fields[1]),
      let dash = fields.indices.dropFirst(6).first(where: { fields[$0] == "-" }),
      dash + 3 < fields.endIndex
    else { return nil }
    let device = fields[2].parts(between: ":").compactMap { UInt32($0) }
    guard device.count == 2 else { return nil }
    return MountEntry(
      id: id, parent: parent, device: DeviceNumber(major: device[0], minor: device[1]),
      root: unescaped(fields[3]), mountPoint: unescaped(fields[4]), options: String(fields[5]),
      type: unescaped(fields[dash + 1]),
      source: unescaped(fields[dash + 2]), superOptions: String(fields[dash + 3]))
  }

  /// The kernel writes blanks, tabs, newlines and backslashes as a backslash and three octal digits.
  private static func unescaped(_ field: Substring) -> String {
    var bytes: [UInt8] = []
    var rest = Substring(field).utf8[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "\\"), let value = UInt8(String(rest.prefix(3)) ?? "", radix: 8) {
        bytes.append(value)
        rest = rest.dropFirst(3)
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// Tells when the mounts of a mount namespace have changed: that of the process that makes it.
package struct MountWatch: ~Copyable {
  private let file: OwnedFD

  package init() throws(Errno) { file = try FD.cwd.open("/proc/self/mountinfo", O_RDONLY) }

  /// Whether something has been mounted or unmounted since this was last asked.
  ///
  /// Corresponds to `poll(2)` as `proc_pid_mountinfo(5)` has it.
  package var hasChanged: Bool {
    var request = pollfd(fd: file.fd.raw, events: Int16(POLLPRI), revents: 0)
    return poll(&request, 1, 0) != 0
  }
}

/// Changes the flags of a mount.
///
/// Corresponds to `mount(2)` with `MS_REMOUNT`.
package func remount(_ path: String, flags: UInt) throws(Errno) {
  try check(mount("", path, "", UInt(MS_REMOUNT) | flags, nil))
}

/// Corresponds to `umount2(2)`, never following a link; lazily with `MNT_DETACH`.
package func unmount(_ path: String, lazily: Bool) throws(Errno) {
  let umountNoFollow: Int32 = 8
  try check(umount2(path, umountNoFollow | (lazily ? CLX_MNT_DETACH : 0)))
}
