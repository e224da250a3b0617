// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy

/// `insula export`.
struct ExportCommand: Command {
  static let description = CommandDescription(
    name: "export", summary: "Copies an app's data to a package, as Xcode exports containers.",
    arguments: [
      .init(name: "ID", help: "the app's identifier or name", isRequired: true, kind: .app),
      .init(
        name: "FILE.xcappdata", help: "the package to create, which must not exist", isRequired: true,
        kind: .file),
    ],
    options: [AppsAccess.userOption, AppsAccess.storeOption],
    details: [
      """
      The package is a directory. ACLs and flags are in extended attributes of its files, so copy it with a
      tool that keeps those: 'cp -a', 'rsync -aX' or 'tar --xattrs'. It does not include the containers of
      groups and of iCloud.
      """
    ],
    examples: ["insula export com.example.editor ~/Editor.xcappdata"],
    becomesUser: true)

  private let app: AppReference
  private let target: String
  private let user: String?
  private let store: String?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    app = try Self.description.app(arguments.argument(0))
    let path = arguments.argument(1) ?? ""
    target = path.count > 1 && path.ends(with: "/") ? String(path.dropLast()) : path
    guard target.hasSuffix(".\(DataPackage.nameExtension)") else {
      throw Self.description.error(
        "a package's name must end in .\(DataPackage.nameExtension): '\(target).\(DataPackage.nameExtension)'"
      )
    }
    user = arguments.value("user")
    store = arguments.value("store")
  }

  func run(in context: Context) throws -> ExitCode {
    if let done = try ActingCommand.onMount(
      of: store, for: user, context,
      {
        ["export", "--store", $0, "--", app.text, context.absolute(target)]
      })
    {
      return done
    }
    let uid = try AppsAccess.user(user, context)
    let access = try AppsAccess.find(store, writing: true, context)
    let identifier = try access.identifier(of: app, for: uid)
    let installed = try access.app(identifier, for: uid ?? context.uid)
    let container = try access.container(of: installed, for: uid)
    let (parent, name) = try context.unresolved(target).splitAtFile()
    let directory = try context.openDirectoryToMake(in: parent)
    let report = try CopyProgress.show("exporting", context.console) { note in
      try container.export(installed, to: name, in: directory.fd, at: parent, progress: note)
    }
    report.tell(context.console)
    context.console.say("Exported the data of \(installed.identifier) to \(target) (\(report.words)).")
    return .ok
  }
}
