// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Glibc
internal import LinuxIO

/// A command that root gives in somebody else's name.
enum ActingCommand {
  /// Who is meant by `--user` if that is not who runs this; only root may name others.
  static func account(_ name: String?, _ context: Context) throws -> Account? {
    guard let uid = try AppsAccess.user(name, context), uid != context.uid else { return nil }
    return Account.numbered(uid)
  }

  /// Has a command carried out by the user that root names; nil for who runs this.
  ///
  /// It reads and writes files outside the store, at paths that may lead anywhere: what the user can't reach
  /// there must not be reached for them. So their own process does it, and that needs a mount. `words` gets
  /// the mount point.
  static func onMount(
    of store: String?, for user: String?, _ context: Context, _ words: (String) -> [String]
  ) throws -> ExitCode? {
    guard let account = try account(user, context) else { return nil }
    let paths = DaemonSearch.paths(of: store, context)
    // Those that do not answer come last.
    let mountPoint =
      paths.firstResult { DaemonSearch.mount(at: $0)?.mountPoint }
      ?? DaemonSearch(context).daemon(at: paths)?.status.mountPoint
      ?? paths.firstResult { DaemonSearch.mount(ofStore: $0)?.mountPoint }
    if let mountPoint { return try perform(words(mountPoint), as: account, context) }
    let path = paths.last ?? context.defaultStore
    throw CommandFailure(
      .notMounted,
      "the store \(path) is not mounted, and \(account.name) can only use it through a mount; "
        + "mount it first: 'insula mount \(path)'")
  }

  /// Has that user's own process carry out a command, whose words leave `--user` out; paths in them are
  /// absolute.
  ///
  /// Nothing that this process has opened, connected to or been told goes along, and not its terminal: the
  /// user can take over every process of theirs, and whoever is in a terminal's session can type there.
  static func perform(_ words: [String], as account: Account, _ context: Context) throws -> ExitCode {
    var environment = environment(of: account, context)
    switch try OwnTerminal.move(owner: account.uid, context) {
    case .ended(let status): return .program(status)
    case .goesOn(let processes, _): environment[TerminalProcesses.variable] = processes.value
    }
    let general = context.console.manner.words
    do throws(Errno) {
      try ActingUser.become(account, arguments: ["insula"] + general + words, environment: environment)
    } catch {
      throw CommandFailure(error, "can't run as \(account.name): \(error.message)")
    }
  }

  private static let kept = ["LANG", "LANGUAGE", "TERM", "COLORTERM", "NO_COLOR", "COLUMNS", "LINES", "TZ"]

  /// What a login would set, and how the person who gives the command reads and writes.
  private static func environment(of account: Account, _ context: Context) -> [String: String] {
    var values = context.environment.filter { kept.contains($0.key) || $0.key.hasPrefix("LC_") }
    values["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    values["HOME"] = account.home
    values["USER"] = account.name
    values["LOGNAME"] = account.name
    values["SHELL"] = "/bin/sh"
    let runtime = "/run/user/\(account.uid)"
    if let directory = try? FD.cwd.open(runtime, O_RDONLY | O_DIRECTORY),
      (try? directory.fd.status())?.st_uid == account.uid
    {
      values["XDG_RUNTIME_DIR"] = runtime
    }
    return values
  }
}
