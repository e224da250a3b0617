// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy

/// `insula volume lock`.
struct VolumeLockCommand: Command {
  static let description = CommandDescription(
    name: "volume lock", summary: "Locks an encrypted volume: nobody can read it until it is unlocked.",
    arguments: [.init(name: "NAME", help: "its name in /Volumes")],
    options: [
      .init(name: "all", help: "lock all of yours; for root, those of all users"),
      .init(name: "force", help: "also while it is used; what is open there fails with EIO"),
      .init(name: "wait", help: "while it is locked, let programs wait for it"),
      .init(name: "no-wait", help: "let them fail with ENOKEY, which is the default"),
      VolumeOwner.option, AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      """
      The program that decrypts it ends, and with it the keys in its memory. A volume that is in use is not
      locked, and the message says by whom. It is locked as well when the store is unmounted.
      """,
      """
      With '--all' and no store this is about all stores that are mounted. The unit insula-lock does that with
      '--force': root's before the machine sleeps, and yours when you log out.
      """,
    ])

  private let name: String?
  private let force: Bool
  private let waits: Bool?
  private let user: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    name = arguments.argument(0)
    force = arguments.has("force")
    let (wait, noWait) = (arguments.has("wait"), arguments.has("no-wait"))
    waits = wait || noWait ? wait : nil
    user = arguments.value("user")
    store = arguments.value("store")
    json = arguments.has("json")
    if (name != nil) == arguments.has("all") {
      throw Self.description.error("say what to lock: one NAME, or '--all'")
    }
    if user != nil, name == nil {
      throw Self.description.error("'--user' says whose volume NAME is; give one, or leave it out")
    }
    if wait, noWait { throw Self.description.error("'--wait' and '--no-wait' can't be combined; give one") }
  }

  func run(in context: Context) throws -> ExitCode {
    let request = VolumeRequest.lock(
      name: name, user: try AppsAccess.user(user, context), force: force, waits: waits)
    var locked: [VolumeDescription] = []
    var failures: [CommandFailure] = []
    if name == nil, store == nil {
      let everyones = context.isRoot ? EveryonesDaemons() : nil
      for silent in everyones?.silent ?? [] { failures.append(CommandFailure(.failed, silent.sanitized)) }
      let clients = everyones?.clients ?? context.controlPlace.daemons().map(\.client)
      // All at once, so that one that does not answer keeps none of the others from locking.
      for client in clients { try? client.send(.volume(request)) }
      let end = monotonicNanoseconds() + 40_000_000_000
      for client in clients {
        let left = Int32(clamping: millisecondsLeft(until: end) + 1)
        do {
          let reply = try client.awaitReply(milliseconds: left)
          locked += try reply.orFailure { if case .volumes(let all) = $0 { all } else { nil } }
        } catch {
          failures.append(error as? CommandFailure ?? CommandFailure(.failed, "a daemon does not answer"))
        }
      }
    } else {
      var daemon = try RunningDaemon(store, context)
      locked = try daemon.volumes(request)
    }
    if json { context.console.print(json: locked) }
    for volume in locked where !json { context.console.inform("locked \(volume.words(for: context.uid))") }
    guard let last = failures.popLast() else { return .ok }
    for failure in failures { context.console.note(failure) }
    throw last
  }
}
