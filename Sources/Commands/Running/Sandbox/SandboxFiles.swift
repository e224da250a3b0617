// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO

/// Files of /etc that say of the machine what the app is to know of it, and no more.
struct SandboxFiles {
  private let account: Account
  private let group: String

  /// Asks the machine what the group is called, so its files and services must be within reach.
  init(_ account: Account) {
    self.account = account
    group = AccountGroup.numbered(account.gid)?.name ?? account.name
  }

  /// By their names in /etc.
  func all(_ plan: LaunchPlan) -> [(name: String, text: String)] {
    var users = ["root:x:0:0:root:/:/usr/sbin/nologin"]
    var groups = ["root:x:0:"]
    if account.uid != 0 {
      users.append("\(account.name):x:\(account.uid):\(account.gid)::\(plan.mountPoint)/\(plan.data):/bin/sh")
    }
    if account.gid != 0 { groups.append("\(group):x:\(account.gid):") }
    // What others have is shown as theirs whom nobody is.
    if account.uid != 65534 { users.append("nobody:x:65534:65534:nobody:/:/usr/sbin/nologin") }
    if account.gid != 65534 { groups.append("nogroup:x:65534:") }
    var files = [
      (name: "passwd", text: users.joined(separator: "\n") + "\n"),
      (name: "group", text: groups.joined(separator: "\n") + "\n"),
    ]
    if !plan.hasNetwork {
      files.append((name: "hosts", text: "127.0.0.1 localhost\n::1 localhost ip6-localhost\n"))
    }
    return files
  }
}
