// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Policy

/// `insula grant`.
struct GrantCommand: Command {
  static let description = CommandDescription(
    name: "grant", summary: "Lets an app use one of your files or folders, at its real path.",
    arguments: [
      .init(name: "ID", help: "the app's identifier or name", isRequired: true, kind: .app),
      .init(
        name: "PATH", help: "a file or a folder in the mounted tree", isRequired: true, kind: .file,
        isRepeated: true),
    ],
    options: [
      .init(name: "read-only", help: "the app may only read it"),
      .init(name: "read-write", help: "the app may read and change it"),
      AppsAccess.userOption, AppsAccess.storeOption,
    ],
    details: [
      """
      A running app can use it at once, and later starts can too, after updates and restarts, until you revoke
      the grant ('insula revoke') or uninstall the app. The grant follows the file or folder when it is
      renamed or moved in the tree. A folder includes everything in it.
      """,
      """
      Without --read-only or --read-write, the app's signature decides: the app can change what you grant if
      it has the entitlement com.apple.security.files.user-selected.read-write. An app with the entitlement
      com.apple.security.files.user-selected.read-only can only read it. Granting the same path again
      replaces the access.
      """,
      """
      You must be able to reach what you grant, and to read or change it yourself. You can't grant a whole
      home, its Library, or the data of other apps other than their Documents.
      """,
    ],
    examples: [
      "insula grant com.example.editor ~/Insula/Users/anna/Documents/Letter.txt --read-write",
      "insula grant com.example.agent Projects",
    ])

  private let app: AppReference
  private let paths: [String]
  private let access: GrantAccess?
  private let user: String?
  private let store: String?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    app = try Self.description.app(arguments.argument(0))
    paths = Array(arguments.positional.dropFirst())
    guard !arguments.has("read-only") || !arguments.has("read-write") else {
      throw Self.description.error("'--read-only' and '--read-write' can't be combined; give one of them")
    }
    access = arguments.has("read-only") ? .readOnly : arguments.has("read-write") ? .readWrite : nil
    user = arguments.value("user")
    store = arguments.value("store")
  }

  func run(in context: Context) throws -> ExitCode {
    let uid = try AppsAccess.user(user, context)
    var failure: CommandFailure?
    for path in paths {
      do {
        let access = try AppsAccess.find(store, writing: true, context)
        let identifier = try access.identifier(of: app, for: uid)
        let place = try access.place(of: path)
        let request = GrantRequest.grant(
          identifier, path: place.path, inode: place.inode, self.access, user: uid)
        for granted in try access.perform(request) {
          let may = granted.access == .readOnly ? "read" : "read and change"
          context.console.say(
            "\(granted.identifier) may \(may) \("\(access.root)/\(granted.path)".sanitized).")
        }
      } catch {
        let why = CommandFailure(error)
        guard paths.count > 1 else { throw why }
        context.console.note("\(path.sanitized): \(why.message)")
        failure = why
      }
    }
    return failure?.code ?? .ok
  }
}
