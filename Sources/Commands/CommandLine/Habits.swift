// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Words that people know from other programs, and what they are here.
enum Habits {
  /// What to type instead of a command that there is not.
  static func advice(for word: String) -> String? {
    advice.first { $0.words.contains(word.lowercased()) }?.text
  }

  /// What to type instead of an option that there is not.
  static func advice(forOption option: String, of command: String) -> String? {
    switch (command, option) {
    case (_, "-V"), (_, "--version"): "'insula version' prints the version"
    case ("acl", "-r"), ("acl", "--recursive"), ("flags", "-r"), ("flags", "--recursive"):
      "did you mean '-R'?"
    case ("kill", _) where option.dropFirst().allSatisfy { $0.isUppercase || $0.isNumber }:
      "a signal is given as '--signal \(option.dropFirst())'"
    case ("unmount", "-f"), ("unmount", "--force"): "did you mean '--lazy'?"
    default: nil
    }
  }

  /// What a subcommand may be called here.
  static func subcommands(for word: String) -> [String] {
    switch word {
    case "rm", "delete", "del", "uninstall": ["remove"]
    case "create", "add", "new", "mk": ["new", "add"]
    case "ls", "show", "all": ["list", "info"]
    case "check": ["verify"]
    case "status", "version": ["info"]
    case "upgrade", "install": ["update"]
    case "undo", "revert": ["rollback"]
    default: []
    }
  }

  private static let advice: [(words: [String], text: String)] = [
    (["start", "launch", "exec"], "'insula run ID' runs an app"),
    (["stop", "end", "quit"], "'insula kill ID' ends an app, and 'insula unmount' unmounts a store"),
    (
      ["rm", "remove", "delete", "del"],
      "'insula uninstall ID' removes an app, and 'insula user remove NAME' removes a home"
    ),
    (["list", "show"], "'insula apps' lists apps, 'insula ls' files, and 'insula user list' homes"),
    (["create", "new", "mkfs", "format"], "'insula init' creates a store, and 'insula new-app NAME' an app"),
    (["add"], "'insula install BUNDLE' installs an app, and 'insula user add NAME' creates a home"),
    (["upgrade"], "'insula update BUNDLE' replaces an app by another version"),
    (["logs", "journal"], "'insula log' shows what was refused and done"),
    (["useradd", "adduser", "home", "homes"], "'insula user add NAME' creates a home"),
    (["userdel", "deluser"], "'insula user remove NAME' removes a home"),
    (["key", "keys", "cert", "certificate"], "'insula identity list' lists those with which you can sign"),
    (["chmod", "setfacl", "getfacl", "chacl"], "'insula acl' shows and changes ACLs"),
    (["chflags", "chattr", "lsattr"], "'insula flags' shows and changes flags"),
    (["set", "get", "settings", "configure"], "'insula config' shows what is configured"),
    (["fsck", "repair", "scrub"], "'insula check' checks a store, and 'insula check --repair' repairs it"),
    (["restore"], "any tool can restore what 'insula backup run' has saved; 'man 7 insula' says how"),
    (["allow", "permit"], "'insula grant ID PATH' lets an app use a file or folder"),
    (["deny", "forbid", "unshare"], "'insula revoke ID PATH' takes a grant back"),
    (["processes", "running"], "'insula ps' lists the running apps"),
    (["df", "du", "space", "usage"], "'insula storage' shows how much space apps use"),
    (["reload"], "'insula restart' has a mount served by the installed program"),
    (["man"], "'man insula' is the manual, and 'insula help --man' lists its pages"),
    (["cp", "copy", "send"], "'insula deliver ID FILE' puts a copy of a file into an app's Inbox"),
  ]
}
