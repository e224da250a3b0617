// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy

/// `insula storage`.
struct StorageCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "storage", summary: "Shows how much space apps use, and what could be freed.",
    arguments: [
      .init(name: "ID", help: "only this app: its identifier or name (default: all apps)", kind: .app)
    ],
    options: [
      .init(name: "html", value: "FILE", help: "write a page for a browser to FILE", kind: .file),
      .init(name: "history", help: "show what was purged"),
      AppsAccess.userOption, AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      """
      For each app and user this shows the size of the app, of its documents, data, caches and temporary
      files, of its groups and of its iCloud containers; when it ran last; what 'insula purge' would free now;
      and advice: large media files in Documents that are not excluded from backups, files in places where an
      app is to have none, files in Application Support outside of a directory with the app's identifier, and
      apps that were not used for \(StorageAdvice.unusedSeconds / 86_400) days.
      """,
      """
      You see what your own apps use; root sees everybody's. Sizes are what files take on the disk. While the
      store is mounted, large sizes are those that were found last; JSON says when ('measured', in seconds
      since 1970).
      """,
      """
      Inside an app this shows only how much is free, and how much there is for what its user wants
      ('importantUsage', with what a purge could free) and for what can wait ('opportunisticUsage').
      """,
      """
      FILE is replaced if it is a file of yours. The page is complete in itself, and needs no network.
      """,
    ],
    examples: [
      "insula storage", "insula storage Notes --json", "insula storage --html storage.html",
      "sudo insula storage --history",
    ],
    storeUse: .looks)

  private let app: AppReference?
  private let page: String?
  private let wantsHistory: Bool
  private let user: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    app = try arguments.argument(0).map { (text) throws(UsageError) in try Self.description.app(text) }
    page = arguments.value("html")
    wantsHistory = arguments.has("history")
    user = arguments.value("user")
    store = arguments.value("store")
    json = arguments.has("json")
    if page != nil, wantsHistory || json {
      throw Self.description.error(
        "'--html' and '\(wantsHistory ? "--history" : "--json")' can't be combined; give one of them")
    }
    if page?.isEmpty == true { throw Self.description.error("FILE is empty; give the name of a file") }
  }

  func run(in context: Context) throws -> ExitCode {
    if let socket = context.appSocket { return try tellApp(AppAccess(socket, store, context)) }
    let uid = try AppsAccess.user(user, context)
    let access = try AppsAccess.find(store, context)
    if wantsHistory {
      let named = try app.map { try access.identifier(of: $0, for: uid).text }
      PurgeHistory(try PurgeHistory.entries(access, user: uid, app: named)).show(
        json: json, withUsers: context.isRoot, context.console)
      return .ok
    }
    let identifier = try app.map { try access.identifier(of: $0, for: uid) }
    let report = try access.storage(
      StorageRequest(app: identifier, user: access.orOneself(uid)))
    if json {
      context.console.print(json: report)
    } else if let page {
      try context.write(
        page: StoragePage(report, withUsers: context.isRoot, at: context.now()).text, to: page)
      if page != "-" { context.console.say("Wrote \(page).") }
    } else {
      report.show(inDetail: app != nil, withUsers: context.isRoot, at: context.now(), context.console)
    }
    return .ok
  }

  private func tellApp(_ access: AppAccess) throws -> ExitCode {
    guard app == nil, page == nil, !wantsHistory, user == nil else {
      throw CommandFailure(
        .notPermitted, "an app can ask only how much is free: 'insula storage' or 'insula storage --json'")
    }
    let space = try access.space()
    let console = access.context.console
    if json {
      console.print(json: space)
    } else {
      console.print(space.words)
    }
    return .ok
  }
}

extension Context {
  /// Writes a page, in one step; what is there already is replaced only where it is a file of one's own.
  ///
  /// No link is followed: it is made beside, and gets its name at the end.
  fileprivate func write(page text: String, to path: String) throws {
    if path == "-" { return console.print(exactly: Array(text.utf8)) }
    var why: String?
    do throws(Errno) {
      try withParent(of: path) { (parent, name) throws(Errno) in
        if let status = try? parent.status(of: name) {
          if !status.isRegular {
            why = "it is there already, and is no file; nothing was changed"
          } else if status.st_uid != uid {
            why = "the file belongs to somebody else; nothing was changed"
          }
          if why != nil { throw .EEXIST }
        }
        // It has names of people's files in it.
        try parent.replaceContents(
          of: String(decoding: name.buffer, as: UTF8.self), with: text.utf8, mode: 0o600)
      }
    } catch {
      throw CommandFailure(error, "can't write \(path.sanitized): \(why ?? Self.words(ofMaking: error))")
    }
  }
}
