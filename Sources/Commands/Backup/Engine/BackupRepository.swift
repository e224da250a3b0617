// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// Where backups are kept, and where its password is.
///
/// A password is never a word of a command line, which all users of the machine can read.
struct BackupRepository {
  static let options: [CommandDescription.Option] = [
    .init(
      name: "repository", short: "r", value: "REPOSITORY",
      help: "where the backups are (default: backup.repository of the configuration)", kind: .directory),
    .init(
      name: "password-file", value: "FILE", help: "a file whose first line is the password", kind: .file),
    .init(name: "password-command", value: "COMMAND", help: "a command that prints the password"),
  ]

  /// Where the password comes from.
  enum Password: Equatable {
    /// From a variable that restic knows.
    case environment
    case file(String)
    case command(String)
    /// A person has typed it.
    case typed(String)
  }

  /// What an option says.
  struct Named {
    var address: String?
    private let file: String?
    private let command: String?

    init(_ arguments: ParsedArguments, _ description: CommandDescription) throws(UsageError) {
      address = arguments.value("repository")
      file = arguments.value("password-file")
      command = arguments.value("password-command")
      if file != nil, command != nil {
        throw description.error("'--password-file' and '--password-command' can't be combined; give one")
      }
    }

    /// The options that say it again, with paths from the root.
    func password(_ context: Context) -> Password? {
      file.map { .file(context.absolute($0)) } ?? command.map { .command($0) }
    }
  }

  /// As restic knows it; nil if a variable says it.
  let address: String?
  let password: Password

  /// Finds what is meant by what was named, the environment and the configuration, in this order.
  init(_ named: Named, _ context: Context, isNew: Bool = false) throws {
    if let text = named.address {
      address = Self.address(text, context)
    } else if ["RESTIC_REPOSITORY", "RESTIC_REPOSITORY_FILE"].contains(where: { context.isSet($0) }) {
      address = nil
    } else if let text = context.ownValue(.backupRepository) {
      address = Self.address(text, context)
    } else {
      throw CommandFailure(
        .usage,
        "no repository is configured; 'insula backup init REPOSITORY' creates one, and '--repository' names "
          + "one that there is")
    }
    let variables = ["RESTIC_PASSWORD", "RESTIC_PASSWORD_FILE", "RESTIC_PASSWORD_COMMAND"]
    if let password = named.password(context) {
      self.password = password
    } else if variables.contains(where: { context.isSet($0) }) {
      password = .environment
    } else if let file = context.ownValue(.backupPasswordFile) {
      password = .file(file)
    } else if let command = context.ownValue(.backupPasswordCommand) {
      password = .command(command)
    } else {
      let typed = try TypedPassword.ask(
        isNew: isNew, of: "the repository", instead: "'--password-file' or '--password-command'", context)
      password = .typed(String(decoding: typed, as: UTF8.self))
    }
    if case .file(let path) = password { try Self.check(path, context) }
  }

  /// A path becomes one from the root: a backup is made in another working directory.
  private static func address(_ text: String, _ context: Context) -> String {
    isLocal(text) ? context.absolute(text) : text
  }

  /// Whether it is a directory: all others begin with the name of a protocol.
  private static func isLocal(_ text: String) -> Bool {
    let name = text.prefix { $0 != ":" }
    return name.count == text.count || name.utf8.contains(UInt8(ascii: "/")) || name.isEmpty
  }

  /// Throws if there is no password in that file; restic would take an empty one for a wrong one.
  private static func check(_ path: String, _ context: Context) throws {
    let bytes: [UInt8]
    do throws(CommandFailure) {
      let file = try context.openToRead(path)
      bytes = try file.fd.firstBytes(4096)
    } catch {
      throw CommandFailure(
        error.code, "the password of the repository: \(error.message); '--password-file' names another file")
    }
    if bytes.prefix(while: { $0 != 10 && $0 != 13 }).isEmpty {
      throw CommandFailure(
        .failed,
        "the password of the repository: the first line of \(path.sanitized) is empty; write it there")
    }
  }

  /// For messages: without a password that may stand in an address.
  var shown: String {
    guard let address else { return "the repository" }
    let parts = address.parts(between: "@", max: 1, keepingEmpty: true)
    guard parts.count == 2, let slash = parts[0].utf8.lastIndex(of: UInt8(ascii: "/")) else {
      return address.sanitized
    }
    // 'rest:https://anna:secret@example.org/' has one after the second colon.
    let account = parts[0][slash...].prefix { $0 != ":" }
    return (parts[0][..<slash] + account + "@" + parts[1]).sanitized
  }

  /// Throws for one in the tree that it would hold a backup of; a volume of the tree is another disk.
  func requireOutside(of trees: [String]) throws {
    guard let address, Self.isLocal(address), !isOnVolume(address),
      trees.contains(where: { "\(address)/".utf8.starts(with: "\($0)/".utf8) })
        || DaemonSearch.mount(containing: address) != nil
    else { return }
    throw CommandFailure(
      .failed,
      "the repository \(shown) is in the tree that is backed up; a backup belongs on another disk or machine")
  }

  /// Whether it is below a volume in a mounted tree, which no backup contains.
  private func isOnVolume(_ address: String) -> Bool {
    guard let mount = DaemonSearch.mount(containing: address),
      "\(address)/".utf8.starts(with: "\(mount.mountPoint)/".utf8)
    else { return false }
    let names = address.utf8.dropFirst(mount.mountPoint.utf8.count).split(separator: UInt8(ascii: "/"))
    return names.count > 2 && BackupSet.reason(at: names.map { Array($0) }) == .volumes
  }

  /// Throws for a directory that is not there, before anything long is done.
  func requireThere() throws {
    guard let address, Self.isLocal(address), (try? FD.cwd.openFollowing(address, pathOnly)) == nil else {
      return
    }
    throw CommandFailure(
      .failed,
      "there is no repository at \(shown); mount the disk that it is on, or create one with "
        + "'insula backup init'"
    )
  }
}

extension FD {
  fileprivate func firstBytes(_ count: Int) throws(CommandFailure) -> [UInt8] {
    do throws(Errno) { return try readToEnd(limit: count) } catch {
      throw CommandFailure(error, "can't be read: \(error.message)")
    }
  }
}

extension Context {
  /// Whether a variable says something.
  func isSet(_ variable: String) -> Bool { environment[variable].map { !$0.isEmpty } ?? false }

  /// What the file of whoever runs this says of a key: what is root's own is not every user's.
  func ownValue(_ key: ConfigurationKey) -> String? {
    guard case .file(let path, _) = setting(key).origin,
      path == (ConfigurationFile.own(self) ?? .machines(self)).path
    else { return nil }
    return value(key)
  }
}
