// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// A program that serves a filesystem, from its start to its end.
final class EngineRun {
  private let program: EngineProgram
  private let user: EngineUser
  private let place: String
  private let isSystem: Bool
  private let daemon: FD
  private let process: EngineProcess
  /// By which its mounts are decided about.
  private let mounts: InterceptedMounts
  private var output = EngineOutput()
  private let uploads: UploadCount?
  private var root: SharedFD?
  /// It mounts once.
  private var hasMounted = false
  /// By which the kernel is told that nobody answers any more, whoever has the connection by now.
  private var abort: SharedFD?
  /// The kernel's directory about the connection.
  private var controls: SharedFD?

  init(
    _ program: EngineProgram, _ user: EngineUser, _ input: EngineInput?, holding lock: SharedFD?,
    at place: String, isSystem: Bool, _ daemon: FD
  ) throws(Errno) {
    (self.program, self.user, self.place, self.isSystem) = (program, user, place, isSystem)
    self.daemon = daemon
    uploads = program.uploads.map { UploadCount($0, for: user) }
    let ends = try Pairs.messages()
    let mine = OwnedFD(owning: ends.mine.raw)
    do {
      let theirs = OwnedFD(owning: ends.theirs.raw)
      process = try EngineProcess(
        program, as: user, input, holding: lock, becomes: isSystem, intercepting: theirs.fd)
    }
    // It comes before the program starts, or never.
    guard try mine.fd.waitUntilReadable(milliseconds: 10_000),
      let listener = try LocalSocket.receive(from: mine.fd, limit: 1)?.descriptor
    else { throw .EPERM }
    mounts = InterceptedMounts(OwnedFD(owning: listener.raw))
  }

  /// Why it has ended, in its own words.
  var reason: String {
    let said = output.text
    return said.isEmpty ? "\(program.name) has ended" : "\(program.name) says: \(said)"
  }

  // MARK: Until it serves

  /// Returns when the program answers at the root of its filesystem.
  func waitUntilMounted(milliseconds: UInt64) throws(EngineFailure) {
    let start = monotonicNanoseconds()
    var probe: Probe?
    defer { probe?.end() }
    while true {
      let events = wait(milliseconds: 50, besides: probe?.ended)
      if events.contains(.daemon) { throw failure(.ECONNABORTED, "nobody waits for it any more") }
      let others = probe.map { [$0.pid] } ?? []
      if events.contains(.ended), let status = (try? process.follow(besides: others)) ?? nil {
        // It had said something, or has not been able to.
        output.read(process.words)
        let code = clx_exit_status(status)
        if let known = program.meaning(ofEnd: code, saying: output.text) {
          throw failure(known.error, known.reason)
        }
        throw failure(
          .EIO, output.text.isEmpty ? "\(program.name) \(SignalName.end(ofWaitStatus: status))" : reason)
      }
      if let asked = probe, events.contains(.probed) {
        if asked.hasSucceeded() { return }
        // It may be about to end, and will have said why.
        probe = nil
        pause()
      }
      if root != nil, probe == nil { probe = startProbe() }
      guard monotonicNanoseconds() &- start < milliseconds * 1_000_000 else {
        throw failure(.ETIMEDOUT, "\(program.name) did not begin to serve it in time\(output.asReason)")
      }
    }
  }

  private func failure(_ error: Errno, _ reason: String) -> EngineFailure {
    takeMountAway()
    end(isHurried: true)
    return EngineFailure(error, reason)
  }

  /// Has the program end, and with it the connection: the program may have given that to others.
  private func end(isHurried: Bool) {
    if isHurried { abortConnection() }
    process.end(isHurried: isHurried)
    abortConnection()
    process.endAll()
  }

  private func abortConnection() {
    guard let abort else { return }
    _ = try? abort.use { (abort) throws(Errno) in try abort.writeAll("1".utf8) }
  }

  /// A process that asks the program once, and ends well if it answers.
  private struct Probe {
    let pid: Int32
    let ended: SharedFD

    /// It has ended.
    func hasSucceeded() -> Bool {
      var status: Int32 = 0
      return waitpid(pid, &status, 0) == pid && clx_exit_status(status) == 0
    }

    func end() { _ = kill(pid, SIGKILL) }
  }

  private func startProbe() -> Probe? {
    guard let root else { return nil }
    let child = clx_fork()
    if child == 0 {
      let isAnswered = (try? root.use { (root) throws(Errno) in try root.status() }) != nil
      _exit(isAnswered ? 0 : 1)
    }
    guard child > 0, let probe = try? ProcessID.open(child) else { return nil }
    return Probe(pid: child, ended: SharedFD(probe))
  }

  // MARK: What it mounts

  private func decide() {
    guard let call = try? mounts.next() else { return }
    do throws(Errno) {
      guard !hasMounted, let theirs = connection(of: call) else { throw .EPERM }
      hasMounted = true
      let ours = isSystem ? try mountForProgram() : try mountByHelper()
      // glusterfs has a process of its own mount, and serves by what it has kept open. All others mount
      // themselves, and need not let us look into them.
      try? mounts.join(theirs, of: call, to: ours.fd)
      try mounts.replace(theirs, of: call, by: ours.fd)
      mounts.answer(call, nil)
    } catch {
      mounts.answer(call, error)
    }
  }

  private func mountForProgram() throws(Errno) -> OwnedFD {
    let made = try Mount.forProgram(
      of: user.uid, user.gid, source: Self.source, [.noSetUserID, .noDevices])
    let over = try FD.cwd.openFollowing(place, pathOnly | O_DIRECTORY)
    try made.mount.use { (mount) throws(Errno) in try mount.attach(over: over.fd) }
    root = made.mount
    openControls()
    return made.takeConnection()
  }

  private func mountByHelper() throws(Errno) -> OwnedFD {
    let options = ["fsname=\(Self.source)", "nosuid", "nodev"]
    let connection = try Mount.throughHelper(at: place, options: options)
    root = SharedFD(try FD.cwd.openFollowing(place, pathOnly | O_DIRECTORY))
    openControls()
    return connection
  }

  /// Opens the kernel's files about the connection, if we have those.
  private func openControls() {
    guard let device = try? root?.use({ (root) throws(Errno) in try root.deviceInMemory() }) else { return }
    var connections = "/sys/fs/fuse/connections"
    if isSystem {
      // Where we see it, and nobody else.
      connections = place + "-connections"
      guard mkdir(connections, 0o700) == 0, mount("fusectl", connections, "fusectl", 0, nil) == 0 else {
        return
      }
    }
    let own = "\(connections)/\(device.minor)"
    guard let found = try? FD.cwd.openFollowing(own, O_RDONLY | O_DIRECTORY) else { return }
    if let file = try? found.fd.open("abort", O_WRONLY) { abort = SharedFD(file) }
    controls = SharedFD(found)
  }

  /// Whether the program has not answered all that it was asked; true where that can't be told.
  private var owesAnswers: Bool {
    // It is read once each time that it is opened.
    let text = try? controls?.use { (controls) throws(Errno) in
      let file = try controls.open("waiting", O_RDONLY)
      return try file.fd.readToEnd(limit: 24)
    }
    return text?.first != UInt8(ascii: "0")
  }

  private static let source = "insula-volume"

  /// The descriptor by which the program, or a helper of its own, wants to serve what it mounts.
  private func connection(of call: InterceptedMounts.Call) -> Int32? {
    try? ThreadIdentity.with(uid: user.uid, gid: user.gid, lasting: false) { () throws(Errno) in
      InterceptedMounts.descriptors(of: call.thread, at: "/dev/fuse").first
    }
  }

  // MARK: While it serves

  /// Lets `body` pass the root on, and keeps nothing that would hold the filesystem.
  func handOverMount(_ body: (FD) -> Void) {
    if let root { body(FD(root.number)) }
    root = nil
    if !isSystem { unmount() }
  }

  private func takeMountAway() {
    unmount()
    guard !isSystem else { return }
    _ = unlink(place + Self.programsFile)
    _ = rmdir(place)
  }

  /// Takes the mount away from its place.
  ///
  /// The place stays: gocryptfs answers before it has opened a file of its own there, and would end if that
  /// were not possible.
  private func unmount() {
    if isSystem {
      _ = umount2(place, CLX_MNT_DETACH)
    } else {
      MountHelper.Serving.unmountLazily(place)
    }
  }

  /// What gocryptfs makes in its mount, or in the directory if that is gone already.
  private static let programsFile = "/.go-fuse-epoll-hack"

  /// Returns when it has ended, by itself or because the daemon wants that.
  func watch() {
    // Until when the daemon waits for uploads.
    var asked: UInt64?
    while true {
      let events = wait(
        milliseconds: asked == nil ? -1 : 100, besides: asked == nil ? nil : uploads?.answer)
      if let end = asked, tellOfUploads(until: end) { asked = nil }
      if events.contains(.ended), hasEnded() {
        output.read(process.words)
        takeMountAway()
        return end(isHurried: true)
      }
      if events.contains(.daemon) {
        let word = (try? LocalSocket.receive(from: daemon, limit: 2, takesDescriptor: false)) ?? nil
        if let bytes = word?.bytes, bytes.count == 2 {
          // Counting takes a moment.
          uploads?.startOver()
          asked = monotonicNanoseconds() + UInt64(max(1, bytes[1])) * 1_000_000_000
          continue
        }
        if word?.bytes == MountHelper.endIfOwing, !owesAnswers { continue }
        if word == nil { awaitUploads() }
        takeMountAway()
        return end(isHurried: word != nil)
      }
    }
  }

  // MARK: Uploads

  /// For how long a program goes on with them that is to end.
  private static let uploadSeconds: UInt64 = 60

  /// Says how many files are not uploaded, if it is time to.
  private func tellOfUploads(until end: UInt64) -> Bool {
    let count = uploads.map { $0.look() } ?? 0
    guard count == 0 || monotonicNanoseconds() >= end else { return false }
    let files =
      switch count {
      case 1: "1 file is"
      case let count?: "\(count) files are"
      case nil: "it can't be told how many files are"
      }
    let what = "\(files) not uploaded yet, and kept in \(program.uploads?.path ?? "")"
    let report = count == 0 ? EngineReport() : EngineReport(.EAGAIN, what)
    _ = try? LocalSocket.send(report.bytes[...], to: daemon)
    uploads?.startOver()
    return true
  }

  /// As the program ends with its mount, whatever it has to bring away.
  private func awaitUploads() {
    guard let uploads else { return }
    uploads.startOver()
    let end = monotonicNanoseconds() + Self.uploadSeconds * 1_000_000_000
    while uploads.look() != 0, monotonicNanoseconds() < end {
      output.read(process.words)
      guard (try? process.hasEnded(milliseconds: 20)) == false else { return }
    }
  }

  /// Whether nobody serves it any more.
  private func hasEnded() -> Bool {
    do throws(Errno) {
      return try process.follow(besides: uploads?.processes ?? []) != nil
    } catch {
      return true
    }
  }

  private struct Events: OptionSet {
    let rawValue: UInt8
    static let daemon = Events(rawValue: 1)
    static let ended = Events(rawValue: 2)
    static let probed = Events(rawValue: 4)
  }

  /// Waits until something happens; what the program says is read, and what it mounts decided.
  private func wait(milliseconds: Int32, besides probe: SharedFD?) -> Events {
    var set = [
      daemon.raw, process.ended.number, probe?.number ?? -1, mounts.fd.raw,
      output.isOver ? -1 : process.words.number,
    ].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    guard poll(&set, nfds_t(set.count), milliseconds) > 0 else { return [] }
    let ready = set.map { $0.revents != 0 }
    if ready[4] { output.read(process.words) }
    if ready[3] {
      if set[3].revents & Int16(POLLIN) != 0 { decide() } else { pause() }
    }
    var events: Events = []
    if ready[0] { events.insert(.daemon) }
    if ready[1] { events.insert(.ended) }
    if ready[2] { events.insert(.probed) }
    return events
  }

  /// Nobody is left whose mounts could be decided about; the end of the program is about to be seen.
  private func pause() { poll(nil, 0, 20) }
}
