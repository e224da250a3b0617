// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store

/// `insula update`.
struct UpdateCommand: Command {
  static let description = CommandDescription(
    name: "update", summary: "Replaces an installed app by another version; its containers stay.",
    arguments: [
      .init(
        name: "BUNDLE", help: "a signed bundle of the same app and team, or a file of 'insula pack'",
        isRequired: true, kind: .file)
    ],
    options: [
      AppDomain.homeOption,
      .init(name: "allow-downgrade", help: "allow an older version, or the same version again"),
      AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      """
      The update happens in one step: either the new version is installed completely, or the old one stays. A
      running app is not updated; the message says whose it is. End it first with 'insula kill ID'.
      """,
      Context.bundleForms,
    ],
    examples: ["sudo insula update Notes.app", "sudo insula update Notes.app.tar"])

  private let bundle: String
  private let user: String?
  private let store: String?
  private let allowsDowngrade: Bool
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    bundle = arguments.argument(0) ?? ""
    user = arguments.value("user")
    store = arguments.value("store")
    allowsDowngrade = arguments.has("allow-downgrade")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let source = try context.openBundleSource(bundle)
    let access = try AppsAccess.find(store, writing: true, context)
    let (before, now, left) = try context.withBundle(source) { (directory, name) in
      try access.update(
        directory, named: name, for: AppDomain(home: user), allowingDowngrade: allowsDowngrade)
    }
    left.tell(in: access.root, context.console)
    if json {
      context.console.print(json: ["before": before, "now": now])
    } else {
      context.console.say("Updated \(now.name.sanitized) from \(before.release) to \(now.release).")
    }
    return .ok
  }
}
