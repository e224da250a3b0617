// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy

/// `insula purge`.
struct PurgeCommand: Command {
  static let description = CommandDescription(
    name: "purge", summary: "Deletes the caches and temporary files of apps that don't run.",
    arguments: [
      .init(
        name: "ID", help: "the identifier or name of an app (default: all apps)", kind: .app,
        isRepeated: true)
    ],
    options: [
      .init(
        name: "to", value: "GOAL",
        help: "stop when this much of the store's disk is free: a share (20%) or a size (5G)"),
      .init(name: "tmp", help: "only temporary files"),
      .init(name: "caches", help: "only caches"),
      .init(name: "dry-run", short: "n", help: "show what would be deleted, and delete nothing"),
      AppsAccess.userOption, AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      """
      This deletes what is in tmp and Library/Caches of containers: temporary files of all apps first, then
      caches, those of the apps that ran longest ago first. An app that runs keeps everything, and an app
      that is started meanwhile finds its directories as usual, empty. Documents, preferences and Application
      Support are never touched. If that is not enough for the GOAL, containers of apps that were uninstalled
      go too, those first that were removed first (see 'insula removed list').
      """,
      """
      You delete what your own apps have; root deletes that of all users. Files that belong to another user or
      have a protective flag (uchg, schg, ...) are kept.
      """,
    ],
    examples: [
      "insula purge --dry-run", "insula purge com.example.editor --caches", "sudo insula purge --to 20%",
    ])

  private let apps: [AppReference]
  private let places: [PurgePlace]
  private let goal: FreeSpaceGoal?
  private let isDryRun: Bool
  private let user: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    apps = try Self.description.apps(arguments.positional)
    let named = PurgePlace.allCases.filter { arguments.has($0.rawValue) }
    places = named.isEmpty ? PurgePlace.allCases : named
    goal = try arguments.value("to").map { (text) throws(UsageError) in
      do throws(LimitRefusal) {
        return try FreeSpaceGoal(text)
      } catch {
        throw Self.description.error("bad value of '--to': \(error.reason)")
      }
    }
    isDryRun = arguments.has("dry-run")
    user = arguments.value("user")
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let uid = try AppsAccess.user(user, context)
    let access = try AppsAccess.find(store, writing: true, context)
    var request = PurgeRequest()
    request.apps = try apps.map { try access.identifier(of: $0, for: uid) }
    request.user = access.orOneself(uid)
    request.places = places
    request.goal = goal
    request.isDryRun = isDryRun
    let report = try access.purge(request)
    report.tell(in: access.root, context.console)
    if json {
      context.console.print(json: report)
    } else {
      report.show(withUsers: context.isRoot, context.console)
    }
    return report.missing.map { $0 > 0 } == true ? .failed : .ok
  }
}

extension PurgeReport {
  /// Tells what was not deleted, and why.
  fileprivate func tell(in root: String, _ console: Console) {
    var refusals: [String] = []
    for item in items {
      item.left.tell(in: root, console)
      guard let refusal = item.refusal.map({ "\(item.app) keeps its \(item.place.words): \($0)" }) else {
        continue
      }
      refusals.append(refusal)
    }
    for refusal in refusals { console.inform(refusal) }
    if let missing, missing > 0 {
      console.note(
        "\(Int(clamping: missing).asSize) less than you asked for \(isDryRun ? "would be" : "are") free: "
          + "that is all that apps can make again")
    }
  }

  fileprivate func show(withUsers: Bool, _ console: Console) {
    let gone = items.filter { $0.freed.count > 0 }
    if !gone.isEmpty {
      let user = withUsers ? ["USER"] : []
      console.print(
        table: [["APP"] + user + ["WHAT", "LAST RAN", "SIZE"]]
          + gone.map { item in
            let name = withUsers ? [Account.numbered(item.user)?.name ?? "uid \(item.user)"] : []
            return [item.app.text] + name
              + [item.place.words, item.lastRun.map(utcText) ?? "-", Int(clamping: item.freed.bytes).asSize]
          })
    }
    if let removed, removed.count > 0 {
      let size = Int(clamping: removed.bytes).asSize
      console.say("\(isDryRun ? "This would delete" : "Deleted") removed containers: \(size).")
    }
    let size = Int(clamping: freed.bytes).asSize
    console.say(
      freed.count == 0
        ? "There is nothing to delete."
        : isDryRun ? "This would free \(size)." : "Freed \(size).")
  }
}

extension PurgePlace {
  var words: String {
    switch self {
    case .tmp: "temporary files"
    case .caches: "caches"
    }
  }
}
