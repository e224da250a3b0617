// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy

/// Whether an app's data are backed up: a mark on its container.
struct BackupSwitch {
  private let app: AppReference
  private let user: String?
  private let store: String?

  init(_ arguments: ParsedArguments, _ description: CommandDescription) throws(UsageError) {
    app = try description.app(arguments.argument(0))
    user = arguments.value("user")
    store = arguments.value("store")
  }

  static let arguments = [
    CommandDescription.Argument(
      name: "ID", help: "the app's identifier or name", isRequired: true, kind: .app)
  ]
  static let options = [AppsAccess.userOption, AppsAccess.storeOption]

  func set(isBackedUp: Bool, _ context: Context) throws -> ExitCode {
    let user = try AppsAccess.user(user, context)
    let access = try AppsAccess.find(store, context)
    // A store that is not mounted shows no attributes as they are to be.
    _ = try access.runner()
    let identifier = try access.identifier(of: app, for: user)
    let path = try access.pathOfContainer(identifier, for: user ?? context.uid)
    let container: OwnedFD
    do throws(Errno) {
      let root = try FD.cwd.open(access.root, pathOnly | O_DIRECTORY)
      container = try root.fd.openDirectory(at: path)
    } catch {
      throw CommandFailure(error, "can't open the container of \(identifier): \(error.message)")
    }
    let file = MarkedFile(container.fd)
    if isBackedUp { try file.include() } else { try file.exclude() }
    context.console.say(
      isBackedUp ? "\(identifier) is backed up." : "\(identifier) is not backed up any more.")
    return .ok
  }
}
