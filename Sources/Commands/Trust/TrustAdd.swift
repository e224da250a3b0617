// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO
internal import Policy
internal import Store

/// `insula trust add`.
struct TrustAddCommand: Command {
  static let description = CommandDescription(
    name: "trust add", summary: "Adds a trusted root: every identity under it is trusted.",
    arguments: [
      .init(
        name: "FILE", help: "the root's certificate, as PEM; '-' for standard input", isRequired: true,
        kind: .file)
    ],
    options: [
      .init(
        name: "team", value: "TEAM",
        help: "in the store, assign this team to this root alone"),
      CommandDescription.trustStore,
    ],
    details: [
      """
      Your own trusted roots are in ~/.config/insula/trust; 'insula verify' uses them. A store has its own
      trusted roots (STORE/keys/trust), which only its owner can change. Only apps signed under one of them
      can be installed in the store.
      """,
      """
      In a store, each team is assigned to one root: the one under which the team's first app for everyone was
      signed, or the one given with '--team'. The apps of a joined network assign nothing. '--team' also moves
      the data of the team's former root to the new one, and ends the team's running apps that were signed
      under another root. They don't run with that data any more; an update signed under the new root brings
      them along.
      """,
      """
      If the team was assigned to no root, its data does not move: any root that the store trusts may have
      signed apps in the team's name. Assign the team to its former root first, and then to the new one.
      """,
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
      throw Self.description.error("'--team' requires '--store': a team is assigned to a root in a store")
    }
    if team == "" { throw Self.description.error("the name of the team is empty") }
  }

  var goesByConfiguration: Bool { false }

  func run(in context: Context) throws -> ExitCode {
    let text = try context.contents(of: file, limit: 64 << 10)
    // First: nothing is changed where nobody could assign the team. A mount that is named leads to its store
    // by its daemon alone.
    let opened = try store.map { try context.store($0) }
    let access = try team.map { _ in try AppsAccess.find(opened?.path, writing: true, context) }
    if let opened, let access, try access.openedStore().identity != opened.identity {
      throw StoreError.notThere(path: opened.path)
    }
    let place = try context.makeTrust(of: opened)
    let root = try add(text, to: TrustDirectory(place.fd), at: context.now())
    let whose = store.map { "The store \($0) now trusts" } ?? "You now trust"
    context.console.say("\(whose) '\(root.name.sanitized)' (\(root.fingerprintText)).")
    if let team, let access { try assign(team, to: root, access) }
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

  private func assign(_ team: String, to root: Certificate, _ access: any StoreAccess) throws {
    let before = try access.assign(team: team, to: root.fingerprint)
    let isOther = before.map { $0 != root.fingerprint } ?? false
    access.context.console.say(
      "In this store, the team \(team.sanitized) now belongs to this root"
        + (isOther ? " and no longer to the root \(before?.asHexadecimal ?? "")." : "."))
  }
}
