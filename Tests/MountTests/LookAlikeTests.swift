// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// Two accounts whose names look alike, and are one text for Swift, have homes and apps of their own.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct LookAlikeTests {
  @Test func bothHaveSealedApps() throws {
    let shop = try AppShop()
    let base = TemporaryAccount.unusedName()
    let names = [base + "-\u{e9}", base + "-e\u{301}"]
    try #require(names[0] == names[1])
    let accounts = try names.map { try TemporaryAccount(called: $0) }
    let bundle = try shop.make("Notes", version: "1.0")
    for account in accounts {
      try shop.succeed("user", "add", account.account.name)
      let installed = try shop.run(as: account, "install", bundle)
      try #require(installed.ending == .ok, "\(installed.errors)")
    }
    for round in ["installed", "mounted again"] {
      for account in accounts {
        let user = ["setpriv", "--reuid=\(account.account.uid)", "--regid=\(account.account.gid)"]
        let app = "Users/\(account.account.name)/Applications/Notes.app"
        let file = shop.mounted.path("\(app)/Contents/Info.plist")
        let script = "echo x 2>&1 >>\"$0\" | grep -c 'Read-only file system'"
        let written = try Program.run(user + ["--clear-groups", "sh", "-c", script, file])
        #expect(written.output == "1\n", "\(round), \(account.account.uid): \(written)")
      }
      guard round == "installed" else { break }
      try #require(try shop.mounted.unmount().ending == .ok)
      try shop.mounted.mount()
    }
    // Each is removed with its home, and the other one stays.
    try shop.succeed("user", "remove", names[0], "--delete-home")
    try shop.expectNothingToComplainAbout()
    let left = try shop.run(as: accounts[1], "apps")
    #expect(left.ending == .ok && left.output.contains("org.example.notes"), "\(left)")
    try shop.succeed("user", "remove", names[1], "--delete-home")
  }
}
