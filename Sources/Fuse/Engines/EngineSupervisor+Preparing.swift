// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

// What there has to be before a program is started: a place to mount over, and the disk.

extension EngineSupervisor {
  /// Where nobody else looks: in the namespace of our own.
  private static let places = ["/run/insula", "/mnt", "/media", "/tmp"]

  /// A directory to mount over.
  func preparePlace() throws(EngineFailure) -> String {
    try attempt({ "no place can be made to mount it: \($0.message)" }) { () throws(Errno) in
      guard isSystem else {
        let own = getenv("XDG_RUNTIME_DIR").map { String(cString: $0) } ?? ""
        let parent = own.begins(with: "/") ? own : "/tmp"
        var template = Array("\(parent)/insula-volume.XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Errno.last }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
      }
      let newMounts: Int32 = 0x0002_0000
      try check(clx_unshare(newMounts))
      // What is unmounted elsewhere goes away here too, where the machine passes that on.
      try check(mount(nil, "/", nil, UInt(MS_REC) | UInt(MS_SLAVE), nil))
      try letGoOfOthers()
      guard let place = Self.places.first(where: { access($0, F_OK) == 0 }) else { throw .ENOENT }
      // Devices work in it: that of the disk is lent there.
      try check(mount("insula", place, "tmpfs", UInt(MS_NOSUID) | UInt(MS_NOEXEC), "mode=0711,size=64k"))
      return place
    }
  }

  /// Holds no mount that others may want to take away, such as our own tree's, and no disk that the program
  /// has no use for.
  private func letGoOfOthers() throws(Errno) {
    var needed = [
      "/usr", "/lib", "/etc", "/var/lib", "/tmp", "/run", Account.numbered(order.user)?.home ?? "/",
    ]
    needed += EngineProgram.searchPath.parts(between: ":").map(String.init)
    switch order.source {
    case .kernel(let disk), .program(let disk):
      needed.append(disk)
      if disk.begins(with: "/dev/") {
        needed += LoopDevice.Image.path(of: String(disk.dropFirst(5))).map { [$0] } ?? []
      }
    case .server, .encrypted, .ownDisk: break
    }
    for entry in try MountTable.current().entries.reversed() {
      let isNeeded = needed.contains { path in
        entry.mountPoint == "/" || path.utf8.elementsEqual(entry.mountPoint.utf8)
          || path.begins(with: entry.mountPoint + "/")
      }
      let isOthers = !isNeeded && (entry.device.major != 0 || entry.type.hasPrefix("fuse"))
      guard isOthers || entry.type.hasPrefix("fuse.insula") else { continue }
      // What is hidden by another one can't be taken away, and is nobody's who could ask for it.
      _ = umount2(entry.mountPoint, CLX_MNT_DETACH)
    }
  }

  /// A disk that was found.
  struct FoundDisk {
    let path: String
    let format: DiskFormat
    let isFile: Bool
    /// If it is a file, it is locked for as long as this is open, and the loop device that is made of it.
    let disk: SharedFD

    /// Why it can't be used.
    func why(_ error: Errno) -> String { EngineSupervisor.why(path, error) }
  }

  private static func why(_ path: String, _ error: Errno) -> String {
    switch error {
    case .EBUSY: "\(path) is in use already"
    case .ENOTBLK: "\(path) is neither a disk nor a file"
    default: "\(path) can't be read: \(error.message)"
    }
  }

  /// Finds a disk, and what is on it.
  func examine(_ disk: String) throws(EngineFailure) -> FoundDisk {
    var path = disk
    if !disk.begins(with: "/") {
      guard let found = Self.find(disk) else { throw EngineFailure(.ENOENT, "there is no disk \(disk)") }
      path = found
    }
    let file = SharedFD(
      try attempt({ "\(path) can't be opened: \($0.messageAboutPath)" }) { () throws(Errno) in
        try asUser { () throws(Errno) in
          let flags = O_RDONLY | O_NONBLOCK | O_NOCTTY
          // A link on the way could lead elsewhere the next time; those of devices are the machine's.
          return disk.begins(with: "/")
            ? try FD.cwd.openWithoutLinks(path, flags) : try FD.cwd.openFollowing(path, flags)
        }
      })
    let why = { (error: Errno) -> String in
      let status = error == .EBUSY ? try? file.use { (file) throws(Errno) in try file.status() } : nil
      let holder = status?.lockHolder.map {
        // Once the lock is ours, nothing else is in the way.
        $0 == ProcessID.own ? ": a loop device is made of it" : ": pid \($0) has locked it"
      }
      return Self.why(path, error) + (holder ?? "")
    }
    let (isFile, format) = try attempt(why) { () throws(Errno) in
      try file.use { (file) throws(Errno) in
        let status = try file.status()
        guard status.isRegular || status.type == S_IFBLK else { throw .ENOTBLK }
        if status.isRegular { try lock(file, isReadOnly: order.isReadOnly) }
        let format = DiskFormat.read(file)
        if let format {
          try checkImage(of: file, status, isReadOnly: order.isReadOnly || format.kind.isReadOnly)
        }
        return (status.isRegular, format)
      }
    }
    guard let format else {
      throw EngineFailure(
        .EINVAL, "it has no filesystem that is known; format it first (with mkfs.ext4, for example)")
    }
    guard order.identity.isEmpty || order.identity == format.identity else {
      throw EngineFailure(.ESTALE, "at \(path) is another disk than the one that was added")
    }
    return FoundDisk(path: path, format: format, isFile: isFile, disk: file)
  }

  func lock(_ image: FD, isReadOnly: Bool) throws(Errno) {
    try patiently { () throws(Errno) in
      if flock(image.raw, LOCK_NB | (isReadOnly ? LOCK_SH : LOCK_EX)) == 0 { return }
      throw Errno.last == .EAGAIN ? .EBUSY : .last
    }
  }

  /// Waits for a while: a program that served it before may be about to end.
  private func patiently<Taken>(
    tries: Int = 160, _ take: () throws(Errno) -> Taken
  ) throws(Errno) -> Taken {
    for _ in 0..<tries {
      do throws(Errno) { return try take() } catch { guard error == .EBUSY else { throw error } }
      if isGivenUp { break }
      poll(nil, 0, 100)
    }
    throw .EBUSY
  }

  /// Throws EBUSY if the file that a disk is made of is another disk too: that of a loop device, or of a
  /// program that has locked it; or if another disk is made of this one.
  func checkImage(of disk: FD, _ status: FileStatus, isReadOnly: Bool) throws(Errno) {
    if !status.isRegular, LoopDevice.Image.isMade(ofDevice: status, isReadOnly: isReadOnly) { throw .EBUSY }
    let loop = LoopDevice.Image(of: disk)
    guard let image = status.isRegular ? LoopDevice.Image(status, isReadOnly: isReadOnly) : loop else {
      return
    }
    let changesNothing = isReadOnly || image.isReadOnly
    if let loop { try checkBelow(loop, isReadOnly: changesNothing) }
    try patiently(tries: 10) { () throws(Errno) in
      if image.isShared(isReadOnly: changesNothing) { throw .EBUSY }
    }
  }

  /// The same for what a loop device is made of, which may be a disk that is a loop device too.
  private func checkBelow(_ loop: LoopDevice.Image, isReadOnly: Bool) throws(Errno) {
    guard !loop.isPassing, let file = loop.openFile() else { return }
    try lock(file.fd, isReadOnly: isReadOnly)
    guard try file.fd.status().type == S_IFBLK else { return }
    // Whoever uses a disk has claimed it.
    if !isReadOnly {
      let disk = file.fd
      _ = try patiently { () throws(Errno) in SharedFD(try disk.reopened(O_RDONLY | O_EXCL)) }
    }
    if let next = LoopDevice.Image(of: file.fd) { try checkBelow(next, isReadOnly: isReadOnly) }
  }

  /// What a program is to hold for as long as it runs, whatever ends us: so nobody else changes its disk.
  ///
  /// A block device is claimed, as the kernel's filesystems claim theirs. fuse2fs does that itself, and who
  /// only reads leaves it to others to read it too.
  func claim(_ found: FoundDisk, _ lent: LentDisk, isReadOnly: Bool) throws(EngineFailure) -> SharedFD? {
    if found.isFile && lent.held == nil { return found.disk }
    if isReadOnly || found.format.kind == .ext4 { return nil }
    return try attempt(found.why) { () throws(Errno) in
      try patiently { () throws(Errno) in
        try (lent.held ?? found.disk).use { (disk) throws(Errno) in
          SharedFD(try disk.reopened(O_RDONLY | O_EXCL))
        }
      }
    }
  }

  /// The path of a disk that is given by its number or its label.
  private static func find(_ disk: String) -> String? {
    let parts = disk.parts(between: "=", max: 1).map(String.init)
    guard parts.count == 2, let directory = ["UUID": "by-uuid", "LABEL": "by-label"][parts[0]],
      !parts[1].utf8.contains(UInt8(ascii: "/")), ![".", ".."].contains(parts[1])
    else { return nil }
    let path = "/dev/disk/\(directory)/\(parts[1])"
    return access(path, F_OK) == 0 ? path : nil
  }

  private func asUser<Result: ~Copyable>(
    _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    guard isSystem else { return try body() }
    return try ThreadIdentity.with(uid: order.user, gid: order.group, lasting: false, body)
  }

  /// A disk that is lent to a program.
  struct LentDisk {
    let path: String
    let user: EngineUser
    /// What has to stay open meanwhile.
    var held: SharedFD?
  }

  /// Lets a program that is nobody's have a disk of root's; a user's program opens its own.
  func lend(_ found: FoundDisk, isReadOnly: Bool, in place: String) throws(EngineFailure) -> LentDisk {
    guard isSystem else { return LentDisk(path: found.path, user: EngineUser.own) }
    guard order.user == 0 else {
      return LentDisk(path: found.path, user: EngineUser(of: order.user, order.group))
    }
    guard let number = NobodysNumber.ofThisMachine.find(for: order.number) else {
      throw EngineFailure(.EAGAIN, "no number is left that nobody has, as whom a program could serve it")
    }
    let user = EngineUser(nobody: number, accounts: place + "/passwd")
    let lent = try lend(found, to: user, isReadOnly: isReadOnly, in: place)
    try attempt(Self.noName) { () throws(Errno) in try noteName(of: user, in: place) }
    try introduce(user)
    return lent
  }

  /// A device of its own that is the disk that was found: by its path there may be another one by now.
  func lend(
    _ found: FoundDisk, to user: EngineUser, isReadOnly: Bool, called name: String? = nil, in place: String
  ) throws(EngineFailure) -> LentDisk {
    let why = { (error: Errno) -> String in
      error == .EBUSY ? "\(found.path) is in use already" : "\(found.path) can't be lent: \(error.message)"
    }
    return try attempt(why) { () throws(Errno) in
      var lent = LentDisk(path: place + "/disk", user: user)
      let number = try found.disk.use { (disk) throws(Errno) in
        guard found.isFile else { return try disk.status().st_rdev }
        // From here on the loop device has the lock: a kernel's filesystem may outlive us.
        _ = flock(disk.raw, LOCK_UN)
        let image = try disk.reopened(isReadOnly ? O_RDONLY : O_RDWR)
        try lock(image.fd, isReadOnly: isReadOnly)
        let loop = try LoopDevice.make(of: image.fd, isReadOnly: isReadOnly, called: name)
        let number = try loop.fd.status().st_rdev
        lent.held = SharedFD(loop)
        return number
      }
      try check(mknod(lent.path, S_IFBLK | (isReadOnly ? 0o400 : 0o600), number))
      try check(chown(lent.path, user.uid, user.gid))
      return lent
    }
  }

  private static func noName(_ error: Errno) -> String {
    "the program can't be given a name: \(error.message)"
  }

  /// In this file there is one account, which is no account of the machine's.
  private func noteName(of user: EngineUser, in place: String) throws(Errno) {
    let entry = "insula-volume:x:\(user.uid):\(user.gid)::/:/usr/sbin/nologin\n"
    let directory = try FD.cwd.openFollowing(place, O_RDONLY | O_DIRECTORY)
    let file = try directory.fd.open("passwd", O_WRONLY | O_CREAT | O_EXCL, mode: 0o644)
    try file.fd.writeAll(entry.utf8)
  }

  /// Gives a user that no account is a name in this namespace: programs want to know as whom they run.
  ///
  /// Whoever renames another file to `/etc/passwd`, as useradd does, takes the name away again: the kernel
  /// unmounts what is mounted over a file that is replaced, in every namespace.
  func introduce(_ user: EngineUser) throws(EngineFailure) {
    guard let accounts = user.accounts else { return }
    try attempt(Self.noName) { () throws(Errno) in
      var tries = 0
      // The file may be replaced in this moment.
      while mount(accounts, "/etc/passwd", nil, UInt(MS_BIND), nil) != 0 {
        tries += 1
        guard Errno.last == .ENOENT, tries < 20 else { throw .last }
        poll(nil, 0, 5)
      }
    }
  }

  func makeMountPoint(_ path: String, _ user: EngineUser) throws(EngineFailure) {
    guard isSystem else { return }
    try attempt({ "no place can be made to mount it: \($0.message)" }) { () throws(Errno) in
      try check(mkdir(path, 0o700))
      try check(chown(path, user.uid, user.gid))
    }
  }
}
