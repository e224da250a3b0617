// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// `insula log`, with the daemon, the apps and the users that it is about.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct LogTests {
  /// What `insula log` gives to somebody, nobody if it fails.
  private func log(
    _ fixture: RunFixture, _ words: String = "", as account: Account? = nil
  ) throws -> [[String: Any]] {
    let result = try fixture.shell("insula log --json \(words)", as: account)
    try #require(result.status == 0, "\(result.errors)")
    return result.output.split(separator: "\n").compactMap {
      try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
    }
  }

  private func events(_ records: [[String: Any]]) -> [String] {
    records.compactMap { $0["event"] as? String }
  }

  private func home(_ fixture: RunFixture) -> String { fixture.mounted.path("Users/\(fixture.user.name)") }

  /// Who redirects it to a full disk learns that something is missing.
  @Test func fullDiskIsTold() throws {
    let fixture = try RunFixture()
    for command in ["log --store $POINT", "log --json --store $POINT", "completions bash", "help"] {
      let result = try fixture.shell("$INSULA \(command) > /dev/full")
      #expect(result.status == 1 && result.errors.contains("can't write to standard output"), "\(result)")
    }
    let followed = try fixture.shell("timeout 60 $INSULA log -f --store $POINT > /dev/full; echo $?")
    #expect(followed.output == "1\n", "\(followed)")
    let enough = try fixture.shell(
      "$INSULA help | true; $INSULA log --store $POINT | head -c 1 > /dev/null; echo $?")
    #expect(enough.output == "0\n" && enough.errors.isEmpty, "\(enough)")
  }

  /// The last entry tells of the end.
  @Test func followingEndsWithTheMount() throws {
    let fixture = try RunFixture()
    let result = try fixture.shell(
      """
      timeout 120 $INSULA log -f --store \(fixture.mounted.store) > $TMPDIR/followed & following=$!
      for i in $(seq 600); do [ -s $TMPDIR/followed ] && break; sleep 0.1; done
      [ -s $TMPDIR/followed ] || echo "nothing is followed"
      $INSULA unmount \(fixture.mounted.store); wait $following; echo $?; tail -n 1 $TMPDIR/followed
      """, as: RunFixture.root)
    #expect(result.output.hasSuffix(")\n") && result.output.contains("unmounted the store"), "\(result)")
    #expect(result.output.split(separator: "\n").contains("0"), "\(result)")
  }

  /// A name can't pass for what the log says of it.
  @Test func namesAreQuoted() throws {
    let fixture = try RunFixture()
    let result = try fixture.shell(
      """
      run sh -c 'mkdir "$HOME/../e: 500 more times until 2027"' 2>/dev/null
      for i in $(seq 50); do insula log --denied | grep 500 && break; sleep 0.1; done
      """)
    #expect(result.output.contains("/e: 500 more times until 2027'"), "\(result)")
  }

  @Test(arguments: [false, true])
  func storyOfAnAppIsTold(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let file = home(fixture) + "/Documents/letter"
    let story = try fixture.shell(
      """
      echo dear > \(file); insula grant $APP \(file) --read-only
      run sh -c 'cat \(file); echo x >> \(file); rm -f \(file); touch $HOME/../x; touch \(fixture.bundle)/x;
        cat /nonexistent \(home(fixture))/secret'
      insula revoke $APP \(file)
      """)
    try #require(story.output.contains("dear"), "\(story.errors)")
    var records: [[String: Any]] = []
    #expect(
      try eventually {
        records = try log(fixture)
        return events(records).contains("ended") && records.contains { $0["rule"] as? String == "app" }
      })
    let told = records.map { record in
      ["event", "operation", "rule"].compactMap { record[$0] as? String }.joined(separator: " ")
    }
    for expected in [
      "mounted", "installed", "granted", "launched", "denied write read-only-grant", "ended", "revoked",
    ] { #expect(told.contains(expected), "\(expected): \(told)") }
    let write = try #require(records.first { $0["operation"] as? String == "write" })
    #expect(write["path"] as? String == file && write["app"] as? String == RunFixture.identifier)
    #expect(write["user"] as? UInt32 == fixture.user.uid && write["program"] as? String == "sh")
    #expect((write["advice"] as? String)?.contains("insula grant \(RunFixture.identifier) \(file)") == true)
    // What is not in the view does not exist for the app.
    #expect(!records.contains { ($0["path"] as? String)?.contains("secret") == true })
    let text = try fixture.shell("insula log Notes --denied")
    #expect(text.output.contains("may not write to \(file)\n    it was granted for reading only"), "\(text)")
    let none = try fixture.shell("insula log Notes --since 2030-01-01")
    #expect(none.output == "There are no entries.\n")
  }

  @Test func usersSeeWhatConcernsThem() throws {
    let fixture = try RunFixture()
    let other = try TemporaryAccount()
    _ = try fixture.shell("touch $POINT/System/mine; mkdir $POINT/Applications/Notes.app/x")
    _ = try fixture.shell("touch $POINT/System/others", as: other.account)
    #expect(
      try eventually {
        try log(fixture, as: RunFixture.root).filter { $0["rule"] as? String == "system" }.count == 2
      })
    let own = try log(fixture)
    #expect(own.contains { ($0["path"] as? String)?.hasSuffix("/System/mine") == true })
    #expect(!own.contains { ($0["path"] as? String)?.hasSuffix("others") == true })
    #expect(Set(own.compactMap { $0["user"] as? UInt32 }).isSubset(of: [fixture.user.uid]))
    // What concerns the machine is for all.
    #expect(events(try log(fixture, as: other.account)).contains("mounted"))
    #expect(events(try log(fixture, as: other.account)).contains("installed"))
    #expect(try fixture.shell("insula log --user \(fixture.user.name)", as: other.account).status == 7)
    // Nor is there another way to ask.
    let answer = try fixture.ask(
      #"{"verb":"log","query":{"after":0,"deniedOnly":false,"user":\#(fixture.user.uid)}}"#, as: other.account
    )
    #expect(answer.contains("only root may see"), "\(answer)")
    for line in [#"{"verb":"log"}"#, #"{"verb":"log","query":{"after":-1,"deniedOnly":false}}"#] {
      #expect(try fixture.ask(line).contains(#""ok":false"#))
    }
    #expect(try fixture.shell("ls \(fixture.mounted.store)/state/log").ending == .seriousTrouble)
  }

  /// What runs under an ID that `/etc/subuid` gives an account may be kept apart from it, but not the account
  /// from that.
  @Test func additionalIDsSeeNothingOfTheirAccount() throws {
    // Before the daemon is started, which looks once a second at most whose an ID is.
    let other = try TemporaryAccount()
    guard let first = other.firstAdditionalID else { return }
    let fixture = try RunFixture()
    let additional = Account(name: "\(first + 7)", uid: first + 7, gid: 65534, home: "/")
    _ = try fixture.shell("touch $POINT/System/accounts", as: other.account)
    _ = try fixture.shell("touch $POINT/System/additional", as: additional)
    func paths(_ account: Account) throws -> [String] {
      try log(fixture, "--denied", as: account).compactMap { $0["path"] as? String }
        .map { String($0.split(separator: "/").last ?? "") }.sorted()
    }
    #expect(try eventually { try paths(other.account) == ["accounts", "additional"] })
    #expect(try paths(additional) == ["additional"])
    #expect(try fixture.shell("insula log --user \(other.account.name)", as: additional).status == 7)
  }

  /// A name is no line, whoever reads it.
  @Test func namesForgeNothing() throws {
    let fixture = try RunFixture()
    let forged = "x\n2026-11-24 00:00:00 [root] granted everything\u{1b}[2J"
    let result = try fixture.inside(
      "mkdir '\(fixture.mounted.path("System"))/\(forged)'; touch '\(fixture.bundle)/\(forged)'")
    #expect(result.ending == .failed)
    #expect(
      try eventually { try log(fixture).contains { ($0["path"] as? String)?.hasSuffix(forged) == true } })
    let text = try fixture.shell("insula log").output
    #expect(text.contains("[root] granted everything") && !text.contains("\n2026-11-24 00:00:00 [root]"))
    #expect(!text.contains("\u{1b}"))
  }

  /// What was told to be done, and what was refused a moment ago, is there after the process that serves was
  /// killed.
  @Test(.enabled(if: KernelRelease.own >= KernelRelease(6, 9), "no worker can be replaced"))
  func entriesSurviveAKill() throws {
    let fixture = try RunFixture()
    let file = home(fixture) + "/Documents/f"
    _ = try fixture.shell("touch \(file) $POINT/System/x")
    #expect(try eventually { try log(fixture).contains { $0["rule"] as? String == "system" } })
    let follower = Process()
    follower.executableURL = URL(fileURLWithPath: Program.insula)
    follower.arguments = ["log", "--follow", "--json", "--store", fixture.mounted.point]
    let output = Pipe()
    follower.standardOutput = output
    try Program.withSignalsUnblocked { try follower.run() }
    defer {
      kill(follower.processIdentifier, SIGKILL)
      follower.waitUntilExit()
    }
    let daemon = try #require(try fixture.mounted.daemon())
    let granted = try fixture.shell("insula grant $APP \(file)")
    #expect(kill(daemon, SIGKILL) == 0)
    #expect(granted.status == 0)
    var records: [[String: Any]] = []
    #expect(
      try eventually {
        records = try log(fixture)
        return events(records).contains("replaced")
      })
    #expect(events(records).contains("granted") && events(records).contains("mounted"))
    #expect(records.contains { $0["rule"] as? String == "system" })
    let replaced = records.first { $0["event"] as? String == "replaced" }?["detail"] as? String
    #expect(replaced?.hasPrefix("ended by signal 9, serving again") == true)
    // Whoever follows goes on.
    _ = try fixture.shell("mkdir $POINT/System/after")
    var seen: [UInt8] = []
    let fd = FD(output.fileHandleForReading.fileDescriptor)
    let end = monotonicNanoseconds() + 60_000_000_000
    while monotonicNanoseconds() < end, !String(decoding: seen, as: UTF8.self).contains("System\\/after") {
      if try fd.waitUntilReadable(milliseconds: 1000) { seen += try fd.readAvailable(limit: 1 << 16) ?? [] }
    }
    let followed = String(decoding: seen, as: UTF8.self)
    #expect(followed.contains("System\\/after") && followed.contains("replaced"), "\(followed)")
  }

  /// Thousands of different things a second, through two views and from outside.
  @Test func floodHasABound() throws {
    let fixture = try RunFixture()
    let loop = """
      import os, sys, time
      place, seconds = sys.argv[1], float(sys.argv[2])
      end = time.time() + seconds
      count = 0
      while time.time() < end:
          for _ in range(100):
              count += 1
              try: os.mkdir(place + "/" + "n" * 200 + str(count))
              except OSError: pass
      print(count)
      """
    let script = try fixture.mounted.temporary.write(loop, to: "point-flood.py")
    #expect(chmod(script, 0o644) == 0)
    let copied = try fixture.shell(
      "cp \(script) \"$(insula path $APP documents)/flood.py\" || exit; touch $POINT/System/before; true")
    try #require(copied.status == 0, "\(copied.errors)")
    let flood = try fixture.shell(
      """
      run python3 Documents/flood.py \(fixture.mounted.path("System")) 5 & a=$!
      run python3 Documents/flood.py \(fixture.bundle) 5 & b=$!
      python3 \(script) \(fixture.mounted.path("System")) 5; wait $a $b
      """)
    let counts = flood.output.split(separator: "\n").compactMap { Int($0) }
    try #require(counts.count == 3, "\(flood.errors)")
    #expect(counts.reduce(0, +) > 5000, "\(counts)")
    let records = try log(fixture, as: RunFixture.root)
    let denied = records.filter { $0["event"] as? String == "denied" }
    #expect((20...400).contains(denied.count), "\(denied.count)")
    #expect(denied.contains { ($0["path"] as? String)?.hasSuffix("/before") == true })
    #expect(events(records).contains("installed"))
    let size = try Program.run(["du", "-sb", fixture.mounted.store + "/state/log"])
    let bytes = size.output.split(separator: "\t").first.flatMap { Int($0) } ?? .max
    #expect(bytes < 400_000, "\(bytes)")
    // What gets no line is counted, at the latest when the daemon ends.
    #expect(try fixture.mounted.unmount().status == 0)
    let after = try fixture.mounted.run("log", "--json", "--denied", "--store", fixture.mounted.store)
    let counted = after.output.split(separator: "\n").compactMap {
      try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
    }.reduce(0) { $0 + ($1["more"] as? Int ?? 1) }
    #expect(counted >= counts.reduce(0, +), "\(counted) of \(counts)")
  }

  /// The same code notes it that a daemon has.
  @Test func whatIsDoneWithoutADaemonIsNoted() throws {
    let fixture = try RunFixture()
    #expect(try fixture.mounted.unmount().status == 0)
    let documents = fixture.mounted.backing("Users/\(fixture.user.name)/Documents")
    let user = ["--user", fixture.user.name, "--store", fixture.mounted.store]
    for words in [
      ["grant", RunFixture.identifier, documents, "--read-only"] + user,
      ["revoke", RunFixture.identifier, documents] + user,
      ["uninstall", RunFixture.identifier, "--store", fixture.mounted.store],
    ] {
      let result = try fixture.mounted.run(words)
      #expect(result.status == 0, "\(words): \(result.errors)")
    }
    let log = try fixture.mounted.run("log", "--store", fixture.mounted.store)
    let lines = log.output.split(separator: "\n").suffix(3).map(String.init)
    try #require(lines.count == 3, "\(log.errors)")
    let who = "[\(fixture.user.name), by root]"
    #expect(lines[0].hasSuffix("\(who) granted org.example.notes \(documents) (read-only)"), "\(lines)")
    #expect(lines[1].hasSuffix("\(who) revoked from org.example.notes \(documents) (read-only)"), "\(lines)")
    let app = fixture.mounted.backing("Applications/Notes.app")
    #expect(lines[2].hasSuffix("[by root] uninstalled org.example.notes \(app)"), "\(lines)")
    #expect(log.output.contains("unmounted the store"))
    // Only whose store it is may look into it.
    #expect(
      try fixture.shell("\"$INSULA\" log --store '\(fixture.mounted.store)'").ending == .notPermitted)
  }

  /// Where nothing can be written, nothing is, and the mount is as good.
  @Test func readOnlyDiskKeepsNoLog() throws {
    let mounted = try MountedStore()
    let binding = mounted.temporary.appending("store")
    try #require(try Program.run(["mount", "--bind", binding, binding]).status == 0)
    defer { _ = try? Program.run(["umount", "-l", binding]) }
    try #require(try Program.run(["mount", "-o", "remount,ro,bind", binding]).status == 0)
    try mounted.mount(options: "ro")
    #expect(mkdir(mounted.path("System/x"), 0o755) != 0)
    let log = try mounted.run("log", "--store", mounted.point)
    #expect(log.status == 0 && log.output == "There are no entries.\n", "\(log.errors)")
    #expect(try mounted.unmount().status == 0)
  }
}
