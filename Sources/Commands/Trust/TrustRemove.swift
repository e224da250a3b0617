// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO
internal import Policy

/// `insula trust remove`.
struct TrustRemoveCommand: Command {
  static let description = CommandDescription(
    name: "trust remove", summary: "Removes a trusted root.",
    arguments: [
      .init(
        name: "ROOT", help: "the root's name, or at least the first eight digits of its fingerprint",
        isRequired: true, kind: .root)
    ],
    options: [CommandDescription.trustStore],
    details: [
      "Installed apps stay installed; nothing else that is signed under this root is accepted any more."
    ])

  private let root: String
  private let store: String?

  init(_ arguments: ParsedArguments) {
    root = arguments.argument(0) ?? ""
    store = arguments.value("store")
  }

  var goesByConfiguration: Bool { false }

  func run(in context: Context) throws -> ExitCode {
    guard let place = try context.openTrust(ofStore: store) else {
      throw IdentityFailure.notTrusted(root)
    }
    let removed = try TrustDirectory(place.fd).remove(root)
    let whose = store.map { "The store \($0) no longer trusts" } ?? "You no longer trust"
    context.console.say("\(whose) '\(removed.name.sanitized)' (\(removed.fingerprintText)).")
    return .ok
  }
}
