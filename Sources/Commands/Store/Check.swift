// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Daemon
internal import Store
internal import Synchronization

/// `insula check`.
struct CheckCommand: Command {
  static let description = CommandDescription(
    name: "check", summary: "Checks a store, and says what to do if something is wrong.",
    arguments: [.init(name: "STORE", help: "the store (default: as for 'insula mount')", kind: .directory)],
    options: [
      .init(
        name: "repair",
        help: "create missing standard directories of domains, homes and containers; correct others"),
      .init(
        name: "deep", help: "check every file of installed apps and of the system domain against its seal"),
      CommandDescription.json,
    ],
    details: [
      """
      Nothing is changed without --repair, which requires that the store is not mounted. Exit code 8 means
      that something was found. Without --deep, only the seals themselves are checked, not the files that they
      cover.
      """,
      """
      --repair restores owners and modes of the standard directories of domains. In homes it makes what is
      missing, gives standard directories back to the owner of the home, corrects modes that the owner can't
      use or that let everyone write, and completes ACLs; what the owner may have chosen stays. In containers
      it makes missing directories and the description. It never replaces or removes what a person has put
      there; each finding that it leaves says what to do by hand.
      """,
    ],
    storeUse: .judgesItself)

  private let store: String?
  private let repair: Bool
  private let deep: Bool
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    store = arguments.argument(0)
    repair = arguments.has("repair")
    deep = arguments.has("deep")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let path = context.store(store)
    if store == nil, path != context.absolute(context.defaultStore) {
      throw CommandFailure(
        .notPermitted,
        "you have no store, and only root can check the machine's store \(path): 'sudo insula check'")
    }
    let store = try Store(
      opening: path, named: context.namedStore(store), repair ? .mending : .inspect)
    var check = try StoreCheck(store, repairing: repair)
    try check.run()
    let findings = try twin(of: store, context) + check.findings + apps(of: store, context)
    if json {
      context.console.print(json: findings)
    } else {
      report(findings, path, context.console)
    }
    return findings.contains { $0.severity == .failure && !$0.repaired } ? .problemsFound : .ok
  }

  /// A copy of a mounted store still has that one's UUID.
  private func twin(of store: Store, _ context: Context) throws -> [StoreFinding] {
    guard let other = DaemonSearch(context).twin(of: store) else { return [] }
    var finding = StoreFinding(
      severity: .warning, path: store.path,
      problem: "has the same UUID as \(other.store), which is mounted: one is a copy of the other",
      advice: "'insula check --repair \(store.path)' gives this one a new UUID")
    if repair {
      try store.renewUUID()
      finding.repaired = true
    }
    return [finding]
  }

  private func apps(of store: Store, _ context: Context) throws -> [StoreFinding] {
    let current = Mutex("the system domain")
    let judge: AppsCheck.Judge = { (domain) throws(AppFailure) in try StoreTrust.read(store, for: domain) }
    let check = AppsCheck(store, verifyingBy: deep ? judge : nil)
    return try ProgressLine.show(context.console, { "checking \(current.withLock { $0 })" }) {
      try check.findings { app in current.withLock { $0 = app.title } }
    }
  }

  private func report(_ findings: [StoreFinding], _ path: String, _ console: Console) {
    for finding in findings {
      let label = finding.repaired ? "repaired" : finding.severity.rawValue
      let color: Console.Color =
        finding.repaired ? .green : finding.severity == .failure ? .red : .yellow
      console.report("\(label):", color, " \(finding.path) \(finding.problem)")
      if !finding.repaired { console.print("    \(finding.advice)") }
    }
    if findings.isEmpty { console.say("The store \(path) is in order.") }
  }
}
