// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// Something that a configuration file may set.
///
/// The reader, `insula config`, insula.conf(5), the help and the completions are made of `all`.
struct ConfigurationKey: Sendable {
  let section: Section
  let name: String
  let kind: ConfigurationValue
  let help: String
  /// What counts where no file says anything; the help says the same in words.
  let builtIn: @Sendable (Context) -> String
  let builtInWords: String
  /// A variable that comes before the files, with what it says.
  var environment: @Sendable (Context) -> (variable: String, value: String)? = { _ in nil }

  /// As `insula config` calls it.
  var path: String { "\(section.rawValue).\(name)" }

  /// What belongs together, under one heading of a file.
  enum Section: String, Sendable, CaseIterable {
    case machine, user, mount, sign, agent, backup

    /// What its keys are about, and whose file may have them.
    var help: String {
      switch self {
      case .machine: "what root decides for all; only in the machine's file"
      case .user: "the places of an ordinary user; root has those of [machine]"
      case .mount: "for 'insula mount'"
      case .sign: "for 'insula sign' and 'insula system sign'"
      case .agent: "for questions at a terminal; root goes by the machine's file, all others by their own"
      case .backup: "for 'insula backup'; root goes by the machine's file, all others by their own"
      }
    }

    /// Whether a user's file has no say in it.
    var isMachinesAlone: Bool { self == .machine }
  }
}

extension ConfigurationKey {
  static let all = [
    machineStore, machineMountPoint, adminGroup, userStore, userMountPoint, mountOptions, identity,
    promptWord, backupRepository, backupPasswordFile, backupPasswordCommand, backupKeep,
  ]

  static let machineStore = ConfigurationKey(
    section: .machine, name: "store", kind: .path,
    help: "root's store, which is also meant by users who have none of their own",
    builtIn: { $0.builtInMachineStore }, builtInWords: "/var/lib/insula")

  static let machineMountPoint = ConfigurationKey(
    section: .machine, name: "mount-point", kind: .path, help: "where root's store is mounted",
    builtIn: { _ in "/insula" }, builtInWords: "/insula")

  static let adminGroup = ConfigurationKey(
    section: .machine, name: "admin-group", kind: .name("a group of this machine"),
    help: "the group that administers a store that root creates with 'insula init'",
    builtIn: { _ in "" }, builtInWords: "sudo, else wheel")

  static let userStore = ConfigurationKey(
    section: .user, name: "store", kind: .pathOrInHome, help: "the user's store",
    builtIn: { $0.home + "/.local/share/insula" }, builtInWords: "~/.local/share/insula",
    environment: { context in
      guard let data = context.environment["XDG_DATA_HOME"], data.begins(with: "/") else { return nil }
      return ("XDG_DATA_HOME", data + "/insula")
    })

  static let userMountPoint = ConfigurationKey(
    section: .user, name: "mount-point", kind: .pathOrInHome, help: "where the user's store is mounted",
    builtIn: { $0.home + "/Insula" }, builtInWords: "~/Insula")

  static let mountOptions = ConfigurationKey(
    section: .mount, name: "options", kind: .mountOptions,
    help: "mount options, as for '-o', which come before those of the command line",
    builtIn: { _ in "" }, builtInWords: "none")

  static let identity = ConfigurationKey(
    section: .sign, name: "identity",
    kind: .name("the name of an identity; 'insula identity list' lists them"),
    help: "the identity to sign with", builtIn: { _ in "" }, builtInWords: "your only one")

  static let promptWord = ConfigurationKey(
    section: .agent, name: "word", kind: .name("a word that no app can guess"),
    help: "your own word, which stands in each question that Insula asks you at a terminal: "
      + "where it is missing, an app may be asking",
    builtIn: { _ in "" }, builtInWords: "none")

  static let backupRepository = ConfigurationKey(
    section: .backup, name: "repository",
    kind: .name("a directory, or an address that restic knows, such as 'sftp:user@host:path'"),
    help: "where backups are kept; 'insula backup init' notes it", builtIn: { _ in "" }, builtInWords: "none")

  static let backupPasswordFile = ConfigurationKey(
    section: .backup, name: "password-file", kind: .pathOrInHome,
    help: "a file whose first line is the password of the repository", builtIn: { _ in "" },
    builtInWords: "you are asked")

  static let backupPasswordCommand = ConfigurationKey(
    section: .backup, name: "password-command", kind: .name("a command that prints the password"),
    help: "a command that prints the password of the repository", builtIn: { _ in "" },
    builtInWords: "you are asked")

  static let backupKeep = ConfigurationKey(
    section: .backup, name: "keep", kind: .backupKeep, help: "which backups 'insula backup forget' keeps",
    builtIn: { _ in BackupKeep.standard }, builtInWords: BackupKeep.standard)
}
