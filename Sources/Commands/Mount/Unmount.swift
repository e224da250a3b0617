// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO

/// `insula unmount`.
struct UnmountCommand: Command {
  static let description = CommandDescription(
    name: "unmount", summary: "Unmounts a store, and returns when its daemon has ended.",
    arguments: [
      .init(
        name: "MOUNTPOINT", help: "the mount point, or its store (root: /insula, a user: ~/Insula)",
        kind: .directory)
    ],
    options: [
      .init(
        name: "lazy", short: "l",
        help: "detach now; processes that use the mount can finish, but no others can enter it")
    ],
    details: [
      """
      If the mount is busy, the message names the processes that use it (exit code 3). This also removes a
      mount whose daemon was killed.
      """
    ],
    examples: ["sudo insula unmount", "insula unmount ~/Insula --lazy"])

  private let place: String?
  private let lazily: Bool

  init(_ arguments: ParsedArguments) {
    place = arguments.argument(0)
    lazily = arguments.has("lazy")
  }

  func run(in context: Context) throws -> ExitCode {
    let named = context.absolute(place ?? context.defaultMountPoint)
    let daemon = DaemonSearch(context).daemon(at: [named])
    let found =
      if let daemon { DaemonSearch.mount(of: daemon.status) } else {
        DaemonSearch.mount(ofStore: named) ?? DaemonSearch.mount(at: named)
      }
    guard let mount = found else {
      throw CommandFailure(
        .notMounted,
        "no insula store is mounted at \(named); "
          + "'findmnt -t \(MountPoint.filesystemType)' lists what is mounted")
    }
    context.console.detail("unmounting \(mount.source) from \(mount.mountPoint)")
    // The end of the process is seen by this, whatever becomes of its number.
    let process = daemon.flatMap { try? ProcessID.open($0.status.keeper ?? $0.status.pid) }
    do {
      try takeAway(mount, daemon?.client, context)
    } catch let error as Errno {
      throw Self.failure(error, mount)
    }
    if !lazily, let process { try Self.waitForEnd(process.fd, daemon?.status) }
    return .ok
  }

  private func takeAway(_ mount: MountEntry, _ daemon: ControlClient?, _ context: Context) throws {
    guard let daemon else {
      let isDead = MountPoint.isDead(mount.mountPoint)
      try Unmounting.unmount(mount, lazily: lazily || isDead, context)
      if isDead {
        context.console.inform("removed a dead mount from \(mount.mountPoint) (its daemon was killed)")
      }
      return
    }
    let reply: ControlReply
    do throws(Errno) {
      reply = try daemon.ask(.unmount(lazily: lazily), milliseconds: 60_000)
    } catch {
      // The daemon may be gone before it could answer, because it did what it was asked for.
      if try MountTable.current().top(at: mount.mountPoint) != mount { return }
      // It is still looking, and knows of apps and uploads that the kernel does not know.
      if error == .EAGAIN, !lazily, !MountPoint.isDead(mount.mountPoint) { throw Self.unanswered(mount) }
      return try Unmounting.unmount(mount, lazily: lazily, context)
    }
    switch reply {
    case .running(let ended):
      for app in ended { context.console.inform("ended \(app.identifier), pid \(app.pid)") }
    case .failure(let failure): try take(mount, afterRefusal: failure, context)
    default: break
    }
  }

  private static func unanswered(_ mount: MountEntry) -> CommandFailure {
    CommandFailure(
      .busy, "\(mount.mountPoint) stays mounted: its daemon is still looking who uses it",
      lines: ["try it again, or detach the mount now with 'insula unmount --lazy \(mount.mountPoint)'"])
  }

  /// What there is left to do where the daemon has refused.
  private func take(_ mount: MountEntry, afterRefusal failure: ControlFailure, _ context: Context) throws {
    switch failure.cause {
    case .appsRun(let running):
      let list = running.map { app in
        "  \(app.identifier), pid \(app.pid), of \(Account.numbered(app.user)?.name ?? "uid \(app.user)")"
      }
      throw CommandFailure(
        .busy,
        "\(mount.mountPoint) is busy and stays mounted; these apps are running:",
        lines: list + [
          "end them first ('insula kill ID'), or end them and unmount "
            + "with 'insula unmount --lazy \(mount.mountPoint)'"
        ])
    // Who does that for the daemon is gone.
    case .errno(.EPIPE): try Unmounting.unmount(mount, lazily: lazily, context)
    case .inUse:
      throw CommandFailure(
        .busy, "\(mount.mountPoint) stays mounted: \(failure.message)",
        lines: ["end that first, or detach the mount now with 'insula unmount --lazy \(mount.mountPoint)'"])
    case .errno(let errno): throw errno
    case .crowded: throw Errno.EBUSY
    default:
      throw CommandFailure(.failed, "can't unmount \(mount.mountPoint): \(failure.message)")
    }
  }

  private static func failure(_ error: Errno, _ mount: MountEntry) -> CommandFailure {
    let code = CommandFailure(error).code
    guard error == .EBUSY else {
      return CommandFailure(code, "can't unmount \(mount.mountPoint): \(error.message)")
    }
    let inside = ((try? MountTable.current())?.below(mount.mountPoint) ?? []).map {
      "  \($0.mountPoint): \($0.source) (\($0.type)) is mounted there"
    }
    let found = MountUsers.all(of: mount.device)
    let all = inside + found.users.map { "  \($0)" } + found.hidden.map { "  \($0)" }
    let list = all.isEmpty ? ["  no process that this user can see; try it as root"] : all
    return CommandFailure(
      code,
      "\(mount.mountPoint) is busy and stays mounted:",
      lines: list + [
        "end these first, or detach the mount now with 'insula unmount --lazy \(mount.mountPoint)'"
      ])
  }

  /// A following mount finds the store free only when the daemon has let go of it.
  private static func waitForEnd(_ process: FD, _ status: DaemonStatus?) throws {
    guard try process.waitUntilReadable(milliseconds: 60_000) else {
      throw CommandFailure(
        .busy,
        "\(status?.mountPoint ?? "the store") is unmounted, but its daemon (pid \(status?.pid ?? 0)) "
          + "has not ended within a minute; "
          + "see state/daemon.log in the store")
    }
  }
}
