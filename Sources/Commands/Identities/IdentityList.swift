// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO
internal import Policy

/// `insula identity list`.
struct IdentityListCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "identity list", summary: "Lists the identities with which you can sign.",
    options: [CommandDescription.json])

  private let json: Bool

  init(_ arguments: ParsedArguments) { json = arguments.has("json") }

  var goesByConfiguration: Bool { false }

  func run(in context: Context) throws -> ExitCode {
    var found: [IdentityDescription] = []
    if let place = try context.openIdentities() {
      found = try IdentityDirectory(place.fd).list().map {
        IdentityDescription($0.name, $0.chain, context.now())
      }
    }
    context.console.print(
      list: found, json: json, none: "There are no identities yet; 'insula identity new NAME' creates one.",
      columns: ["NAME", "TEAM", "VALID UNTIL", "ROOT"], \.row)
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
        problem = "the certificate '\(bad.name)' is not valid now; create a new identity"
      }
    }
  }

  var row: [String] {
    [name, team ?? "-", validUntil ?? "-", problem ?? root ?? "-"].map(\.sanitized)
  }
}
