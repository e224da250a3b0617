// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Store

/// The program: finds the verb, runs it, prints what went wrong.
package enum Insula {
  static let version = "0.1.0"

  /// All verbs, in the order of the help: a verb is found, in help and in the manual, by being
  /// in a group.
  static let groups = [
    CommandGroup(
      title: "Store",
      commands: [
        InitCommand.self, MountCommand.self, UnmountCommand.self, RestartCommand.self, StatusCommand.self,
        UserAddCommand.self, UserListCommand.self, UserRemoveCommand.self,
      ]),
    CommandGroup(
      title: "Apps",
      commands: [
        InstallCommand.self, UpdateCommand.self, UninstallCommand.self, AppsCommand.self, InfoCommand.self,
        RunCommand.self, ProcessesCommand.self, TopCommand.self, KillCommand.self,
      ]),
    CommandGroup(
      title: "Data",
      commands: [
        DeliverCommand.self, ExportCommand.self, ImportCommand.self, PurgeCommand.self, StorageCommand.self,
        RemovedListCommand.self, RemovedRestoreCommand.self, RemovedDeleteCommand.self,
        GrantCommand.self, GrantsCommand.self, RevokeCommand.self,
      ]),
    CommandGroup(
      title: "Backup",
      commands: [
        BackupInitCommand.self, BackupNowCommand.self, BackupListCommand.self, BackupRestoreCommand.self,
        BackupForgetCommand.self, BackupCheckCommand.self, BackupExportCommand.self, BackupImportCommand.self,
      ]),
    CommandGroup(
      title: "Backup set",
      commands: [
        BackupRunCommand.self, BackupExcludeCommand.self, BackupIncludeCommand.self, BackupWhyCommand.self,
        BackupOffCommand.self, BackupOnCommand.self,
      ]),
    CommandGroup(
      title: "Volumes",
      commands: [
        VolumeAddCommand.self, VolumeCreateCommand.self, VolumeUnlockCommand.self, VolumeLockCommand.self,
        VolumeListCommand.self, VolumeInfoCommand.self, VolumeConfirmCommand.self, VolumeEjectCommand.self,
      ]),
    CommandGroup(
      title: "Network",
      commands: [
        NetworkListCommand.self, NetworkJoinCommand.self, NetworkUpdateCommand.self, NetworkLeaveCommand.self,
      ]),
    CommandGroup(
      title: "Consent",
      commands: [
        ConsentListCommand.self, ConsentAllowCommand.self, ConsentDenyCommand.self, ConsentResetCommand.self,
        ConsentStatusCommand.self, ConsentRequestCommand.self, AgentCommand.self, OpenPanelCommand.self,
      ]),
    CommandGroup(
      title: "Private data",
      commands: [
        SongsCommand.self, ContactsCommand.self, EventsCommand.self, RemindersCommand.self,
        AddPhotoCommand.self,
      ]),
    CommandGroup(
      title: "System",
      commands: [
        SystemSignCommand.self, SystemUpdateCommand.self, SystemRollbackCommand.self, SystemInfoCommand.self,
        SystemVerifyCommand.self,
      ]),
    CommandGroup(
      title: "Files",
      commands: [
        OpenCommand.self, OpenedCommand.self, HandlersCommand.self, TypeCommand.self, TypesCommand.self,
        ACLCommand.self,
        FlagsCommand.self, ListCommand.self, NameCommand.self, PathCommand.self, ShareCommand.self,
        DefaultsReadCommand.self,
        DefaultsWriteCommand.self, DefaultsDeleteCommand.self, DefaultsDomainsCommand.self,
      ]),
    CommandGroup(
      title: "Signing",
      commands: [
        NewAppCommand.self, IdentityNewCommand.self, IdentityListCommand.self, IdentityExportCommand.self,
        IdentityImportCommand.self, TrustAddCommand.self, TrustListCommand.self, TrustRemoveCommand.self,
        SignCommand.self, VerifyCommand.self, PackCommand.self, IndexCommand.self,
      ]),
    CommandGroup(
      title: "Machine",
      commands: [
        DoctorCommand.self, CheckCommand.self, LogCommand.self, TraceCommand.self, ConfigCommand.self,
        CompletionsCommand.self, HelpCommand.self, VersionCommand.self,
      ]),
  ]

  /// All verbs, in the same order.
  static let commands: [any Command.Type] = groups.flatMap(\.commands)

  /// Other words for the verbs.
  static let aliases = [
    "umount": "unmount", "completion": "completions", "--help": "help", "-h": "help", "--version": "version",
  ]

  /// Runs the program, and returns its exit status.
  package static func main() -> Int32 {
    // A descriptor that we open must never become someone's standard output.
    while let null = try? FD.cwd.openFollowing("/dev/null", O_RDWR) {
      if null.fd.raw > 2 { break }
      _ = null.release()
    }
    // Started as /proc/self/exe, it would be "exe" to ps and pkill. Corresponds to `prctl(2)` with
    // PR_SET_NAME.
    "insula".withCString { _ = clx_prctl(15, UInt(bitPattern: $0)) }
    if CommandLine.argc == 2, CommandLine.unsafeArgv[1].map({ strcmp($0, ItemParser.word) }) == 0 {
      return ItemParser.serve()
    }
    guard let words = arguments() else { return ExitCode.usage.rawValue }
    let context = Context.current()
    tellOfLeases(context.console)
    let status = run(words, in: context)
    guard status == .ok else { return status.rawValue }
    return (context.console.tellFailure() ?? status).rawValue
  }

  private static func tellOfLeases(_ console: Console) {
    StoreLease.whenWaiting { host, seconds in
      console.note("waiting up to \(seconds) s for the store: \(host) has used it, and may still do so")
    }
    StoreLease.whenLost {
      console.note(
        "the lease on the store is over, so this command ends; what it has begun is completed or taken back "
          + "when the store is next opened")
      _exit(ExitCode.busy.rawValue)
    }
  }

  /// The words after the program's name, or nil with a message if one of them is not UTF-8.
  private static func arguments() -> [String]? {
    var words: [String] = []
    for index in 1..<max(1, Int(CommandLine.argc)) {
      guard let bytes = CommandLine.unsafeArgv[index] else { break }
      guard let word = String(validatingCString: bytes) else {
        var console = Context.current().console
        console.manner.isJSON = words.contains("--json") && !words.contains("--")
        console.note(
          CommandFailure(
            .usage, "argument \(index) ('\(String(cString: bytes))') is not UTF-8; arguments must be"))
        return nil
      }
      words.append(word)
    }
    return words
  }

  static func run(_ words: [String], in context: Context) -> ExitCode {
    var context = context
    context.console.manner.isJSON = words.prefix { $0 != "--" }.contains("--json")
    do {
      guard let (command, rest) = try find(words) else {
        context.console.print(text: HelpText.overview())
        return .usage
      }
      let description = command.description
      if !description.options.contains(where: { $0.name == "json" }) { context.console.manner.isJSON = false }
      let arguments = try ParsedArguments(rest, for: description)
      if arguments.wantsHelp {
        context.console.print(text: HelpText.text(for: description))
        return .ok
      }
      if context.appSocket != nil, !command.worksInApps {
        throw CommandFailure(
          .notPermitted,
          "'insula \(description.name)' can't be used inside an app; use it outside, where the whole tree is")
      }
      context.console.manner.isQuiet = arguments.has("quiet")
      context.console.manner.isVerbose = arguments.has("verbose")
      if arguments.has("quiet"), arguments.has("verbose") {
        throw description.error("'--quiet' and '--verbose' can't be combined")
      }
      let verb = try command.init(arguments)
      if verb.goesByConfiguration { context = try context.configured() }
      try context.judgeStores(of: arguments, for: description)
      return try verb.run(in: context)
    } catch {
      let failure = CommandFailure(error)
      context.console.note(failure)
      return failure.code
    }
  }
}
