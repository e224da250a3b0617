// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy

/// `insula grant`.
struct GrantCommand: Command {
  static let description = CommandDescription(
    name: "grant", summary: "Lets an app have a file or a folder of yours, at its real path.",
    arguments: [
      .init(name: "ID", help: "the app's identifier", isRequired: true),
      .init(
        name: "PATH", help: "a file or a folder in the mounted tree", isRequired: true, kind: .file,
        isRepeated: true),
    ],
    options: [
      .init(name: "read-only", help: "it may read it"),
      .init(name: "read-write", help: "it may read and change it"),
      AppsAccess.userOption, AppsAccess.storeOption,
    ],
    details: [
      "A running app has it at once; "
        + "it is there for every later start too, after updates and restarts, until it\n"
        + "is taken back ('insula revoke') or the app is uninstalled. "
        + "It follows the file or folder wherever that is\n"
        + "renamed or moved to in the tree; a folder comes with all that is in it.",
      "Without --read-only or --read-write, an app may change what it gets if its signature says so\n"
        + "(com.apple.security.files.user-selected.read-write). "
        + "An app whose signature says that it only reads\n"
        + "(...read-only) gets no more. Granting the same thing again with other access replaces the first.",
      "You must be able to reach what you grant, "
        + "and to read or to change it yourself. Homes as a whole, their\n"
        + "Library, and what other apps have apart from their Documents are not granted.",
    ],
    examples: [
      "insula grant com.example.editor ~/Insula/Users/anna/Documents/Letter.txt --read-write",
      "insula grant com.example.agent Projects",
    ])

  private let identifier: AppIdentifier
  private let paths: [String]
  private let access: GrantAccess?
  private let user: String?
  private let store: String?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    identifier = try Self.description.identifier(arguments.argument(0))
    paths = Array(arguments.positional.dropFirst())
    guard !arguments.has("read-only") || !arguments.has("read-write") else {
      throw Self.description.error("'--read-only' and '--read-write' exclude each other")
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
        let place = try access.place(of: path, context)
        var order = GrantOrder(.grant, identifier, path: place.path)
        order.inode = place.inode
        order.access = self.access
        order.user = uid
        for granted in try access.perform(order) {
          let may = granted.access == .readOnly ? "read" : "read and change"
          context.console.print(
            "\(granted.identifier) may \(may) \("\(access.root)/\(granted.path)".harmless).")
        }
      } catch {
        let why = CommandFailure(error)
        guard paths.count > 1 else { throw why }
        context.console.note("\(path.harmless): \(why.message)")
        failure = why
      }
    }
    return failure?.code ?? .ok
  }
}

/// `insula grants`.
struct GrantsCommand: Command {
  static let description = CommandDescription(
    name: "grants", summary: "Lists what you have granted apps.",
    arguments: [.init(name: "ID", help: "only what this app was granted")],
    options: [AppsAccess.userOption, AppsAccess.storeOption, CommandDescription.json],
    details: ["Root sees what all users have granted, or with --user what that one has."])

  private let identifier: AppIdentifier?
  private let user: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    identifier = try arguments.argument(0).map { (text) throws(UsageError) in
      try Self.description.identifier(text)
    }
    user = arguments.value("user")
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let uid = try AppsAccess.user(user, context)
    let access = try AppsAccess.find(store, context)
    let places = try access.grants(identifier, of: uid, context).map { place in
      var place = place
      place.path = "\(access.root)/\(place.path)"
      return place
    }
    if json {
      context.console.print(json: places)
    } else if places.isEmpty {
      context.console.print("Nothing is granted.")
    } else {
      let showsUsers = context.isRoot && uid == nil
      let rows = places.map { place in
        let user = showsUsers ? [Account.numbered(place.user)?.name ?? "uid \(place.user)"] : []
        let state = place.isMissing ? "  (missing)" : ""
        return [place.identifier] + user + [place.access.rawValue, place.path.harmless + state]
      }
      context.console.print(
        table: [["APP"] + (showsUsers ? ["USER"] : []) + ["ACCESS", "PATH"]] + rows)
    }
    return .ok
  }
}

/// `insula revoke`.
struct RevokeCommand: Command {
  static let description = CommandDescription(
    name: "revoke", summary: "Takes back what you have granted an app.",
    arguments: [
      .init(name: "ID", help: "the app's identifier", isRequired: true),
      .init(name: "PATH", help: "what it was granted", kind: .file, isRepeated: true),
    ],
    options: [
      .init(name: "all", help: "all that it was granted"), AppsAccess.userOption, AppsAccess.storeOption,
    ],
    details: [
      "When this returns, no running process of the app can "
        + "read or write what was taken back, whether it has it\n"
        + "open, mapped into memory, or was just reading it."
    ],
    examples: ["insula revoke com.example.editor --all"])

  private let identifier: AppIdentifier
  private let paths: [String]
  private let user: String?
  private let store: String?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    identifier = try Self.description.identifier(arguments.argument(0))
    paths = Array(arguments.positional.dropFirst())
    guard paths.isEmpty == arguments.has("all") else {
      throw Self.description.error(
        paths.isEmpty
          ? "say what is to be taken back: a PATH, or '--all'" : "give a PATH or '--all', not both")
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
        var order = GrantOrder(
          .revoke, identifier, path: try path.map { try access.formerPlace(of: $0, context) })
        order.user = uid
        _ = try access.perform(order)
        let what = path.map { "\($0.harmless)" } ?? "all that it was granted"
        context.console.print("Took \(what) back from \(identifier).")
      } catch {
        let why = CommandFailure(error)
        guard paths.count > 1 else { throw why }
        context.console.note("\((path ?? "").harmless): \(why.message)")
        failure = why
      }
    }
    return failure?.code ?? .ok
  }
}
