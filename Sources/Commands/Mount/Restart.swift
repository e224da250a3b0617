// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import JSON
internal import LinuxIO

/// `insula restart`.
struct RestartCommand: Command {
  static let description = CommandDescription(
    name: "restart", summary: "Has a mounted store served by the installed program, without unmounting it.",
    arguments: [
      .init(
        name: "STORE|MOUNTPOINT", help: "the store or mount (default: as for 'insula mount')",
        kind: .directory)
    ],
    details: [
      """
      Use it after an upgrade of insula. Programs that use the mount see a short pause: their open files,
      locks and working directories stay, and so do running apps. Requests of 'insula' that are being carried
      out, such as an installation, are interrupted and can be made again.
      """,
      """
      If the installed program can't take over from the running one, nothing is stopped (exit code 1): then
      unmount the store and mount it again.
      """,
    ],
    examples: ["sudo insula restart", "systemctl reload insula"])

  /// How long the installed program may take.
  private static let patienceMilliseconds: Int32 = 30_000

  private let place: String?

  init(_ arguments: ParsedArguments) { place = arguments.argument(0) }

  func run(in context: Context) throws -> ExitCode {
    let daemon = try DaemonSearch.require(place, context)
    let name = daemon.status.store
    try ask(daemon)
    let now = try waitForNext(daemon, context)
    let pause = now.counts["lastPauseMilliseconds"].map { " after \($0) ms" } ?? ""
    context.console.say(
      "\(name) is served by insula \(now.counts["version"]?.description ?? "") (pid \(now.pid))\(pause)")
    return .ok
  }

  private func ask(_ daemon: DaemonSearch.Found) throws {
    let reply: ControlReply
    do throws(Errno) {
      reply = try daemon.client.ask(.restart, milliseconds: Self.patienceMilliseconds)
    } catch .ECONNABORTED {
      // The worker has been ended for the next one, which is what was asked for.
      return
    } catch {
      throw CommandFailure(.failed, "can't restart the daemon of \(daemon.status.store): \(error.message)")
    }
    guard case .failure(let failure) = reply else { return }
    throw CommandFailure(
      CommandFailure(failure).code,
      "can't restart the daemon of \(daemon.status.store): \(failure.message)")
  }

  /// The status of the one that serves now: the socket is the same, and answers as soon as there is one.
  private func waitForNext(_ daemon: DaemonSearch.Found, _ context: Context) throws -> DaemonStatus {
    let end = monotonicNanoseconds() &+ UInt64(Self.patienceMilliseconds) * 1_000_000
    var isWaiting = false
    while monotonicNanoseconds() < end {
      guard let client = try? daemon.client.again() else {
        isWaiting = false
        break
      }
      guard case .status(let status)? = try? client.ask(.status, milliseconds: Self.patienceMilliseconds)
      else { continue }
      isWaiting = status.counts["upgradeWaits"] != nil
      guard !isWaiting, status.pid != daemon.status.pid else {
        // It ends for the installed program.
        if let worker = try? ProcessID.open(status.pid) {
          _ = try? worker.fd.waitUntilReadable(milliseconds: 500)
        }
        continue
      }
      guard case .string(let why)? = status.counts["upgradeFailure"] else { return status }
      throw CommandFailure(.failed, "can't restart the daemon of \(daemon.status.store): \(why)")
    }
    guard !isWaiting else {
      throw CommandFailure(
        .failed,
        "the daemon of \(daemon.status.store) goes on with the running program, since one that served before "
          + "has not ended; the installed one takes over when that has, or in a minute")
    }
    throw CommandFailure(
      .failed,
      "the daemon of \(daemon.status.store) has ended, and no other one answers; see state/daemon.log in the "
        + "store and 'insula status'")
  }
}
