// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO
internal import Policy
internal import Store

private let storeOption = CommandDescription.Option(
  name: "store", value: "STORE",
  help: "the roots of a store, by which apps are installed there, and not your own")

/// `insula trust add`.
struct TrustAddCommand: Command {
  static let description = CommandDescription(
    name: "trust add", summary: "Trusts a root from now on, and all who descend from it.",
    arguments: [
      .init(
        name: "FILE", help: "the root's certificate, as PEM; '-' for what is piped", isRequired: true,
        kind: .file)
    ],
    options: [
      .init(
        name: "team", value: "TEAM",
        help: "this root speaks for that team in the store from now on, and no other root does"),
      storeOption,
    ],
    details: [
      "Your own roots are in ~/.config/insula/trust, "
        + "and 'insula verify' goes by them. A store has roots of its own\n"
        + "(STORE/keys/trust), which only its owner changes: "
        + "what is installed there must descend from one of them.",
      "In a store a team is one root's: the first's whose app of that "
        + "team is installed, or that of '--team'. The apps that the\n"
        + "team has there, and their data, are under the new root then.",
    ],
    examples: [
      "insula identity export Anna | insula trust add -",
      "sudo insula trust add root.pem --store /var/lib/insula",
      "sudo insula trust add new-root.pem --team ABCDE12345 --store /var/lib/insula",
    ])

  private let file: String
  private let team: String?
  private let store: String?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    file = arguments.argument(0) ?? ""
    team = arguments.value("team")
    store = arguments.value("store")
    guard team == nil || store != nil else {
      throw Self.description.error("teams are a store's; say which with '--store'")
    }
    if team == "" { throw Self.description.error("a team has a name") }
  }

  func run(in context: Context) throws -> ExitCode {
    let text = try context.contents(of: file, limit: 64 << 10)
    let place = try context.makeTrust(ofStore: store)
    let root = try add(text, to: TrustDirectory(place.fd), at: context.now())
    let whose = store.map { "The store \($0) trusts" } ?? "You trust"
    context.console.print("\(whose) '\(root.name.harmless)' (\(root.fingerprintText)) now.")
    if let team, let store { try pin(team, to: root, in: store, context) }
    return .ok
  }

  /// One that is trusted already can still be given a team.
  private func add(_ text: [UInt8], to trusted: TrustDirectory, at time: Int64) throws -> Certificate {
    if team != nil {
      let root = try trusted.root(text)
      if try trusted.list().contains(root) { return root }
    }
    return try trusted.add(text, at: time)
  }

  private func pin(_ team: String, to root: Certificate, in store: String, _ context: Context) throws {
    let opened = try context.store(store)
    let before = try Registry(of: opened).pin(team, to: root.fingerprint)
    let isOther = before.map { $0 != root.fingerprint } ?? false
    context.console.print(
      "The team \(team.harmless) is this root's there"
        + (isOther ? ", and no longer that of the root \(before?.asHexadecimal ?? "")." : "."))
  }
}

/// `insula trust list`.
struct TrustListCommand: Command {
  static let description = CommandDescription(
    name: "trust list", summary: "Lists the roots that are trusted.",
    options: [storeOption, CommandDescription.json])

  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let roots = try context.trust(ofStore: store).roots
    let now = context.now()
    if json {
      context.console.print(json: roots.map { RootDescription($0, now) })
    } else if roots.isEmpty {
      context.console.print("No root is trusted yet; 'insula trust add FILE' adds one.")
    } else {
      let rows = roots.map {
        [
          $0.name.harmless, calendarDay($0.validUntil) + ($0.isValid(at: now) ? "" : " (not now)"),
          $0.fingerprintText,
        ]
      }
      context.console.print(table: [["NAME", "VALID UNTIL", "FINGERPRINT"]] + rows)
    }
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

/// `insula trust remove`.
struct TrustRemoveCommand: Command {
  static let description = CommandDescription(
    name: "trust remove", summary: "Trusts a root no more.",
    arguments: [
      .init(
        name: "ROOT", help: "its name, or eight or more first digits of its fingerprint", isRequired: true)
    ],
    options: [storeOption],
    details: ["What is installed stays; nothing that descends from the root is accepted any more."])

  private let root: String
  private let store: String?

  init(_ arguments: ParsedArguments) {
    root = arguments.argument(0) ?? ""
    store = arguments.value("store")
  }

  func run(in context: Context) throws -> ExitCode {
    guard let place = try context.openTrust(ofStore: store) else {
      throw IdentityFailure.notTrusted(root)
    }
    let removed = try TrustDirectory(place.fd).remove(root)
    let whose = store.map { "The store \($0) no longer trusts" } ?? "You no longer trust"
    context.console.print("\(whose) '\(removed.name.harmless)' (\(removed.fingerprintText)).")
    return .ok
  }
}
