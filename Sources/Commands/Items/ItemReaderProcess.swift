// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Daemon
internal import Glibc
internal import JSON
internal import LinuxIO

/// The process that reads for an app and adds its photos, as `insula run` has it: begun when the app first
/// wants something of that, and ended with `insula run`.
///
/// It is a process since nothing that waits for a disk or for a file of others is to keep `insula run` from
/// what the app and the person want of it; and where the app is the first of a namespace of processes, it
/// can't have threads.
final class ItemReaderProcess {
  private let tree: TreePlace
  private let bubblewrap: String
  private let program: OwnProgram
  /// Of the app's run, whichever process does something for it.
  private let secret = UInt64.random(in: 0 ... .max)
  private var pid: Int32?
  private var socket: OwnedFD?

  private static let longest = 1 << 17

  init(_ tree: TreePlace, bubblewrap: String, _ program: OwnProgram) {
    self.tree = tree
    self.bubblewrap = bubblewrap
    self.program = program
  }

  deinit { end() }

  /// Has something to read when ``take()`` is to be called.
  var fd: FD? { socket?.fd }

  /// Has it read or add something.
  func send(_ task: AgentTask.Question) throws(Errno) {
    if socket == nil { try start() }
    guard let socket = socket?.fd, let bytes = try? JSONText.encode(task) else { throw .EIO }
    do throws(Errno) {
      guard try LocalSocket.send(bytes[...], to: socket) == bytes.count else { throw .EAGAIN }
    } catch {
      end()
      throw error
    }
  }

  /// Has it add what it has copied.
  func confirm() throws(Errno) {
    guard let socket = socket?.fd, try LocalSocket.send(Self.confirmation[...], to: socket) > 0 else {
      throw .EIO
    }
  }

  private static let confirmation: [UInt8] = [1]

  /// What it has read or done; nil if it has ended.
  ///
  /// Where the app's first process is the first of a namespace, the kernel ends this one with it, and tells
  /// nobody of the app's end before this one was waited for. So its end must be looked at at once.
  func take() -> AgentAnswer? {
    guard let socket = socket?.fd,
      let arrived = try? LocalSocket.receive(from: socket, limit: Self.longest, takesDescriptor: false),
      let answer = try? JSONText.decode(AgentAnswer.self, from: arrived.bytes)
    else {
      end()
      return nil
    }
    return answer
  }

  func end() {
    socket = nil
    if let pid = pid.take() { ChildEnd.force(pid) }
  }

  // MARK: The other process

  /// This process has one thread.
  private func start() throws(Errno) {
    let ends = try Pairs.messages()
    socket = OwnedFD(owning: ends.mine.raw)
    let child = clx_fork()
    if child == 0 { serve(ends.theirs) }
    let failure = child < 0 ? Errno.last : nil
    _ = close(ends.theirs.raw)
    pid = child < 0 ? nil : child
    if let failure {
      end()
      throw failure
    }
  }

  /// It has nothing of what the other one has, but for a socket and the way to the tree.
  private func serve(_ socket: FD) -> Never {
    guard let tree = try? holdNothingElse(than: socket) else { _exit(1) }
    let reader = ItemReader(
      tree, ItemParserProcess(bubblewrap, ItemParserSandbox(program: program)))
    let photos = PhotoIntake(tree, secret: secret)
    let ours = FD(Self.firstFree)
    while let arrived = try? LocalSocket.receive(from: ours, limit: Self.longest, takesDescriptor: false),
      let task = try? JSONText.decode(AgentTask.Question.self, from: arrived.bytes)
    {
      let answer: AgentAnswer =
        switch task {
        case .read(let task): reader.answer(task)
        case .add(let task): photos.answer(task) { Self.isConfirmed(over: ours) }
        case .consent, .panel: .dismiss
        }
      guard let bytes = try? JSONText.encode(answer), (try? LocalSocket.send(bytes[...], to: ours)) != nil
      else { break }
    }
    _exit(0)
  }

  /// Waits until what was copied may be added; whoever does not want it ends this process.
  private static func isConfirmed(over socket: FD) -> Bool {
    guard let bytes = try? JSONText.encode(AgentAnswer.copied),
      (try? LocalSocket.send(bytes[...], to: socket)) == bytes.count,
      let arrived = try? LocalSocket.receive(from: socket, limit: longest, takesDescriptor: false)
    else { return false }
    return arrived.bytes == confirmation
  }

  private static let firstFree = STDERR_FILENO + 1

  private func holdNothingElse(than socket: FD) throws(Errno) -> TreePlace {
    // Killed with the one that has started it, and until then at no terminal and in none of its jobs.
    try check(clx_prctl(1, UInt(SIGKILL)))
    _ = setsid()
    "insula-read".withCString { _ = clx_prctl(15, UInt(bitPattern: $0)) }
    var none = sigset_t()
    sigemptyset(&none)
    sigprocmask(SIG_SETMASK, &none, nil)
    let nowhere = try FD.cwd.openFollowing("/dev/null", O_RDWR).release()
    // Where they lie may be one of those that are about to be something else.
    let above = Self.firstFree + 2
    let kept = try check(fcntl(socket.raw, F_DUPFD_CLOEXEC, above))
    let place = try check(fcntl(tree.fd.raw, F_DUPFD_CLOEXEC, above))
    for stream in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] { try check(dup2(nowhere.raw, stream)) }
    try check(clx_dup3(kept, Self.firstFree, O_CLOEXEC))
    try check(clx_dup3(place, Self.firstFree + 1, O_CLOEXEC))
    try check(clx_close_range(UInt32(above), UInt32.max, 0))
    return TreePlace(adopting: FD(Self.firstFree + 1), tree)
  }
}
