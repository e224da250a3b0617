// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy

/// `insula deliver`.
struct DeliverCommand: Command {
  static let description = CommandDescription(
    name: "deliver", summary: "Puts copies of files into an app's Inbox, and prints their paths.",
    arguments: [
      .init(name: "ID", help: "the app's identifier or name", isRequired: true, kind: .app),
      .init(
        name: "FILE", help: "a file, or a directory that is a single document", isRequired: true, kind: .file,
        isRepeated: true),
    ],
    options: [AppsAccess.userOption, AppsAccess.storeOption],
    details: [
      """
      The first delivery creates the Inbox. If a name is taken, the copy gets a number: 'Letter-2.txt'. Files
      in an Inbox can be read, removed and moved elsewhere, but nobody, including the app, can change them
      there.
      """
    ],
    examples: ["insula deliver com.example.editor Letter.txt"],
    becomesUser: true)

  private let app: AppReference
  private let files: [String]
  private let user: String?
  private let store: String?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    app = try Self.description.app(arguments.argument(0))
    files = Array(arguments.positional.dropFirst())
    user = arguments.value("user")
    store = arguments.value("store")
  }

  func run(in context: Context) throws -> ExitCode {
    if let done = try ActingCommand.onMount(
      of: store, for: user, context,
      {
        ["deliver", "--store", $0, "--", app.text] + files.map(context.unresolved)
      })
    {
      return done
    }
    let uid = try AppsAccess.user(user, context)
    let access = try AppsAccess.find(store, writing: true, context)
    let identifier = try access.identifier(of: app, for: uid)
    let installed = try access.app(identifier, for: uid ?? context.uid)
    let container = try access.container(of: installed, for: uid)
    var failures = 0
    for file in files {
      do {
        let delivered = try access.deliver(context.find(file), to: container)
        context.console.print(path: "\(access.root)/\(delivered)")
      } catch {
        failures += 1
        context.console.note("\(file): \(CommandFailure(error).message)")
      }
    }
    return failures == 0 ? .ok : .failed
  }
}

extension StoreAccess {
  /// Puts a copy of a file into an app's Inbox, and gives where that is, below ``root``.
  ///
  /// The copy is made as whoever runs this; into the Inbox it is put by the daemon, under the name that the
  /// file really has.
  func deliver(_ file: FoundObject, to container: AppContainer) throws -> String {
    let prepared = try file.object.use { (object) throws(Errno) in
      Result { try container.prepareDelivery(of: object, named: file.name) }
    }
    let copy = try prepared.get()
    do {
      return try deliver(copy.delivery)
    } catch {
      container.discard(copy)
      throw error
    }
  }
}
