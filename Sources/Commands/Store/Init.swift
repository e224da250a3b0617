// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Store

/// `insula init`.
struct InitCommand: Command {
  static let description = CommandDescription(
    name: "init", summary: "Creates a store: an empty tree with its four domains.",
    arguments: [
      .init(
        name: "STORE",
        help: "a new or empty directory (root: /var/lib/insula, a user: ~/.local/share/insula)",
        kind: .directory)
    ],
    options: [
      .init(
        name: "admin-group", value: "NAME",
        help: "the group that administers the tree (default: the one in insula.conf, sudo or wheel)",
        kind: .group),
      .init(
        name: "allow-writable-code",
        help: "let all apps run files that they have written, not only those entitled to it"),
      .init(
        name: "allow-direct-start",
        help: "let sandboxed apps be started past their views, with all that their user may do"),
      .init(
        name: "all-music",
        help: "count all of a user's Music folder as the media library, not only the libraries in it"),
      .init(
        name: "app-umask", value: "MODE",
        help: "which rights nobody gets to what apps make in their containers (default: 077)"),
      .init(
        name: "show-extensions",
        help: "show names of documents with their extensions, in 'insula name' and 'insula ls --finder'"),
      .init(
        name: "case-insensitive",
        help: "compare names without case, as a Mac does: README and Readme are the same"),
    ],
    details: [
      """
      Root's store is for all users of the machine, another user's for that user alone, without root.
      """
    ],
    examples: ["sudo insula init", "insula init ~/my-store"])

  private let store: String?
  private let adminGroup: String?
  private let allowsWritableCode: Bool
  private let allowsDirectStart: Bool
  private let offersAllMusic: Bool
  private let appUmask: UInt32
  private let showsExtensions: Bool
  private let ignoresCase: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    store = arguments.argument(0)
    adminGroup = arguments.value("admin-group")
    allowsWritableCode = arguments.has("allow-writable-code")
    allowsDirectStart = arguments.has("allow-direct-start")
    offersAllMusic = arguments.has("all-music")
    let umask = arguments.value("app-umask") ?? String(StoreDescription.usualAppUmask, radix: 8)
    guard let mode = UInt32(umask, radix: 8), mode <= 0o777, !umask.hasPrefix("+") else {
      throw Self.description.error(
        "'\(umask)' is no mode for '--app-umask'; give three octal digits such as 022")
    }
    appUmask = mode
    showsExtensions = arguments.has("show-extensions")
    ignoresCase = arguments.has("case-insensitive")
  }

  func run(in context: Context) throws -> ExitCode {
    // As far as it is missing, as XDG says; the way to another store is the person's own.
    if store == nil, let end = context.defaultStore.utf8.lastIndex(of: UInt8(ascii: "/")) {
      Context.makeDirectories(String(context.defaultStore[..<end]))
    }
    let path = context.absolute(store ?? context.defaultStore)
    let group = try chooseGroup(context)
    let description = StoreDescription(
      mode: context.isRoot ? .system : .rootless, adminGroup: group, allowsWritableCode: allowsWritableCode,
      allowsDirectStart: allowsDirectStart, offersAllMusic: offersAllMusic,
      showsExtensions: showsExtensions, appUmask: appUmask, ignoresCase: ignoresCase)
    try Store.create(at: path, description)
    let whose = context.isRoot ? "for all users, administered by the group \(group.name)" : "for you alone"
    context.console.say("Created the store \(path) (\(whose)).")
    let command = store == nil ? "insula mount" : "insula mount \(path)"
    context.console.say("Mount it with '\(command)'.")
    return .ok
  }

  private func chooseGroup(_ context: Context) throws(UsageError) -> StoreDescription.AdminGroup {
    if let adminGroup = adminGroup ?? (context.isRoot ? context.value(.adminGroup) : nil) {
      guard let group = AccountGroup.named(adminGroup) else {
        let place = self.adminGroup == nil ? ", which \(context.setting(.adminGroup).origin.words) names" : ""
        throw Self.description.error(
          "this machine has no group '\(adminGroup)'\(place) ('getent group' lists them)")
      }
      guard context.isRoot || group.gid == ProcessID.group else {
        throw Self.description.error(
          "a rootless store is for its user alone, so it can't have another admin group")
      }
      return .init(name: group.name, gid: group.gid)
    }
    guard context.isRoot else {
      let gid = ProcessID.group
      return .init(name: AccountGroup.numbered(gid)?.name ?? "\(gid)", gid: gid)
    }
    for name in ["sudo", "wheel"] {
      if let group = AccountGroup.named(name) { return .init(name: group.name, gid: group.gid) }
    }
    context.console.note(
      "this machine has neither a group 'sudo' nor 'wheel', so only root can administer the tree; "
        + "choose another group with --admin-group")
    return .init(name: "root", gid: 0)
  }
}
