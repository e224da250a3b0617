// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO

/// Files of /etc that say of the machine what the app is to know of it, and no more.
struct SandboxFiles {
  private let account: Account
  private let plan: LaunchPlan

  init(_ account: Account, _ plan: LaunchPlan) {
    self.account = account
    self.plan = plan
  }

  /// By their names in /etc.
  var all: [(name: String, text: String)] {
    let group = AccountGroup.numbered(account.gid)?.name ?? account.name
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
