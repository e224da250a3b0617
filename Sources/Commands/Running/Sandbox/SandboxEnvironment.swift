// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO

/// The variables that an app gets: its own places, what the person has chosen of language and terminal, and
/// nothing else.
struct SandboxEnvironment {
  let variables: [String]

  static let path = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"

  private static let kept = [
    "LANG", "LANGUAGE", "TERM", "COLORTERM", "NO_COLOR", "COLUMNS", "LINES", "TZ", "SHELL",
  ]

  private static let own: Set = [
    "PATH", "USER", "LOGNAME", "HOME", "CFFIXED_USER_HOME", "PWD", "OLDPWD", "APP_SANDBOX_CONTAINER_ID",
    "TMPDIR",
  ]

  /// Whether nobody else sets a variable of this name.
  static func isOwn(_ name: String) -> Bool { own.contains(name) || name.hasPrefix("XDG_") }

  init(
    _ account: Account, _ plan: LaunchPlan, adding chosen: [ChosenVariable], directory: String,
    desktop: AppDesktop, hasSocket: Bool, _ context: Context
  ) {
    let home = "\(plan.mountPoint)/\(plan.data)"
    var values = context.environment.filter { Self.kept.contains($0.key) || $0.key.hasPrefix("LC_") }
    // A shell that is not there would be a trap.
    if let shell = values["SHELL"], !shell.begins(with: "/bin/"), !shell.begins(with: "/usr/") {
      values["SHELL"] = "/bin/sh"
    }
    for variable in chosen { values[variable.name] = variable.value }
    values["PATH"] = Self.path
    values["USER"] = account.name
    values["LOGNAME"] = account.name
    values["HOME"] = home
    values["CFFIXED_USER_HOME"] = home
    values["PWD"] = directory
    values["APP_SANDBOX_CONTAINER_ID"] = plan.identifier
    values["TMPDIR"] = home + "/tmp"
    values["XDG_RUNTIME_DIR"] = home + "/tmp"
    values["XDG_CACHE_HOME"] = home + "/Library/Caches"
    values["XDG_CONFIG_HOME"] = home + "/Library/Preferences"
    values["XDG_DATA_HOME"] = home + "/Library/Application Support"
    values["XDG_STATE_HOME"] = home + "/Library/Application Support"
    if hasSocket { values[AppSocket.variable] = AppSocket.path }
    values.merge(desktop.variables) { _, own in own }
    variables = values.map { "\($0.key)=\($0.value)" }.inOrder(by: <)
  }
}
