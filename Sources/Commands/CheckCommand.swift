// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Store

/// `insula check`.
struct CheckCommand: Command {
  static let description = CommandDescription(
    name: "check", summary: "Looks whether a store is whole, and says what to do where it is not.",
    arguments: [.init(name: "STORE", help: "the store (default: as for 'insula mount')", kind: .directory)],
    options: [
      .init(name: "repair", help: "make missing standard directories again, set their owners and modes"),
      CommandDescription.json,
    ],
    details: [
      "Only --repair changes anything, and needs the store unmounted. Exit code 8 says that something was found."
    ])

  private let store: String?
  private let repair: Bool
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    store = arguments.argument(0)
    repair = arguments.has("repair")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let path = context.absolute(store ?? context.defaultStore)
    let store = try Store(opening: path, repair ? .exclusive : .inspect)
    var check = try StoreCheck(store, repairing: repair)
    try check.run()
    if json {
      context.console.print(json: check.findings)
    } else {
      report(check.findings, path, context.console)
    }
    return check.findings.contains { $0.severity == .failure && !$0.repaired } ? .problemsFound : .ok
  }

  private func report(_ findings: [Finding], _ path: String, _ console: Console) {
    for finding in findings {
      let label = finding.repaired ? "repaired" : finding.severity.rawValue
      console.print("\(label): \(finding.path) \(finding.problem)")
      if !finding.repaired { console.print("    \(finding.advice)") }
    }
    if findings.isEmpty { console.print("The store \(path) is whole.") }
  }
}
