// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import JSON
internal import LinuxIO
internal import Policy
internal import Store

/// `insula status`.
struct StatusCommand: Command {
  static let description = CommandDescription(
    name: "status", summary: "Shows whether and where a store is mounted, and the counters of its daemon.",
    arguments: [
      .init(
        name: "STORE|MOUNTPOINT", help: "the store or mount (default: as for 'insula mount')",
        kind: .directory)
    ],
    options: [
      CommandDescription.json,
      .init(name: "requests", help: "show what the kernel has requested since the daemon was started"),
    ],
    details: [
      "Exit codes: 0: mounted, and the daemon answers; 6: not mounted; 4: there is no store."
    ],
    storeUse: .looks)

  private let place: String?
  private let json: Bool
  private let requests: Bool

  init(_ arguments: ParsedArguments) {
    place = arguments.argument(0)
    json = arguments.has("json")
    requests = arguments.has("requests")
  }

  func run(in context: Context) throws -> ExitCode {
    let paths = DaemonSearch.paths(of: place, context)
    if let found = DaemonSearch(context).daemon(at: paths) {
      show(found.status, context.console)
      return .ok
    }
    // Who has no store of their own means the machine's.
    let meant = context.store(place)
    if place == nil, meant != context.absolute(context.defaultStore) {
      return try showMachines(meant, context)
    }
    for path in paths {
      guard let mount = DaemonSearch.mount(at: path) else { continue }
      let why =
        MountPoint.isDead(path)
        ? "its daemon was killed; 'insula unmount \(path)' or 'insula mount' removes the dead mount"
        : "its daemon does not answer; it may be another user's"
      throw CommandFailure(.failed, "\(path) is mounted from \(mount.source), but \(why)")
    }
    return try showStore(paths, context)
  }

  private func showMachines(_ path: String, _ context: Context) throws -> ExitCode {
    if let found = DaemonSearch(context).daemon(at: [path]) {
      show(found.status, context.console)
      return .ok
    }
    throw CommandFailure(
      .notMounted,
      "the machine's store \(path) is not mounted, and you have no store; root can mount it with "
        + "'sudo insula mount'")
  }

  private func show(_ status: DaemonStatus, _ console: Console) {
    var fields = status.counts
    fields["pid"] = .integer(Int64(status.pid))
    fields["store"] = .string(status.store)
    fields["mountPoint"] = .string(status.mountPoint)
    fields["uuid"] = .string(status.uuid)
    fields["mode"] = .string(status.mode)
    if json {
      fields["mounted"] = .bool(true)
      if let identity = status.identity {
        fields["device"] = .integer(Int64(truncatingIfNeeded: identity.device))
        fields["inode"] = .integer(Int64(truncatingIfNeeded: identity.inode))
      }
      return console.print(json: fields)
    }
    console.print(
      "\(status.store) is mounted at \(status.mountPoint) (\(status.mode) mode, pid \(status.pid))")
    if let reason = status.appsUnknown {
      console.report(
        "warning:", .yellow,
        " it is served without apps, volumes and homes on volumes: \(reason.sanitized); once that is done, "
          + "'insula restart \(status.store)' brings them back")
    }
    if status.unconfirmedVolumes > 0 {
      console.report(
        "warning:", .yellow,
        " volumes that were not added on this machine are not there: \(status.unconfirmedVolumes); "
          + "'insula volume list' names them")
    }
    if requests { return show(requests: status.requestsByKind, console) }
    let shown: Set = ["store", "mountPoint", "mode", "pid", "requestsByKind", "appsUnknown"]
    let rows = fields.filter { !shown.contains($0.key) }.inOrder { $0.key < $1.key }
    console.print(table: rows.map { ["  " + Self.words($0.key), $0.value.description] })
  }

  /// By the kernel's names, the most frequent first.
  private func show(requests: [String: Int64], _ console: Console) {
    let rows = requests.inOrder { ($1.value, $0.key) < ($0.value, $1.key) }
    console.print(table: rows.map { ["  " + $0.key, "\($0.value)"] })
  }

  private func showStore(_ paths: [String], _ context: Context) throws -> ExitCode {
    // The last of them is the store, if it is anything.
    let path = paths.last ?? context.defaultStore
    let store = try openStore(path, context)
    let machine = store.otherMachine
    let holder = machine == nil ? store.holder : nil
    let gaveUp = machine == nil && holder == nil ? GaveUp(in: store.state) : nil
    if json {
      context.console.print(
        json: [
          "mounted": JSONValue.bool(false), "store": .string(store.path),
          "uuid": .string(store.description.uuid), "mode": .string(store.description.mode.rawValue),
          "writableCode": .bool(store.description.allowsWritableCode),
          "directStart": .bool(store.description.allowsDirectStart),
          "appUmask": .string(String(store.description.appUmask, radix: 8)),
          "caseInsensitive": .bool(store.description.ignoresCase),
          "allMusic": .bool(store.description.offersAllMusic),
          "machine": machine.map { .string($0) } ?? .null,
          "holder": holder.map { .integer(Int64($0.pid)) } ?? .null,
          "gaveUp": gaveUp.map { .object(["time": .integer($0.time), "reason": .string($0.reason)]) }
            ?? .null,
        ])
    } else if let machine {
      context.console.print(
        "\(store.path) is in use on \(machine), or was when that went away; 'insula mount' finds out which")
    } else if let holder {
      context.console.print("\(store.path) is in use by \(holder), which does not answer")
    } else if let gaveUp {
      context.console.print(
        "\(store.path) is not mounted: \(gaveUp.reason), so the mount was removed at "
          + utcText(gaveUp.time))
      context.console.print("See state/daemon.log in the store; 'insula mount' mounts it again.")
    } else {
      context.console.print("\(store.path) is not mounted; 'insula mount' mounts it")
    }
    return .notMounted
  }

  private func openStore(_ path: String, _ context: Context) throws -> Store {
    do throws(StoreError) {
      return try Store(opening: path, .inspect)
    } catch {
      // A directory that was named may just as well be meant as a mount point.
      guard place != nil, case .notAStore = error else { throw error }
      throw CommandFailure(
        .notMounted,
        "\(path) is neither a store nor a mount point of one; name one, or leave it out for your own")
    }
  }

  /// `openFiles` as a person writes it.
  private static func words(_ key: String) -> String {
    key.map { $0.isUppercase ? " " + $0.lowercased() : String($0) }.joined()
  }
}
