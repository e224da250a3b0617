// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

// The process that mounts.

extension MountHelper {
  struct Serving {
    /// Where the whole tree is mounted.
    let mountPoint: String
    /// Whether the daemon is root's, and serves many users; then mounts are made without `fusermount3`.
    let isSystem: Bool
    let rehearsal: Rehearsal

    /// How long a request may take: a path may lead through a user's own filesystem, which need not answer.
    static let seconds: Int32 = 5
    /// How many requests of one user are carried out at once.
    private static let mostOfOne = 3
    /// How many filesystems are served for one user; a daemon has its own, smaller limit for volumes.
    private static let mostEngines = 300
    static let firstFree = STDERR_FILENO + 1
    /// As the mount table shows it.
    private static let source = "insula-files"

    func run(_ daemon: FD) -> Never {
      guard (try? Self.holdNothingElse(than: daemon)) != nil else { _exit(1) }
      if isSystem { guard (try? Self.giveUpRights()) != nil else { _exit(1) } }
      let socket = FD(Self.firstFree)
      // What engines leave is ours (PR_SET_CHILD_SUBREAPER).
      _ = clx_prctl(36, 1)
      var children: [(pid: Int32, user: UInt32)] = []
      var engines: [(pid: Int32, user: UInt32)] = []
      while let message = try? LocalSocket.receive(from: socket, limit: Request.mostBytes) {
        let request = Request(message.bytes)
        if case .removeTree(let lazily)? = request {
          let errors = message.descriptor ?? FD(STDERR_FILENO)
          answer(socket) { () throws(Errno) in
            try Self.unmount(mountPoint, lazily: lazily, errors: errors)
            return nil
          }
        } else if case .engine(let order)? = request, let asker = message.descriptor {
          engines.removeAll { waitpid($0.pid, nil, WNOHANG) != 0 }
          Self.endWhatIsLeft(besides: (engines + children).map(\.pid))
          let isTooMany = engines.count { $0.user == order.user } >= Self.mostEngines
          let child = isTooMany ? -1 : clx_fork()
          if child == 0 {
            // It goes on without us, and must not pass for us.
            _ = close(socket.raw)
            EngineSupervisor(order: order, isSystem: isSystem, daemon: asker).run()
          }
          if child > 0 { engines.append((child, order.user)) }
          if child < 0 { _ = try? Self.send(EngineReport(.EAGAIN, "there are too many").bytes, to: asker) }
        } else if let request, let user = request.user, let asker = message.descriptor {
          children.removeAll { waitpid($0.pid, nil, WNOHANG) != 0 }
          // Who waits for a filesystem that does not answer may not even end.
          let isTooMany = children.count { $0.user == user } >= Self.mostOfOne
          let child = isTooMany ? -1 : clx_fork()
          if child == 0 {
            _ = close(socket.raw)
            answerApart(request, asker)
          }
          if child > 0 { children.append((child, user)) }
          if child < 0 { answer(asker) { () throws(Errno) in throw .EAGAIN } }
        }
        if let descriptor = message.descriptor { _ = close(descriptor.raw) }
      }
      _exit(0)
    }

    /// Has programs end whose engine was killed: one in the background does not end with it.
    private static func endWhatIsLeft(besides known: [Int32]) {
      for process in EngineProcess.children() where !known.contains(process) {
        if waitpid(process, nil, WNOHANG) == 0 { _ = kill(process, SIGTERM) }
      }
    }

    private struct Mounted {
      let connection: SharedFD
      let device: DeviceNumber
    }

    private func answerApart(_ request: Request, _ asker: FD) -> Never {
      // Programs are given a moment to end.
      let seconds =
        switch request {
        case .rehearse: Rehearsal.seconds + 3
        case .browse: Self.seconds + 3
        default: Self.seconds
        }
      alarm(UInt32(seconds))
      answer(asker) { () throws(Errno) in
        switch request {
        case .mount(let user, let group, let path): return try mount(for: user, group, at: path)
        case .remove(let device, let user, let group): try remove(device, of: user, group)
        case .browse: return Mounted(connection: try browse(), device: DeviceNumber(major: 0, minor: 0))
        case .rehearse: try rehearsal.run(asker)
        case .removeTree, .engine: break
        }
        return nil
      }
      _exit(0)
    }

    /// A file with what is announced.
    private func browse() throws(Errno) -> SharedFD {
      let bytes = ServiceBrowser(isSystem: isSystem).run()
      let ends = try pipe()
      // It holds as much as that without anybody reading it.
      try ends.write.fd.writeAll(bytes)
      return SharedFD(ends.takeRead())
    }

    private func answer(_ asker: FD, _ body: () throws(Errno) -> Mounted?) {
      do throws(Errno) {
        guard let mounted = try body() else { return try Self.send(Answer.bytes(nil), to: asker) }
        try mounted.connection.use { (connection) throws(Errno) in
          try Self.send(Answer.bytes(nil, mounted.device), with: connection, to: asker)
        }
      } catch {
        try? Self.send(Answer.bytes(error), to: asker)
      }
    }

    private static func send(_ bytes: [UInt8], with descriptor: FD? = nil, to socket: FD) throws(Errno) {
      _ = try LocalSocket.send(bytes[...], with: descriptor, to: socket)
    }

    // MARK: Mounts of users

    private func mount(for user: UInt32, _ group: UInt32, at path: String) throws(Errno) -> Mounted {
      guard isSystem else {
        let options = ["fsname=\(Self.source)", "subtype=insula", "nosuid", "nodev"]
        let connection = SharedFD(try Mount.throughHelper(at: path, options: options))
        let top = try open(path, as: user, group)
        return Mounted(connection: connection, device: try top.fd.deviceInMemory())
      }
      // Root's directories are others' too.
      guard user != 0 else { throw .EPERM }
      let directory = try open(path, as: user, group)
      try check(directory.fd, isOf: user)
      let made = try Mount.detached(for: user, group, source: Self.source, [.noDevices, .noSetUserID])
      let mount = made.mount
      let device = try mount.use { (mount) throws(Errno) in
        try mount.attach(over: directory.fd)
        return try mount.deviceInMemory()
      }
      return Mounted(connection: SharedFD(made.takeConnection()), device: device)
    }

    private func remove(_ device: DeviceNumber, of user: UInt32, _ group: UInt32) throws(Errno) {
      // Its directory may have got another path, and nothing else is to be taken away.
      let mounts = try MountTable.current().entries
      guard let mount = mounts.last(where: { $0.device == device && $0.source == Self.source })
      else { return }
      let top = try open(mount.mountPoint, as: user, group)
      guard try top.fd.deviceInMemory() == device else { throw .EINVAL }
      guard isSystem else {
        return try Self.unmount(mount.mountPoint, lazily: true, errors: FD(STDERR_FILENO))
      }
      // What was opened and looked at, wherever its path leads by now.
      try Mount.removeLazily(top.fd)
    }

    /// Opens a directory that may be a mount whose daemon is dead, as its user could.
    private func open(_ path: String, as user: UInt32, _ group: UInt32) throws(Errno) -> OwnedFD {
      guard isSystem else { return try FD.cwd.openWithoutLinks(path, pathOnly | O_DIRECTORY) }
      return try ThreadIdentity.with(uid: user, gid: group, lasting: false) { () throws(Errno) in
        try FD.cwd.openWithoutLinks(path, pathOnly | O_DIRECTORY)
      }
    }

    /// Whether a user may hide what is in a directory: it is theirs to change, and on a disk.
    ///
    /// A process has directories too, which others read to learn about it.
    private func check(_ directory: FD, isOf user: UInt32) throws(Errno) {
      guard Self.kinds.contains(try directory.filesystemKind().name) else { throw .EBUSY }
      let status = try directory.status()
      guard status.st_uid == user, status.st_mode & S_IRWXU == S_IRWXU else { throw .EACCES }
    }

    private static let kinds: Set = [
      "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "zfs", "tmpfs", "overlay", "nfs", "cifs", "smb2", "ceph",
    ]

    // MARK: The process

    /// Neither the store's lock nor the pipe to who waits for the daemon; and whoever has taken the daemon
    /// over can't write into this process (PR_SET_DUMPABLE).
    private static func holdNothingElse(than socket: FD) throws(Errno) {
      try LinuxIO.check(clx_prctl(4, 0))
      "insula-mounts".withCString { _ = clx_prctl(15, UInt(bitPattern: $0)) }
      let nowhere = try FD.cwd.openFollowing("/dev/null", O_RDWR).release()
      // Where it lies may be one of those that are about to be something else.
      let kept = try LinuxIO.check(fcntl(socket.raw, F_DUPFD_CLOEXEC, firstFree + 1))
      for stream in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] {
        try LinuxIO.check(dup2(nowhere.raw, stream))
      }
      try LinuxIO.check(clx_dup3(kept, firstFree, O_CLOEXEC))
      try LinuxIO.check(clx_close_range(UInt32(firstFree) + 1, UInt32.max, 0))
    }

    /// Root's helper mounts, and looks at paths as their users: CAP_SETGID, CAP_SETUID and CAP_SYS_ADMIN.
    ///
    /// It opens disks that are others' files (CAP_DAC_OVERRIDE), lends them to programs (CAP_MKNOD,
    /// CAP_CHOWN), and ends those (CAP_KILL).
    private static func giveUpRights() throws(Errno) {
      try LinuxIO.check(clx_thread_setgroups(0, nil))
      let kept: [UInt64] = [0, 1, 5, 6, 7, 21, 27]
      try LinuxIO.check(clx_keep_capabilities(kept.reduce(0) { $0 | 1 << $1 }))
    }

    /// Takes a mount of an ordinary user's away; who uses it may finish.
    static func unmountLazily(_ path: String) {
      guard let nowhere = try? FD.cwd.openFollowing("/dev/null", O_WRONLY) else { return }
      try? unmount(path, lazily: true, errors: nowhere.fd)
    }

    private static func unmount(_ path: String, lazily: Bool, errors: FD) throws(Errno) {
      let words = ["fusermount3", "-u"] + (lazily ? ["-z"] : []) + ["--", path]
      let child = try start("fusermount3", words, errors: errors)
      var status: Int32 = 0
      try retrying { waitpid(child, &status, 0) }
      guard clx_exit_status(status) == 0 else { throw .EBUSY }
    }

    /// Starts a program, known by its path or found by its name.
    static func start(_ program: String, _ words: [String], errors: FD) throws(Errno) -> pid_t {
      var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
      defer { for argument in arguments { free(argument) } }
      var actions = posix_spawn_file_actions_t()
      posix_spawn_file_actions_init(&actions)
      defer { posix_spawn_file_actions_destroy(&actions) }
      posix_spawn_file_actions_adddup2(&actions, errors.raw, STDERR_FILENO)
      var child = pid_t()
      let error = posix_spawnp(&child, program, &actions, nil, &arguments, environ)
      guard error == 0 else { throw Errno(error) }
      return child
    }
  }
}
