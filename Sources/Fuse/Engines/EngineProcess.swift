// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// As whom a program runs.
struct EngineUser {
  let uid: UInt32
  let gid: UInt32
  let environment: [String]
  /// The file that names it instead of the machine's, if it is nobody that the machine knows.
  let accounts: String?

  /// Somebody that the machine knows, or root.
  init(of user: UInt32, _ group: UInt32) {
    let account = Account.numbered(user)
    uid = user
    gid = account?.gid ?? group
    environment = [
      "PATH=" + EngineProgram.searchPath, "LANG=C.UTF-8", "HOME=" + (account?.home ?? "/"),
      "USER=" + (account?.name ?? "\(user)"), "LOGNAME=" + (account?.name ?? "\(user)"),
    ]
    (name, accounts) = (account?.name, nil)
  }

  /// Nobody, by a number that nobody has.
  init(nobody number: UInt32, accounts: String) {
    (uid, gid) = (number, number)
    environment = ["PATH=" + EngineProgram.searchPath, "LANG=C.UTF-8", "HOME=/"]
    (name, self.accounts) = (nil, accounts)
  }

  /// Whoever we are, with all that our environment has.
  static var own: EngineUser {
    var variables: [String] = []
    var next = environ
    while let variable = next.pointee {
      let text = String(cString: variable)
      if !text.hasPrefix("PATH=") && !text.hasPrefix("LANG=") { variables.append(text) }
      next += 1
    }
    return EngineUser(
      uid: ProcessID.user, gid: ProcessID.group,
      environment: variables + ["PATH=" + EngineProgram.searchPath, "LANG=C.UTF-8"])
  }

  private init(uid: UInt32, gid: UInt32, environment: [String]) {
    (self.uid, self.gid, self.environment) = (uid, gid, environment)
    (name, accounts) = (nil, nil)
  }

  fileprivate let name: String?

  func value(of variable: String) -> String? {
    environment.first { $0.hasPrefix(variable + "=") }.map { String($0.dropFirst(variable.utf8.count + 1)) }
      .flatMap { $0.isEmpty ? nil : $0 }
  }
}

/// What a program is handed that decrypts.
struct EngineInput {
  /// In which its files are: descriptor 3 of the program.
  let directory: SharedFD
  /// A pipe, which is its standard input; nothing is left in it once it is read.
  let password: SharedFD
  /// Where its configuration is if the files are on a disk of their own: descriptor 4.
  let configuration: SharedFD?

  static let directoryNumber: Int32 = 3
  static let configurationNumber: Int32 = 4
  /// Files that are hostile may ask for more to be allocated than there is.
  private static let mostMemory: UInt = 2 << 30

  /// Takes the place of this process's descriptors, which are to be closed when the program starts.
  fileprivate func take() throws(Errno) {
    try check(dup2(password.number, STDIN_FILENO))
    // Neither may lie where the other one goes.
    let moved = try [directory, configuration].map { (given) throws(Errno) in
      try given.map { (given) throws(Errno) in try check(fcntl(given.number, F_DUPFD_CLOEXEC, 10)) }
    }
    for (from, to) in zip(moved, [Self.directoryNumber, Self.configurationNumber]) {
      if let from { try check(dup2(from, to)) }
    }
    // The one limit at which the kernel makes no dump, as a file or for a program: it would have keys.
    var (noDump, memory) = (rlimit(rlim_cur: 1, rlim_max: 1), rlimit())
    (memory.rlim_cur, memory.rlim_max) = (Self.mostMemory, Self.mostMemory)
    try check(setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &noDump))
    try check(setrlimit(__rlimit_resource_t(RLIMIT_DATA.rawValue), &memory))
  }
}

/// A program that was started by us, and the processes that it has left in its place.
final class EngineProcess {
  /// 0 once nothing is there any more that could be signalled.
  private var pid: Int32
  /// Readable when that process has ended.
  private(set) var ended: SharedFD
  /// What it says.
  let words: SharedFD

  /// Starts a program as someone; `socket` is for the descriptor by which its mounts are decided about, if
  /// they are to be, and `lock` stays open in it.
  ///
  /// The process has one thread.
  init(
    _ program: EngineProgram, as user: EngineUser, _ input: EngineInput?, holding lock: SharedFD? = nil,
    becomes: Bool, intercepting socket: FD?
  ) throws(Errno) {
    // What it leaves behind is ours (PR_SET_CHILD_SUBREAPER).
    try check(clx_prctl(36, 1))
    let ends = try pipe()
    try ends.read.fd.setNonBlocking()
    let output = ends.write.fd
    let child = clx_fork()
    if child == 0 { Self.become(program, user, input, lock, becomes, socket, output) }
    let failure = Errno.last
    pid = child
    words = SharedFD(ends.takeRead())
    guard child > 0 else { throw failure }
    ended = SharedFD(try ProcessID.open(child))
  }

  private static func become(
    _ program: EngineProgram, _ user: EngineUser, _ input: EngineInput?, _ lock: SharedFD?,
    _ becomes: Bool, _ socket: FD?, _ output: FD
  ) -> Never {
    setsid()
    do throws(Errno) {
      let nowhere = try FD.cwd.openFollowing("/dev/null", O_RDONLY).release()
      try check(dup2(nowhere.raw, STDIN_FILENO))
      try check(dup2(output.raw, STDOUT_FILENO))
      try check(dup2(output.raw, STDERR_FILENO))
      try check(chdir("/"))
      if becomes { EngineShare.limit() }
      if becomes, user.uid != 0 {
        // Root's session has keys. Who possesses a keyring may read them, whoever they are by now.
        try check(clx_join_new_session_keyring())
        if let name = user.name {
          try name.withName { (name) throws(Errno) in _ = try check(clx_initgroups(name.bytes, user.gid)) }
        } else {
          try check(clx_thread_setgroups(0, nil))
        }
        try check(clx_become(user.uid, user.gid))
      } else if input != nil || becomes && socket != nil {
        // Root's that serves has no rights either, but for what is root's own: none come back when a program
        // is started.
        try check(clx_keep_capabilities(0))
      }
      // It does not outlive us, and brings its data away first (PR_SET_PDEATHSIG). Another user has to ask
      // for that again.
      try check(clx_prctl(1, UInt(SIGTERM)))
      if let socket {
        let listener = try InterceptedMounts.begin()
        _ = try LocalSocket.send([0], with: listener.fd, to: socket)
      }
      let closeOnExec: UInt32 = 1 << 2
      try check(clx_close_range(UInt32(STDERR_FILENO) + 1, UInt32.max, closeOnExec))
      if let lock { try check(fcntl(lock.number, F_SETFD, 0)) }
      try input?.take()
      var none = sigset_t()
      sigemptyset(&none)
      try check(sigprocmask(SIG_SETMASK, &none, nil))
      for signal in [SIGPIPE, SIGCHLD, SIGTERM, SIGINT, SIGHUP] { _ = Glibc.signal(signal, SIG_DFL) }
      let words: [UnsafeMutablePointer<CChar>?] = ([program.path] + program.words).map { strdup($0) } + [nil]
      let variables: [UnsafeMutablePointer<CChar>?] = user.environment.map { strdup($0) } + [nil]
      _ = execve(program.path, words, variables)
      throw .last
    } catch {
      let text = Array("can't be started: \(error.message)\n".utf8)
      _ = text.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
    _exit(127)
  }

  /// Waits for its end; false when the time is over.
  func hasEnded(milliseconds: Int32) throws(Errno) -> Bool {
    try ended.use { (fd) throws(Errno) in try fd.waitUntilReadable(milliseconds: milliseconds) }
  }

  /// The one that has ended has left another one in its place, as programs do that go to the background;
  /// else its status.
  ///
  /// `others` are processes of ours that are none of the program's.
  func follow(besides others: [Int32] = []) throws(Errno) -> Int32? {
    guard pid > 0 else { throw .ESRCH }
    var status: Int32 = 0
    try retrying { waitpid(pid, &status, 0) }
    pid = 0
    guard clx_exit_status(status) == 0, let next = Self.children().first(where: { !others.contains($0) })
    else { return status }
    pid = next
    ended = SharedFD(try ProcessID.open(next))
    return nil
  }

  /// Our processes, those included that others have left.
  static func children() -> [Int32] {
    let own = ProcessID.own
    let text = FD.text(of: "/proc/\(own)/task/\(own)/children", limit: 1 << 16) ?? ""
    return text.split(whereSeparator: \.isWhitespace).compactMap { Int32($0) }
  }

  /// Ends it with all that it has started, and waits for that.
  ///
  /// It learns from the kernel that its filesystem is gone, and may have data to bring away: what it has
  /// acknowledged can still be in its memory. `isHurried` gives it a moment for that.
  func end(isHurried: Bool) {
    guard pid > 0 else { return }
    if !isHurried, (try? hasEnded(milliseconds: 10_000)) == true { return }
    _ = kill(pid, SIGTERM)
    if (try? hasEnded(milliseconds: isHurried ? 2000 : 5000)) == true { return }
    _ = kill(-pid, SIGKILL)
    _ = kill(pid, SIGKILL)
  }

  /// Ends all that it has left: what its own processes leave is ours, until there is none.
  func endAll() {
    for _ in 0..<500 {
      while waitpid(-1, nil, WNOHANG) > 0 {}
      let left = Self.children()
      if left.isEmpty { return }
      for process in left {
        _ = kill(-process, SIGKILL)
        _ = kill(process, SIGKILL)
      }
      poll(nil, 0, 10)
    }
  }
}
