// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

// A disk that the daemon has made for a user's encrypted files, so that they have a size.
//
//  1. Nobody but root can write to its image, from the moment in which it is made: so the kernel is not shown
//     what somebody has thought up for it.
//  2. All blocks are the image's own from the start. They are reserved with the user's rights, which leave
//     alone what a disk keeps for root.
//  3. The user has one directory on it, in which gocryptfs works with the user's rights.

extension EngineSupervisor {
  func serveOwnDisk(newSize: Int64?, at place: String) throws(EngineFailure) {
    guard isSystem else { throw EngineFailure(.EPERM, "only root's kernel mounts such a disk") }
    let image = try takeHanded()
    try requireFree(image)
    if let newSize {
      try reserve(newSize, for: image)
      try format(image)
    }
    let format = try attempt({ "its disk can't be read: \($0.message)" }) { () throws(Errno) in
      try image.use { (image) throws(Errno) in DiskFormat.read(image) }
    }
    guard let format, format.kind == .ext4 else { throw EngineFailure(.EINVAL, "its disk is damaged") }
    let found = FoundDisk(path: EncryptedFiles.disk, format: format, isFile: true, disk: image)
    // Also what is only read may have a journal to be repeated.
    let lent = try lend(found, to: EngineUser(of: 0, 0), isReadOnly: false, called: name, in: place)
    defer { withExtendedLifetime(lent.held) {} }
    try mend(lent.path)
    let mountPoint = mountPoint(in: place)
    try makeMountPoint(mountPoint, lent.user)
    // To write zeros where there are none (ext4lazyinit) would make holes of what is reserved.
    let program = try EngineProgram(
      mounting: format.kind, at: lent.path, isReadOnly: order.isReadOnly, ["noinit_itable"], at: mountPoint)
    try mountByKernel(program, at: mountPoint, report(program, format)) { (root) throws(Errno) in
      if newSize != nil { try makeFiles(in: root) }
    }
  }

  /// What all loop devices of the user's disks are called: they are counted by that.
  private var name: String { "insula-disk-\(order.user)" }
  private static let most = 16

  /// Throws if the kernel has it mounted already, by whomever, or has too many of the user's.
  private func requireFree(_ image: SharedFD) throws(EngineFailure) {
    let inUse = { (error: Errno) in
      let holder = (try? image.use { (image) throws(Errno) in try image.status() })?.lockHolder
      return error == .EDQUOT
        ? "too many disks of volumes that are locked are still used, by what has opened them in /proc"
        : "its disk is in use already" + (holder.map { ": pid \($0) has locked it" } ?? "")
    }
    try attempt(inUse) { () throws(Errno) in
      try image.use { (image) throws(Errno) in
        try lock(image, isReadOnly: false)
        try checkImage(of: image, try image.status(), isReadOnly: false)
      }
      // Its own of a moment ago is none any more by now.
      guard LoopDevice.Image.count(called: name) < Self.most else { throw .EDQUOT }
    }
  }

  private func mend(_ disk: String) throws(EngineFailure) {
    let program = try EngineProgram(mending: disk)
    let (status, said, _) = try finish(program, "its disk can't be checked")
    // 1 and 2 stand for what it has mended.
    guard (0...2).contains(status) else {
      throw EngineFailure(
        .EIO,
        "its disk is damaged, and root has to decide about it, with 'e2fsck \(EncryptedFiles.disk)'"
          + (said.isEmpty ? "" : "; it says: \(said)"))
    }
  }

  /// Runs a program to its end; its status, and what it has said.
  private func finish(
    _ program: EngineProgram, holding image: SharedFD? = nil, _ failure: String
  ) throws(EngineFailure) -> (status: Int32, said: String, end: String) {
    var output = EngineOutput()
    let status = try attempt({ "\(failure): \($0.message)" }) { () throws(Errno) in
      let process = try EngineProcess(
        program, as: EngineUser(of: 0, 0), nil, holding: image, becomes: false, intercepting: nil)
      try wait(for: process, &output)
      return try process.follow()
    }
    let end = SignalName.end(ofWaitStatus: status ?? 0)
    return (status.map { clx_exit_status($0) } ?? 0, output.text, end)
  }

  private func reserve(_ size: Int64, for image: SharedFD) throws(EngineFailure) {
    let failed = { (error: Errno) in
      switch error {
      case .ENOSPC, .EFBIG:
        "there is not so much room where its files are to be; choose a smaller '--size', or another disk "
          + "with '--in'"
      case .EDQUOT:
        "there is a quota for its user where its files are to be, which limits them already; leave out "
          + "'--size', or choose another disk with '--in'"
      case .EOPNOTSUPP:
        "the filesystem where its files are to be can't reserve room; choose another one with '--in'"
      default: "no room can be reserved for its disk: \(error.message)"
      }
    }
    try attempt(failed) { () throws(Errno) in
      // What is root's does not count for the user.
      if try image.use({ (image) throws(Errno) in try image.hasQuota(of: order.user) }) { throw .EDQUOT }
      try ThreadIdentity.with(uid: order.user, gid: order.group, lasting: false) { () throws(Errno) in
        try image.use { (image) throws(Errno) in try image.allocate(mode: 0, offset: 0, length: size) }
      }
    }
  }

  private func format(_ image: SharedFD) throws(EngineFailure) {
    let failed = "its disk can't be formatted"
    let (status, said, end) = try finish(EngineProgram(formatting: image.number), holding: image, failed)
    guard status == 0 else {
      throw EngineFailure(
        .EIO, "\(failed): " + (said.isEmpty ? "mkfs.ext4 \(end)" : said))
    }
  }

  /// The user's directory, as gocryptfs makes one for encrypted files.
  private func makeFiles(in root: FD) throws(Errno) {
    try root.makeDirectory(EncryptedFiles.onDisk, mode: 0o700)
    let files = try root.open(EncryptedFiles.onDisk, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    let vector = try files.fd.open(EncryptedFiles.vector, O_WRONLY | O_CREAT | O_EXCL, mode: 0o400)
    try vector.fd.writeAll((0..<16).map { _ in UInt8.random(in: 0...255) })
    for made in [vector.fd, files.fd] { try made.changeOwner(uid: order.user, gid: order.group) }
  }
}
