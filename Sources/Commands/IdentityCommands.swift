// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO
internal import Policy

/// `insula identity new`.
struct IdentityNewCommand: Command {
  static let description = CommandDescription(
    name: "identity new", summary: "Makes an identity that can sign bundles.",
    arguments: [
      .init(name: "NAME", help: "what it is called, here and in its certificate", isRequired: true)
    ],
    options: [
      .init(
        name: "team", value: "TEAM",
        help: "letters, digits, '-' and '.' (default: ten characters of your own)")
    ],
    details: [
      "Apps of one team can update each other and share group containers. "
        + "All identities that are made here descend\n"
        + "from one root, and whoever trusts that root trusts them all.",
      "They are kept in ~/.config/insula/identities, "
        + "where nobody else may read: whoever has a key can sign as you.",
    ],
    examples: ["insula identity new Anna", "insula identity new 'Anna at work' --team EXAMPLE01"])

  private let name: String
  private let team: String?

  init(_ arguments: ParsedArguments) {
    name = arguments.argument(0) ?? ""
    team = arguments.value("team")
  }

  func run(in context: Context) throws -> ExitCode {
    let place = try context.makeIdentities()
    let identity = try IdentityDirectory(place.fd).make(name, team: team, at: context.now())
    context.console.print("Made the identity '\(identity.name)' of the team \(identity.team).")
    guard let root = identity.chain.last, try !context.trust(ofStore: nil).roots.contains(root) else {
      return .ok
    }
    context.console.print(
      "Trust what it signs with 'insula identity export \(identity.name.forShell) | insula trust add -'.")
    return .ok
  }
}

/// `insula identity list`.
struct IdentityListCommand: Command {
  static let description = CommandDescription(
    name: "identity list", summary: "Lists the identities that you can sign with.",
    options: [CommandDescription.json])

  private let json: Bool

  init(_ arguments: ParsedArguments) { json = arguments.has("json") }

  func run(in context: Context) throws -> ExitCode {
    var found: [IdentityDescription] = []
    if let place = try context.openIdentities() {
      found = try IdentityDirectory(place.fd).list().map {
        IdentityDescription($0.name, $0.chain, context.now())
      }
    }
    if json {
      context.console.print(json: found)
    } else if found.isEmpty {
      context.console.print("There are no identities yet; 'insula identity new NAME' makes one.")
    } else {
      context.console.print(table: [["NAME", "TEAM", "VALID UNTIL", "ROOT"]] + found.map(\.row))
    }
    return found.contains { $0.problem != nil } ? .problemsFound : .ok
  }
}

/// An identity for programs, and for a table.
private struct IdentityDescription: Encodable {
  let name: String
  var team: String?
  var validUntil: String?
  var root: String?
  var rootFingerprint: String?
  var problem: String?

  init(_ name: String, _ chain: Result<[Certificate], IdentityFailure>, _ now: Int64) {
    self.name = name
    switch chain {
    case .failure(let failure): problem = failure.description
    case .success(let chain):
      team = chain.first?.team
      root = chain.last?.name
      rootFingerprint = chain.last?.fingerprintText
      validUntil = chain.map(\.validUntil).min().map { calendarDay($0) }
      if let bad = chain.first(where: { !$0.isValid(at: now) }) {
        problem = "the certificate '\(bad.name)' is not valid now; make a new identity"
      }
    }
  }

  var row: [String] {
    [name, team ?? "-", validUntil ?? "-", problem ?? root ?? "-"].map(\.harmless)
  }
}

/// `insula identity export`.
struct IdentityExportCommand: Command {
  static let description = CommandDescription(
    name: "identity export",
    summary: "Prints the certificate by which others can trust an identity, or takes its key along.",
    arguments: [.init(name: "NAME", help: "which identity", isRequired: true)],
    options: [
      .init(name: "certificate", value: "FILE", help: "write the root's certificate into a new file"),
      .init(name: "chain", help: "all certificates and not the root's alone, as PEM"),
      .init(name: "key", value: "FILE", help: "write key and certificates into a new file, as PKCS#12"),
      .init(
        name: "passphrase-file", value: "FILE",
        help: "whose first line protects the key; '-' for what is piped"),
    ],
    details: [
      "Give others the certificate, which is no secret. "
        + "Whoever gets the key and its passphrase can sign as you:\n"
        + "'insula identity import' takes it on another machine of yours, and 'openssl pkcs12' opens it."
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
      throw Self.description.error("'--key' and '--passphrase-file' belong together")
    }
    guard key == nil || certificate == nil && !wantsChain else {
      throw Self.description.error("'--key' has the certificates in it already")
    }
  }

  func run(in context: Context) throws -> ExitCode {
    guard let place = try context.openIdentities() else { throw IdentityFailure.notThere(name) }
    let identity = try IdentityDirectory(place.fd).identity(named: name)
    if let key, let passphrase {
      let bytes = try identity.exported(passphrase: context.passphrase(passphrase))
      try context.write(bytes, toNew: key, mode: 0o600)
      if key != "-" { context.console.print("Wrote the key of '\(name)' and its certificates to \(key).") }
      return .ok
    }
    guard let root = identity.chain.last else { return .failed }
    let text = wantsChain ? try identity.certificatesPEM() : try root.pem()
    try context.write(text, toNew: certificate ?? "-", mode: 0o644)
    if let certificate, certificate != "-" {
      context.console.print(
        "Wrote \(wantsChain ? "the certificates" : "the root's certificate") to \(certificate).")
    }
    return .ok
  }
}

/// `insula identity import`.
struct IdentityImportCommand: Command {
  static let description = CommandDescription(
    name: "identity import", summary: "Takes an identity that was exported elsewhere.",
    arguments: [
      .init(name: "NAME", help: "what it is to be called here", isRequired: true),
      .init(
        name: "FILE", help: "PKCS#12, as 'insula identity export --key' and openssl write it",
        isRequired: true, kind: .file),
    ],
    options: [
      .init(
        name: "passphrase-file", value: "FILE",
        help: "whose first line protects the key; '-' for what is piped")
    ],
    examples: ["insula identity import Anna anna.p12 --passphrase-file secret"])

  private let name: String
  private let file: String
  private let passphrase: String

  init(_ arguments: ParsedArguments) throws(UsageError) {
    name = arguments.argument(0) ?? ""
    file = arguments.argument(1) ?? ""
    guard let passphrase = arguments.value("passphrase-file") else {
      throw Self.description.error("'--passphrase-file' is missing")
    }
    self.passphrase = passphrase
  }

  func run(in context: Context) throws -> ExitCode {
    let bytes = try context.contents(of: file, limit: 1 << 20)
    let identity = try Identity.imported(bytes, passphrase: context.passphrase(passphrase), name: name)
    let place = try context.makeIdentities()
    try IdentityDirectory(place.fd).add(identity)
    context.console.print("Took the identity '\(identity.name)' of the team \(identity.team).")
    return .ok
  }
}

extension Context {
  /// The first line of a file.
  fileprivate func passphrase(_ path: String) throws -> String {
    let bytes = try contents(of: path, limit: 4096)
    let line = bytes.prefix { $0 != 10 && $0 != 13 }
    guard !line.isEmpty, let text = String(validating: line, as: UTF8.self) else {
      throw CommandFailure(.failed, "the first line of \(path) is no passphrase: it is empty, or not UTF-8")
    }
    return text
  }
}

extension String {
  /// As one word of a shell.
  var forShell: String {
    let isPlain =
      !isEmpty
      && utf8.allSatisfy {
        (0x30...0x39).contains($0) || (0x41...0x5a).contains($0) || (0x61...0x7a).contains($0)
          || "-_./".utf8.contains($0)
      }
    return isPlain ? self : "'" + replacing("'", with: "'\\''") + "'"
  }
}
