// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// The process that parses, as the one that reads has it: started when it is needed, and once more when it
/// has ended over a file.
final class ItemParserProcess {
  enum Outcome {
    case found(ParseReply)
    /// The process has ended, or was ended since it took too long.
    case lost
    /// There can't be such a process; the reason.
    case impossible(String)
  }

  private let bubblewrap: String
  private let sandbox: ItemParserSandbox
  private let patience: Int32
  private var pid: Int32?
  private var socket: OwnedFD?
  private var lines: ItemLines?

  /// For so long, in milliseconds, one file may take.
  init(_ bubblewrap: String, _ sandbox: ItemParserSandbox, patience: Int32 = 5000) {
    self.bubblewrap = bubblewrap
    self.sandbox = sandbox
    self.patience = patience
  }

  deinit { end() }

  func parse(_ request: ParseRequest, _ file: FD) -> Outcome {
    if lines == nil, let failure = start() { return .impossible(failure) }
    guard let lines else { return .lost }
    do throws(Errno) {
      try lines.send(request, with: file)
      guard let reply = try lines.receive(ParseReply.self, milliseconds: patience) else { throw .EPIPE }
      if let failure = reply.failure {
        // It may be there by the next time.
        end()
        return .impossible(failure)
      }
      return .found(reply)
    } catch {
      end()
      return .lost
    }
  }

  /// Nil when it is there, or why not.
  private func start() -> String? {
    do {
      let ends = try Pairs.streams()
      socket = OwnedFD(owning: ends.mine.raw)
      // It alone has the other end after that, so that its end is seen.
      pid = try spawn(OwnedFD(owning: ends.theirs.raw))
      let lines = ItemLines(ends.mine)
      self.lines = lines
      // It says something when it is there.
      if (try? lines.receive(ParseReply.self, milliseconds: patience)) ?? nil != nil { return nil }
      end()
      return
        "can't start the process that reads for apps: its sandbox can't be made, or \(sandbox.program.path) "
        + "can't be run in it"
    } catch {
      return "can't start the process that reads for apps: \(CommandFailure(error).message)"
    }
  }

  private func spawn(_ socket: consuming OwnedFD) throws -> Int32 {
    // Its standard input is the socket, and ours is nothing.
    let nowhere = OwnedFD(owning: try check(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10)))
    try check(dup2(socket.fd.raw, STDIN_FILENO))
    defer { _ = dup2(nowhere.fd.raw, STDIN_FILENO) }
    var none = sigset_t()
    sigemptyset(&none)
    return try Bubblewrap.start(
      bubblewrap, sandbox.words, environment: [], filter: ItemParserSandbox.filter,
      as: ItemParserSandbox.filterDescriptor, mask: &none)
  }

  private func end() {
    lines = nil
    socket = nil
    if let pid = pid.take() { ChildEnd.force(pid) }
  }
}
