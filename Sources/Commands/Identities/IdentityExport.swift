// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO

/// `insula identity export`.
struct IdentityExportCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "identity export",
    summary: "Prints the certificate with which others can trust an identity, or exports its key.",
    arguments: [.init(name: "NAME", help: "the identity's name", isRequired: true, kind: .identity)],
    options: [
      .init(
        name: "certificate", value: "FILE", help: "write the root's certificate to a new file", kind: .file),
      .init(name: "chain", help: "export all certificates, not only the root's, as PEM"),
      .init(
        name: "key", value: "FILE", help: "write the key and the certificates to a new file, as PKCS#12",
        kind: .file),
      .init(
        name: "passphrase-file", value: "FILE",
        help: "a file whose first line is the passphrase; '-' for standard input", kind: .file),
    ],
    details: [
      """
      Give the certificate to others; it is not secret. Whoever has the key and its passphrase can sign as
      you. 'insula identity import' imports it on another machine, and 'openssl pkcs12' can read it.
      """
    ],
    examples: [
      "insula identity export Anna > root.pem",
      "insula identity export Anna --key anna.p12 --passphrase-file secret",
    ])

  private let name: String
  private let certificate: String?
  private let wantsChain: Bool
  private let key: String?
  private let passphrase: String?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    name = arguments.argument(0) ?? ""
    certificate = arguments.value("certificate")
    wantsChain = arguments.has("chain")
    key = arguments.value("key")
    passphrase = arguments.value("passphrase-file")
    guard (key == nil) == (passphrase == nil) else {
      throw Self.description.error("'--key' and '--passphrase-file' require each other; give both")
    }
    guard key == nil || certificate == nil && !wantsChain else {
      throw Self.description.error(
        "'--key' already includes the certificates; leave out '--chain' and '--certificate'")
    }
  }

  var goesByConfiguration: Bool { false }

  func run(in context: Context) throws -> ExitCode {
    guard let place = try context.openIdentities() else { throw IdentityFailure.notThere(name) }
    let identity = try IdentityDirectory(place.fd).identity(named: name)
    if let key, let passphrase {
      let bytes = try identity.exported(passphrase: context.passphrase(passphrase))
      try context.write(bytes, toNew: key, mode: 0o600)
      if key != "-" { context.console.say("Wrote the key of '\(name)' and its certificates to \(key).") }
      return .ok
    }
    guard let root = identity.chain.last else { return .failed }
    let text = wantsChain ? try identity.certificatesPEM() : try root.pem()
    try context.write(text, toNew: certificate ?? "-", mode: 0o644)
    if let certificate, certificate != "-" {
      context.console.say(
        "Wrote \(wantsChain ? "the certificates" : "the root's certificate") to \(certificate).")
    }
    return .ok
  }
}
