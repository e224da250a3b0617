// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Who takes something back of several users, of whom one holds a file.
extension HeldLockTests {
  /// What waits for the user's file in the daemon: a write of an app that was granted it, or a rename of what
  /// it was granted.
  enum HeldUse: CaseIterable { case write, rename }

  private static let player = "org.example.player"

  private struct Both {
    let holder: Background
    /// The user's app, and the rename.
    let own: [Background]
    let reader: Background
    let path: String
  }

  /// Both users run an app that may play songs: the other's says when it can't any more, and when it can
  /// again; the user's was granted a file that the user holds, and waits for.
  private func begin(_ use: HeldUse) throws -> Both {
    let temporary = run.mounted.temporary
    try run.install(
      "Player", entitlements: "<key>com.apple.security.files.user-selected.read-write</key><true/>",
      info: "<key>NSAppleMusicUsageDescription</key><string>Plays your music.</string>")
    let directory = try directory(.home)
    let home = run.mounted.path("Users/\(other.account.name)")
    let allow = "\"$INSULA\" consent allow \(Self.player) media-library --store \"$POINT\""
    let songs = "\(home)/Music/Music"
    let theirs = try run.shell(
      "mkdir -p '\(songs)' && echo song >'\(songs)/song' && \(allow)", as: other.account)
    try #require(theirs.ending == .ok, "\(theirs)")
    let holder = try hold(["\(directory.held)/held"])
    let path = "\(directory.inTree)/\(use == .write ? "held" : "new")"
    let given = try run.shell(
      """
      \(allow) && cd '\(directory.inTree)' && echo new >new &&
      "$INSULA" grant --store "$POINT" \(Self.player) '\(path)'
      """)
    try #require(given.ending == .ok, "\(given)")
    func start(_ script: String, as user: Account, called name: String) throws -> Background {
      let words = ["run", "--store", run.mounted.point, Self.player, "--", "sh", "-c", script]
      return try Background(
        ["env", "HOME=/nonexistent", Program.insula] + words, as: user, output: temporary.appending(name),
        temporary)
    }
    let look = """
      song='\(songs)/song'; cat $song; n=0
      while cat $song >/dev/null 2>&1 && [ $((n+=1)) -lt 2000 ]; do sleep 0.05; done; echo lost
      until cat $song 2>/dev/null || [ $((n+=1)) -gt 4000 ]; do sleep 0.05; done; cat >/dev/null
      """
    let reader = try start(look, as: other.account, called: "read")
    #expect(eventually { said("read") == "song\n" }, "\(said("read"))")
    let write = "dd if=/dev/zero of='\(path)' bs=4096 count=1 conv=notrunc 2>&1"
    var own = [
      try start(
        "echo begun; \(use == .write ? write : ":"); echo over; cat >/dev/null", as: run.user,
        called: "written")
    ]
    #expect(eventually { said("written").hasPrefix("begun\n") }, "\(said("written"))")
    if use == .rename {
      own.append(
        try Background(
          ["sh", "-c", "cd '\(directory.inTree)' && exec mv -f new held"], as: run.user,
          output: temporary.appending("renamed"), temporary))
    }
    // In a function of the filesystem's own.
    let worker = try #require(try run.mounted.daemon())
    let word = use == .write ? "write" : "rename"
    let waits = try eventually {
      let words = ["sh", "-c", "cat /proc/\(worker)/task/*/wchan"]
      let found = try Program.run(words).output
      return found.contains(word) || use == .rename && found.contains("lock_two_nondirectories")
    }
    #expect(waits, "\(said("written"))")
    return Both(holder: holder, own: own, reader: reader, path: path)
  }

  private func said(_ name: String) -> String {
    FD.text(of: run.mounted.temporary.appending(name), limit: 10_000) ?? ""
  }

  private func end(_ both: Both) throws {
    try both.holder.end()
    for background in both.own + [both.reader] { try background.end() }
  }

  /// What an administrator restricts, and allows again, reaches everybody's apps; and the user can take back
  /// what is held.
  @Test(arguments: HeldUse.allCases) func whatIsRestrictedIsLostByOthers(use: HeldUse) throws {
    let both = try begin(use)
    let managed = run.mounted.path("Library/Managed Preferences")
    let list = "<plist version=\"1.0\"><dict><key>*</key><true/></dict></plist>"
    let restricted = try run.shell(
      "mkdir -p '\(managed)' && echo '\(list)' >'\(managed)/org.insula.consent.plist'", as: RunFixture.root)
    try #require(restricted.ending == .ok, "\(restricted)")
    #expect(eventually { said("read") == "song\nlost\n" }, "\(said("read"))")
    let allowed = try run.shell("rm '\(managed)/org.insula.consent.plist'", as: RunFixture.root)
    #expect(allowed.ending == .ok, "\(allowed)")
    #expect(eventually { said("read") == "song\nlost\nsong\n" }, "\(said("read"))")
    if use == .write {
      let revoked = try run.shell(
        "timeout 30 \"$INSULA\" revoke --store \"$POINT\" \(Self.player) '\(both.path)'")
      #expect(revoked.ending == .ok, "\(revoked)")
      #expect(!said("written").contains("over"))
    }
    try both.holder.end()
    // Who waited to write learns that it is lost.
    #expect(eventually { said("written").contains("over\n") })
    #expect(said("written").contains("Operation not permitted") == (use == .write), "\(said("written"))")
    try end(both)
  }

  /// Root assigns the team to another root: the apps of all users end, and the command does.
  @Test(arguments: HeldUse.allCases) func anAssignedTeamsAppsEnd(use: HeldUse) throws {
    let mounted = run.mounted
    let next = ["env", "HOME=\(mounted.temporary.appending("next-home"))"]
    let root = mounted.temporary.appending("next.pem")
    for words in [
      ["identity", "new", "next", "--team", "ABCDE12345"],
      ["identity", "export", "next", "--certificate", root],
    ] {
      let result = try mounted.run(words, before: next)
      try #require(result.ending == .ok, "\(words): \(result)")
    }
    let both = try begin(use)
    let assign = ["trust", "add", root, "--team", "ABCDE12345", "--store", mounted.store]
    let assigned = try mounted.run(assign, before: ["timeout", "60"])
    #expect(assigned.ending == .ok && !assigned.errors.contains("taken back yet"), "\(assigned)")
    #expect(eventually { !both.reader.process.isRunning })
    try end(both)
    #expect(eventually { (try? mounted.run(assign).ending) == .ok })
  }
}
