// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// `insula doctor`.
struct DoctorCommand: Command {
  static let description = CommandDescription(
    name: "doctor",
    summary: "Shows what this machine supports, and what to do if something is missing.",
    arguments: [
      .init(
        name: "STORE", help: "a store whose filesystem to check too (default: as for 'insula mount')",
        kind: .directory)
    ],
    options: [CommandDescription.json],
    details: [
      "This command changes nothing. Exit code 8 means that a mount would fail."
    ],
    storeUse: .judgesItself)

  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    store = arguments.argument(0)
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let path = context.absolute(store ?? context.defaultStore)
    // Of the store that is meant, or else of the machine's. Without a daemon there is nothing to say of it.
    let found = DaemonSearch(context).daemon(at: store == nil ? [path, context.machineStore] : [path])
    let served = found.map { AppsDiagnosis(found: $0).all + EncryptionDiagnosis(found: $0).all } ?? []
    let diagnoses =
      MachineDiagnosis(context).all + BackingDiagnosis(path, context).all
      + RestrictionDiagnosis(path, context).all + served
    if json {
      context.console.print(json: diagnoses)
    } else {
      for diagnosis in diagnoses {
        let label = "\(diagnosis.level.rawValue):"
        let padding = String(repeating: " ", count: 6 - label.count)
        context.console.report(
          label, diagnosis.level.color, "\(padding)\(diagnosis.name): \(diagnosis.finding)")
        if let advice = diagnosis.advice { context.console.print("        \(advice)") }
      }
    }
    return diagnoses.contains { $0.level == .fail } ? .problemsFound : .ok
  }
}
