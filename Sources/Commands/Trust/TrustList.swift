// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Policy

/// `insula trust list`.
struct TrustListCommand: Command {
  static let description = CommandDescription(
    name: "trust list", summary: "Lists the trusted roots.",
    options: [CommandDescription.trustStore, CommandDescription.json],
    storeUse: .looks)

  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    store = arguments.value("store")
    json = arguments.has("json")
  }

  var goesByConfiguration: Bool { false }

  func run(in context: Context) throws -> ExitCode {
    let roots = try context.trust(ofStore: store).roots
    let now = context.now()
    context.console.print(
      list: roots.map { RootDescription($0, now) }, json: json,
      none: "There are no trusted roots yet; 'insula trust add FILE' adds one.",
      columns: ["NAME", "VALID UNTIL", "FINGERPRINT"]
    ) { root in [root.name, root.validUntil + (root.isValid ? "" : " (not now)"), root.fingerprint] }
    return .ok
  }
}

/// A root for programs.
private struct RootDescription: Encodable {
  let name: String
  let fingerprint: String
  let validUntil: String
  let isValid: Bool

  init(_ root: Certificate, _ now: Int64) {
    name = root.name
    fingerprint = root.fingerprintText
    validUntil = calendarDay(root.validUntil)
    isValid = root.isValid(at: now)
  }
}
