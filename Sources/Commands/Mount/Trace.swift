// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Daemon
internal import Fuse
internal import LinuxIO

/// `insula trace`.
struct TraceCommand: Command {
  static let description = CommandDescription(
    name: "trace", summary: "Runs a command, and counts what it requests of a mounted store's daemon.",
    arguments: [
      .init(
        name: "COMMAND", help: "a command with its arguments", isRequired: true, kind: .program,
        isRepeated: true, mayBeEmpty: true)
    ],
    options: [
      .init(
        name: "store", value: "STORE", help: "the store or its mount (default: as for 'insula mount')",
        kind: .directory),
      .init(
        name: "output", short: "o", value: "FILE", help: "write to this file, not to standard error",
        kind: .file),
      CommandDescription.json,
    ],
    details: [
      """
      Shows how many requests of each kind the kernel has sent for COMMAND and all that it starts, and how
      long the daemon served them; what the kernel answers by itself does not appear. Some requests have no
      sender: files that are closed, nodes that are forgotten, pages that are written back. They are listed
      apart, and include those of other programs.
      """,
      "The exit status is that of COMMAND; 127 if it can't be started.",
      "If COMMAND has options of its own, write '--' before it.",
    ],
    examples: ["insula trace -- ls -lR ~/Insula/Users", "insula trace -o counts.json --json -- make -j2"])

  private let command: [String]
  private let store: String?
  private let output: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    command = arguments.positional
    if command.first?.isEmpty == true { throw Self.description.error("COMMAND is empty") }
    store = arguments.value("store")
    output = arguments.value("output")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let daemon = try DaemonSearch.require(store, context)
    let shown = try output.map { try Self.console(writingTo: $0, context) } ?? context.console.aside
    // Who loses its parent is still one of ours. Corresponds to `prctl(2)` with PR_SET_CHILD_SUBREAPER.
    _ = clx_prctl(36, 1)
    let client = try begin(daemon.client)
    let end: Subprocess.End
    do {
      end = try Subprocess.runAsOurselves(command, context)
    } catch {
      context.console.note("can't run \(command[0]): \(error.message)")
      return .program(127)
    }
    show(try report(client), shown)
    switch end {
    case .exited(let code): return .program(code)
    case .signalled(let signal): return .program(128 + signal)
    }
  }

  private static let patience: Int32 = 10_000

  /// Has the daemon count, and gives the conversation in which it does.
  private func begin(_ client: ControlClient) throws -> ControlClient {
    let answer: (reply: ControlReply, client: ControlClient)
    do throws(Errno) {
      answer = try client.askAgain(.trace, milliseconds: Self.patience)
    } catch {
      throw CommandFailure(error, "can't trace: the daemon does not answer (\(error.message)); try again")
    }
    if case .failure(let failure) = answer.reply {
      throw CommandFailure(.failed, "can't trace: \(failure.message)")
    }
    return answer.client
  }

  private func report(_ daemon: ControlClient) throws -> RequestReport {
    let reply: ControlReply
    do throws(Errno) {
      reply = try daemon.ask(.traced, milliseconds: Self.patience)
    } catch {
      throw CommandFailure(
        .failed, "the daemon was replaced or has ended meanwhile, and what it counted is lost; try again")
    }
    switch reply {
    case .requests(let report): return report
    case .failure(let failure): throw CommandFailure(.failed, "can't trace: \(failure.message)")
    default: throw CommandFailure(.failed, "the daemon has given an answer to another question")
    }
  }

  /// Opened before the command runs, so that nothing is counted in vain.
  private static func console(writingTo path: String, _ context: Context) throws -> Console {
    let file = SharedFD(try TraceOutput.open(path, context))
    return Console(
      output: { bytes in
        _ = try? file.use { (fd) throws(Errno) in try fd.writeAll(bytes) }
      }, errors: { _ in })
  }

  private func show(_ report: RequestReport, _ console: Console) {
    if json { return console.print(json: report) }
    let own = report.own.inOrder { ($1.value.count, $0.key) < ($0.value.count, $1.key) }
    let total = RequestTally(
      count: own.reduce(0) { $0 &+ $1.value.count }, nanoseconds: own.reduce(0) { $0 &+ $1.value.nanoseconds }
    )
    console.print(
      table: [["requests", "served in", "each", "kind"]] + own.map(Self.row)
        + [Self.row((key: "in all", value: total))])
    guard !report.kernels.isEmpty else { return }
    console.print("and by the kernel itself, for all programs:")
    console.print(table: report.kernels.inOrder { $0.key < $1.key }.map(Self.row))
  }

  private static func row(_ kind: (key: String, value: RequestTally)) -> [String] {
    let microseconds = kind.value.nanoseconds / 1000
    let each = microseconds / max(kind.value.count, 1)
    return ["\(kind.value.count)", "\(microseconds / 1000) ms", "\(each) µs", kind.key]
  }
}
