// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What `insula doctor` says of one thing.
struct Diagnosis: Codable, Equatable {
  /// How much it matters.
  enum Level: String, Codable {
    case ok
    /// It works, and something is missing or slower.
    case warn
    /// Insula can't mount.
    case fail
  }

  let name: String
  let level: Level
  let finding: String
  /// What to do; nil if nothing has to be done.
  var advice: String?
}

/// `insula doctor`.
struct DoctorCommand: Command {
  static let description = CommandDescription(
    name: "doctor",
    summary: "Says what this machine offers to insula, and what to do where something is missing.",
    arguments: [
      .init(
        name: "STORE", help: "look at the filesystem of this store too (default: as for 'insula mount')",
        kind: .directory)
    ],
    options: [CommandDescription.json],
    details: ["It changes nothing. Exit code 8 says that a mount would fail."])

  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    store = arguments.argument(0)
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let path = context.absolute(store ?? context.defaultStore)
    let diagnoses = MachineDiagnosis(context).all + BackingDiagnosis(path, context).all
    if json {
      context.console.print(json: diagnoses)
    } else {
      for diagnosis in diagnoses {
        let label = "\(diagnosis.level.rawValue):"
        let padding = String(repeating: " ", count: 6 - label.count)
        context.console.print("\(label)\(padding)\(diagnosis.name): \(diagnosis.finding)")
        if let advice = diagnosis.advice { context.console.print("        \(advice)") }
      }
    }
    return diagnoses.contains { $0.level == .fail } ? .problemsFound : .ok
  }
}
