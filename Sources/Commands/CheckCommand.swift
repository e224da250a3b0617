// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Store
internal import Synchronization

/// `insula check`.
struct CheckCommand: Command {
  static let description = CommandDescription(
    name: "check", summary: "Looks whether a store is whole, and says what to do where it is not.",
    arguments: [.init(name: "STORE", help: "the store (default: as for 'insula mount')", kind: .directory)],
    options: [
      .init(name: "repair", help: "make missing standard directories again, set their owners and modes"),
      .init(
        name: "deep", help: "hold every file of installed apps and of the system domain against its seal"),
      CommandDescription.json,
    ],
    details: [
      "Only --repair changes anything, and needs the store unmounted. Exit code 8 says that something was found.",
      "Without --deep the seals themselves are looked at, and not the files that they are about.",
    ])

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
    let path = context.absolute(store ?? context.defaultStore)
    let store = try Store(opening: path, repair ? .exclusive : .inspect)
    var check = try StoreCheck(store, repairing: repair)
    try check.run()
    let findings = try check.findings + apps(of: store, context)
    if json {
      context.console.print(json: findings)
    } else {
      report(findings, path, context.console)
    }
    return findings.contains { $0.severity == .failure && !$0.repaired } ? .problemsFound : .ok
  }

  private func apps(of store: Store, _ context: Context) throws -> [StoreFinding] {
    let current = Mutex("the system domain")
    let check = AppsCheck(store, verifyingBy: deep ? try StoreTrust.read(store) : nil)
    return try ProgressLine.show(context.console, { "checking \(current.withLock { $0 })" }) {
      try check.findings { app in current.withLock { $0 = app.title } }
    }
  }

  private func report(_ findings: [StoreFinding], _ path: String, _ console: Console) {
    for finding in findings {
      let label = finding.repaired ? "repaired" : finding.severity.rawValue
      console.print("\(label): \(finding.path) \(finding.problem)")
      if !finding.repaired { console.print("    \(finding.advice)") }
    }
    if findings.isEmpty { console.print("The store \(path) is whole.") }
  }
}
