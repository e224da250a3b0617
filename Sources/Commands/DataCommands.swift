// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import CLinux
internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization

/// `insula deliver`.
struct DeliverCommand: Command {
  static let description = CommandDescription(
    name: "deliver", summary: "Puts copies of files into an app's Inbox, and prints where they are.",
    arguments: [
      .init(name: "ID", help: "the app's identifier", isRequired: true),
      .init(
        name: "FILE", help: "a file, or a directory that is one document", isRequired: true, kind: .file,
        isRepeated: true),
    ],
    options: [AppsAccess.userOption, AppsAccess.storeOption],
    details: [
      "The Inbox is made for the first delivery. "
        + "A name that is taken gets a number: 'Letter-2.txt'. What is in an\n"
        + "Inbox can be read, removed and moved away, and not be changed there, by the app or by anyone else."
    ],
    examples: ["insula deliver com.example.editor Letter.txt"])

  private let identifier: AppIdentifier
  private let files: [String]
  private let user: String?
  private let store: String?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    identifier = try Self.description.identifier(arguments.argument(0))
    files = Array(arguments.positional.dropFirst())
    user = arguments.value("user")
    store = arguments.value("store")
  }

  func run(in context: Context) throws -> ExitCode {
    if let done = try ActingCommand.onMount(
      of: store, for: user, context,
      {
        ["deliver", "--store", $0, "--", identifier.text] + files.map(context.absolute)
      })
    {
      return done
    }
    let uid = try AppsAccess.user(user, context)
    let access = try AppsAccess.find(store, writing: true, context)
    let container = try access.container(identifier, for: uid, context)
    var failures = 0
    for file in files {
      do {
        // What a link leads to is what is meant, under the name that it really has.
        let full = context.absolute(file)
        let (parent, name) = try full.splitAtFile()
        let directory = try context.openDirectory(parent)
        let delivered = try deliver(name, in: directory.fd, to: container, access, context)
        context.console.print(path: "\(access.root)/\(delivered)")
      } catch {
        failures += 1
        context.console.note("\(file): \(CommandFailure(error).message)")
      }
    }
    return failures == 0 ? .ok : .failed
  }

  /// The copy is made as whoever runs this; into the Inbox it is put by the daemon.
  private func deliver(
    _ name: String, in directory: FD, to container: AppContainer, _ access: AppsAccess, _ context: Context
  ) throws -> String {
    let delivery = try container.prepareDelivery(of: name, in: directory)
    do {
      let order = AppOrder(delivery)
      guard let path = try access.renewed(context).perform(order, on: nil, context).path else {
        throw AppsAccess.noAnswer
      }
      return path
    } catch {
      container.discard(delivery)
      throw error
    }
  }
}

/// `insula export`.
struct ExportCommand: Command {
  static let description = CommandDescription(
    name: "export", summary: "Copies an app's data to a package, as Xcode exports containers.",
    arguments: [
      .init(name: "ID", help: "the app's identifier", isRequired: true),
      .init(name: "FILE.xcappdata", help: "the package, which must not exist", isRequired: true, kind: .file),
    ],
    options: [AppsAccess.userOption, AppsAccess.storeOption],
    details: [
      "The package is a directory. Access control lists and "
        + "flags are in attributes of its files, so take it\n"
        + "elsewhere with what keeps those: 'cp -a', 'rsync -aX', "
        + "'tar --xattrs'. Containers of groups and iCloud\n"
        + "are not in it."
    ],
    examples: ["insula export com.example.editor ~/Editor.xcappdata"])

  private let identifier: AppIdentifier
  private let target: String
  private let user: String?
  private let store: String?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    identifier = try Self.description.identifier(arguments.argument(0))
    let path = arguments.argument(1) ?? ""
    target = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    guard target.hasSuffix(".\(DataPackage.nameExtension)") else {
      throw Self.description.error(
        "a package's name ends in .\(DataPackage.nameExtension): '\(target).\(DataPackage.nameExtension)'")
    }
    user = arguments.value("user")
    store = arguments.value("store")
  }

  func run(in context: Context) throws -> ExitCode {
    if let done = try ActingCommand.onMount(
      of: store, for: user, context,
      {
        ["export", "--store", $0, "--", identifier.text, context.absolute(target)]
      })
    {
      return done
    }
    let uid = try AppsAccess.user(user, context)
    let access = try AppsAccess.find(store, writing: true, context)
    let app = try access.app(identifier, for: uid ?? context.uid, context)
    let container = try access.container(identifier, for: uid, context)
    let (parent, name) = try context.absolute(target).splitAtFile()
    let directory = try context.openDirectory(parent)
    let report = try CopyProgress.show(context.console, "exporting") { progress in
      try container.export(app, to: name, in: directory.fd, at: parent) { progress.note($0) }
    }
    report.tell(context.console)
    context.console.print("Exported the data of \(app.identifier) to \(target) (\(report.words)).")
    return .ok
  }
}

/// `insula import`.
struct ImportCommand: Command {
  static let description = CommandDescription(
    name: "import", summary: "Replaces an app's data by those of a package.",
    arguments: [.init(name: "FILE.xcappdata", help: "the package", isRequired: true, kind: .directory)],
    options: [
      .init(name: "replace", help: "even if the app has data, which are deleted"),
      .init(name: "to", value: "ID", help: "give them to this app (default: the one whose they were)"),
      AppsAccess.userOption, AppsAccess.storeOption,
    ],
    details: [
      "The container keeps its identity. The app must be installed; "
        + "it should not be running. All of the data is\n"
        + "replaced in one step, or nothing."
    ],
    examples: ["insula import ~/Editor.xcappdata --replace"])

  private let source: String
  private let replaces: Bool
  private let identifier: AppIdentifier?
  private let user: String?
  private let store: String?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    source = arguments.argument(0) ?? ""
    replaces = arguments.has("replace")
    identifier = try arguments.value("to").map { (text) throws(UsageError) in
      try Self.description.identifier(text)
    }
    user = arguments.value("user")
    store = arguments.value("store")
  }

  func run(in context: Context) throws -> ExitCode {
    if let done = try ActingCommand.onMount(
      of: store, for: user, context,
      {
        ["import", "--store", $0] + (replaces ? ["--replace"] : [])
          + (identifier.map { ["--to", $0.text] } ?? []) + ["--", context.absolute(source)]
      })
    {
      return done
    }
    let uid = try AppsAccess.user(user, context)
    let directory = try context.openDirectory(source)
    let package = try DataPackage(directory.fd, path: source)
    let access = try AppsAccess.find(store, writing: true, context)
    let container: AppContainer
    do {
      container = try access.container(identifier ?? package.identifier, for: uid, context)
    } catch StoreError.noApp where identifier == nil {
      throw DataFailure.otherApp(path: source, identifier: package.identifier.text)
    }
    let report = try CopyProgress.show(context.console, "importing") { progress in
      try container.importData(from: package, replacing: replaces) {
        progress.note($0)
      } exchange: { new in
        _ = try access.renewed(context).perform(AppOrder(new), on: nil, context)
      }
    }
    report.tell(context.console)
    context.console.print(
      "Imported \(source) as the data of \(identifier ?? package.identifier) (\(report.words)).")
    return .ok
  }
}

extension ActingCommand {
  /// Has a command carried out by the user that root names, where the store is mounted; nil otherwise.
  ///
  /// What is done in a home while its owner can be at work there is done by them. `words` gets the mount
  /// point.
  fileprivate static func onMount(
    of store: String?, for user: String?, _ context: Context, _ words: (String) -> [String]
  ) throws -> ExitCode? {
    guard let account = try account(user, context) else { return nil }
    let paths = store.map { [$0] } ?? [context.defaultMountPoint, context.defaultStore]
    for path in paths.map(context.absolute) {
      guard let mount = DaemonSearch.mount(at: path) ?? DaemonSearch.mount(ofStore: path) else { continue }
      return try perform(words(mount.mountPoint), as: account, context)
    }
    return nil
  }
}

extension AppsAccess {
  /// Opens an app's container; what is missing of it is made.
  fileprivate func container(
    _ identifier: AppIdentifier, for user: UInt32?, _ context: Context
  ) throws -> AppContainer {
    let home = try path(of: .home, identifier, for: user, context)
    let container = String(home.dropLast(ContainerLayout.dataName.utf8.count + 1))
    switch self {
    case .store(let store):
      let metadata = Metadata(isSystem: store.description.mode == .system)
      return try AppContainer(container, in: store.tree, at: root, access: .store(metadata))
    case .daemon(_, let status):
      guard user == nil || user == context.uid else {
        throw CommandFailure(
          .busy,
          "the store \(status.store) is mounted at \(status.mountPoint), "
            + "which can't be seen from here; run this where it can, or "
            + "unmount it first")
      }
      let tree = try context.openDirectory(root)
      return try AppContainer(container, in: tree.fd, at: root, access: .mount)
    }
  }
}

extension String {
  /// The directory that an absolute path leads to, and the name in it.
  fileprivate func splitAtFile() throws(CommandFailure) -> (parent: String, name: String) {
    let (above, name) = splitAtName
    guard !name.isEmpty, name != ".", name != ".." else {
      throw CommandFailure(.usage, "it is no file and no directory with a name of its own; name one that is")
    }
    return ("/" + above, name)
  }
}

/// How far a copy of data is, for whoever looks at a terminal.
private final class CopyProgress: Sendable {
  private let count = Mutex<TreeCopy.Count?>(nil)

  static func show<Result>(
    _ console: Console, _ words: String, _ body: (CopyProgress) throws -> Result
  ) rethrows -> Result {
    let progress = CopyProgress()
    return try ProgressLine.show(console, { "\(words): \(progress.text)" }) { try body(progress) }
  }

  func note(_ count: TreeCopy.Count) { self.count.withLock { $0 = count } }

  private var text: String {
    guard let count = count.withLock({ $0 }) else { return "looking" }
    return "\(count.files) files, \(Int(clamping: count.bytes).asSize)"
  }
}

extension DataReport {
  fileprivate var words: String {
    func number(_ count: Int, _ one: String, _ many: String) -> String {
      "\(count) \(count == 1 ? one : many)"
    }
    return number(count.files, "file", "files") + ", " + number(count.links, "link", "links") + ", "
      + "\(count.bytes) bytes"
  }

  /// Says what did not come over.
  fileprivate func tell(_ console: Console) {
    for omission in omissions { console.note("\(omission.path): \(omission.reason)") }
  }
}
