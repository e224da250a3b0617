// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Policy

/// `insula revoke`.
struct RevokeCommand: Command {
  static let description = CommandDescription(
    name: "revoke", summary: "Revokes grants to an app.",
    arguments: [
      .init(name: "ID", help: "the app's identifier or name", isRequired: true, kind: .app),
      .init(name: "PATH", help: "the granted path", kind: .file, isRepeated: true),
    ],
    options: [
      .init(name: "all", help: "revoke all grants to the app"), AppsAccess.userOption, AppsAccess.storeOption,
    ],
    details: [
      """
      When this returns, no running process of the app can read or write the file or folder any more, even if
      the app had files open or mapped into memory, or was reading.
      """
    ],
    examples: ["insula revoke com.example.editor --all"])

  private let app: AppReference
  private let paths: [String]
  private let user: String?
  private let store: String?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    app = try Self.description.app(arguments.argument(0))
    paths = Array(arguments.positional.dropFirst())
    guard paths.isEmpty == arguments.has("all") else {
      throw Self.description.error(
        paths.isEmpty
          ? "say what to revoke: a PATH, or '--all'" : "give a PATH or '--all', not both")
    }
    user = arguments.value("user")
    store = arguments.value("store")
  }

  func run(in context: Context) throws -> ExitCode {
    let uid = try AppsAccess.user(user, context)
    var failure: CommandFailure?
    for path in paths.isEmpty ? [nil] : paths.map(Optional.some) {
      do {
        let access = try AppsAccess.find(store, writing: true, context)
        let identifier = try access.identifier(of: app, for: uid)
        let recorded = try path.map { try access.recordedPath(of: $0) }
        try access.perform(.revoke(identifier, path: recorded, user: uid))
        let what = path.map { "the grant of \($0.sanitized)" } ?? "all grants"
        context.console.say("Revoked \(what) to \(identifier).")
      } catch {
        let why = CommandFailure(error)
        guard paths.count > 1 else { throw why }
        context.console.note("\((path ?? "").sanitized): \(why.message)")
        failure = why
      }
    }
    return failure?.code ?? .ok
  }
}
