// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO

/// `insula identity import`.
struct IdentityImportCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "identity import", summary: "Imports an identity that was exported elsewhere.",
    arguments: [
      .init(name: "NAME", help: "the identity's new name", isRequired: true),
      .init(
        name: "FILE", help: "a PKCS#12 file from 'insula identity export --key' or openssl",
        isRequired: true, kind: .file),
    ],
    options: [
      .init(
        name: "passphrase-file", value: "FILE",
        help: "a file whose first line is the passphrase; '-' for standard input", kind: .file)
    ],
    examples: ["insula identity import Anna anna.p12 --passphrase-file secret"])

  private let name: String
  private let file: String
  private let passphrase: String

  init(_ arguments: ParsedArguments) throws(UsageError) {
    name = arguments.argument(0) ?? ""
    file = arguments.argument(1) ?? ""
    guard let passphrase = arguments.value("passphrase-file") else {
      throw Self.description.error(
        "'--passphrase-file FILE' is missing: whoever exported the identity chose a passphrase")
    }
    self.passphrase = passphrase
  }

  var goesByConfiguration: Bool { false }

  func run(in context: Context) throws -> ExitCode {
    let bytes = try context.contents(of: file, limit: 1 << 20)
    let identity = try Identity.imported(bytes, passphrase: context.passphrase(passphrase), name: name)
    let place = try context.makeIdentities()
    try IdentityDirectory(place.fd).add(identity)
    context.console.say("Imported the identity '\(identity.name)' of the team \(identity.team).")
    return .ok
  }
}
