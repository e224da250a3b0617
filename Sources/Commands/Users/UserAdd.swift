// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Store

/// `insula user add`.
struct UserAddCommand: Command {
  static let description = CommandDescription(
    name: "user add", summary: "Creates the home of an account: /Users/NAME with its standard directories.",
    arguments: [.init(name: "NAME", help: "an account of this machine", isRequired: true, kind: .account)],
    options: [HomesAccess.storeOption],
    details: [
      "This works whether the store is mounted or not. Existing directories are never changed."
    ],
    examples: ["sudo insula user add anna"])

  private let name: String
  private let store: String?

  init(_ arguments: ParsedArguments) {
    name = arguments.argument(0) ?? ""
    store = arguments.value("store")
  }

  func run(in context: Context) throws -> ExitCode {
    try HomesAccess.open(store, writing: true, context) { homes in
      try homes.add(name)
    }
    context.console.say("Created the home of \(name).")
    return .ok
  }
}
