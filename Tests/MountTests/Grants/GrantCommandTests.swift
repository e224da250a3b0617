// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// `insula grant`, `grants` and `revoke`, with the daemon and the app that they are about.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct GrantCommandTests {
  /// What a script may use: `documents` is a folder in the user's home, with a letter in it.
  private func run(_ fixture: RunFixture, as account: Account? = nil, _ script: String) throws
    -> ProgramResult
  {
    let home = fixture.mounted.path("Users/\(fixture.user.name)")
    return try fixture.shell("HOUSE='\(home)'; D=\"$HOUSE/Documents\"\n" + script, as: account)
  }

  private func fixture(rootless: Bool = false, entitlements: String? = nil) throws -> RunFixture {
    let fixture = try RunFixture(rootless: rootless, entitlements: entitlements)
    let made = try run(fixture, "mkdir $D/w && echo dear > $D/w/letter && echo secret > $D/w/other")
    try #require(made.status == 0, "\(made.errors)")
    return fixture
  }

  private static func entitlement(_ access: String) -> String {
    "<key>com.apple.security.files.user-selected.\(access)</key><true/>"
  }

  private func expect(_ result: ProgramResult, _ output: String, _ comment: Comment? = nil) {
    #expect(result.output == output, comment ?? "\(result.errors)")
  }

  @Test(arguments: [false, true])
  func grantIsThereAtOnceAndGoesAtOnce(rootless: Bool) throws {
    let fixture = try fixture(rootless: rootless)
    // The app runs all the while; its user gives and takes.
    let result = try run(
      fixture,
      """
      mkfifo /tmp/$$.in /tmp/$$.out; trap 'rm -f /tmp/$$.in /tmp/$$.out' EXIT
      run sh -c 'while read -r line; do eval "$line" 2>&1; echo "= $?"; done' < /tmp/$$.in > /tmp/$$.out &
      exec 3> /tmp/$$.in 4< /tmp/$$.out
      app() { echo "$1" >&3; while read -r line <&4; \
      do case $line in '= '*) echo "$line"; return;; esac; echo "$line"; done; }
      app "ls $D; cat $D/w/letter" | tail -1
      insula grant $APP $D/w/letter --read-write > /dev/null
      app "cat $D/w/letter; ls $D/w; echo new > $D/w/letter"
      cat $D/w/letter
      app "exec 5< $D/w/letter"
      insula grant $APP $D/w/letter --read-only > /dev/null
      app "echo no > $D/w/letter" | tail -1
      app "cat <&5"
      insula revoke $APP $D/w/letter > /dev/null
      app "ls $D" | tail -1
      app "cat <&5" | tail -1
      exec 3>&-; wait
      """)
    expect(result, "= 1\ndear\nletter\n= 0\nnew\n= 0\n= 2\nnew\n= 0\n= 2\n= 1\n")
  }

  /// The attack: whoever has granted what others have shared follows what these call their own things.
  ///
  /// The home of the others is in the store, or elsewhere.
  @Test(arguments: [false, true]) func whatOthersMoveOutOfReachIsNotTold(elsewhere: Bool) throws {
    let fixture = try fixture()
    let other = try TemporaryAccount()
    let homes = try fixture.mounted.temporary.makeDirectory("homes", mode: 0o700)
    var words = ["user", "add", other.account.name, "--store", fixture.mounted.store]
    if elsewhere { words += ["--home", homes] }
    let added = try fixture.mounted.run(words)
    try #require(added.status == 0, "\(added)")
    let users = fixture.mounted.path("Users")
    let home = "\(users)/\(other.account.name)"
    // Grants follow on one disk.
    let shared = elsewhere ? "\(home)/Public" : "\(users)/Shared"
    let places = "S='\(shared)'; P='\(home)'\n"
    func others(_ script: String) throws {
      let result = try run(fixture, as: other.account, "umask 022; \(places)\(script)")
      try #require(result.status == 0, "\(script): \(result.errors)")
    }
    try others("mkdir $S/folder; echo shared >$S/folder/file")
    let granted = try run(
      fixture,
      "\(places)insula grant $APP $S/folder --read-only >/dev/null; run cat $S/folder/file; insula grants")
    #expect(granted.output.hasSuffix("\(shared)/folder\n"), "\(granted)")
    #expect(granted.output.hasPrefix("shared\n"), "\(granted)")
    try others("mv $S/folder $S/renamed")
    let renamed = try run(fixture, "insula grants")
    #expect(renamed.output.hasSuffix("\(shared)/renamed\n"), "\(renamed)")
    try others("mkdir $P/Documents/Secret; mv $S/renamed $P/Documents/Secret/Inner; chmod 700 $P/Documents")
    let listed = try run(fixture, "insula grants")
    #expect(
      listed.output.hasSuffix(
        "/Users/\(other.account.name)/Documents  (somewhere below, out of your reach)\n"), "\(listed)")
    if elsewhere {
      // Nor is it told, or an app in a home kept from starting, while the disk with that other home is away.
      let app = fixture.mounted.temporary.appending("store/Notes-made/Notes.app")
      try fixture.succeed("install", app, "--user", fixture.user.name, "--store", fixture.mounted.store)
      #expect(try fixture.mounted.unmount().status == 0)
      try #require(rename(homes, homes + "-away") == 0)
      try fixture.mounted.mount()
      let away = try run(fixture, "insula grants; run echo started")
      #expect(
        away.output.hasSuffix(
          "/Users/\(other.account.name)  (somewhere below, out of your reach)\nstarted\n"), "\(away)")
      #expect(away.errors.contains("/Users/\(other.account.name) is not there just now"), "\(away.errors)")
      #expect(!(away.output + away.errors).contains("Secret"), "\(away)")
      #expect(try fixture.mounted.unmount().status == 0)
      try #require(rename(homes + "-away", homes) == 0)
      try fixture.mounted.mount()
    }
    let revoked = try run(fixture, "\(places)insula revoke $APP $P/Documents; insula grants; insula log")
    #expect(revoked.output.contains("There are no grants."), "\(revoked)")
    for name in ["Secret", "Inner"] {
      #expect(!(revoked.output + revoked.errors).contains(name), "\(revoked)")
    }
  }

  /// What is taken back is taken back, also where that can't be written down; and whatever is written next,
  /// it is written down then.
  @Test(arguments: ["again", "another", "grant", "install"])
  func revocationHoldsWhereItCanNotBeRecorded(next: String) throws {
    let fixture = try fixture()
    let journal = fixture.mounted.store + "/state/insula.db-journal"
    #expect(try run(fixture, "insula grant $APP $D/w/letter; insula grant $APP $D/w/other").status == 0)
    // Its container is noted, too.
    #expect(try run(fixture, "run true").status == 0)
    #expect(try Program.run(["chattr", "+i", journal]).status == 0)
    defer { _ = try? Program.run(["chattr", "-i", journal]) }
    for _ in 0..<2 {
      let refused = try run(fixture, "insula revoke $APP $D/w/letter")
      #expect(
        refused.status == 1 && refused.errors.contains("revoked in this mount, but that can't be recorded"),
        "\(refused.errors)")
    }
    let never = try run(fixture, "insula revoke $APP $D/w")
    #expect(never.status == 1 && never.errors.contains("has no grant"), "\(never.errors)")
    let app = try run(fixture, "insula grants | grep letter; run cat $D/w/letter")
    #expect(app.ending == .failed && app.output.isEmpty, "\(app)")
    #expect(try Program.run(["chattr", "-i", journal]).status == 0)
    switch next {
    case "again": #expect(try run(fixture, "insula revoke $APP $D/w/letter").status == 0)
    case "another": #expect(try run(fixture, "insula revoke $APP $D/w/other").status == 0)
    case "grant": #expect(try run(fixture, "insula grant $APP $D/w").status == 0)
    default: try fixture.install("Second")
    }
    // Not even a daemon that is killed now has kept it.
    try fixture.mounted.killDaemon()
    try unmount(fixture.mounted.point, lazily: true)
    try fixture.mounted.mount()
    let later = try run(fixture, "insula grants | grep letter; true")
    #expect(later.status == 0 && later.output.isEmpty, "\(later.output)")
    let unknown = try run(fixture, "insula revoke $APP $D/w/letter")
    #expect(unknown.status == 1 && unknown.errors.contains("has no grant"), "\(unknown.errors)")
  }

  /// The process that could not record it is replaced.
  @Test(
    .enabled(if: KernelRelease.own >= KernelRelease(6, 9), "no process is replaced"),
    arguments: [false, true], [false, true])
  func revocationOutlivesTheProcess(isRestart: Bool, rootless: Bool) throws {
    let fixture = try fixture(rootless: rootless)
    let mounted = fixture.mounted
    let journal = mounted.store + "/state/insula.db-journal"
    #expect(try run(fixture, "insula grant $APP $D/w/letter; insula grant $APP $D/w/other").status == 0)
    // Its container is noted, too.
    #expect(try run(fixture, "run true").status == 0)
    #expect(try Program.run(["chattr", "+i", journal]).status == 0)
    defer { _ = try? Program.run(["chattr", "-i", journal]) }
    #expect(try run(fixture, "insula revoke $APP $D/w/letter").ending == .failed)
    for _ in 0..<2 {
      try mounted.replaceWorker(byRestart: isRestart)
      let granted = try run(fixture, "insula grants | grep -c letter; insula grants | grep -c other")
      #expect(granted.output == "0\n1\n", "\(granted)")
    }
    let app = try run(fixture, "run cat $D/w/letter; run cat $D/w/other")
    #expect(app.output == "secret\n", "\(app)")
    let again = try run(fixture, "insula revoke $APP $D/w/letter")
    #expect(again.status == 1 && again.errors.contains("that can't be recorded"), "\(again)")
    #expect(try Program.run(["chattr", "-i", journal]).status == 0)
    // What is granted from then on stays, and what was taken back has gone.
    #expect(try run(fixture, "insula grant $APP $D/w/letter").status == 0)
    try mounted.replaceWorker(byRestart: isRestart)
    let counts = "insula grants | grep -c letter; insula grants | grep -c other"
    #expect(try run(fixture, counts).output == "1\n1\n")
    #expect(try run(fixture, "insula revoke $APP $D/w/letter").status == 0)
    try mounted.killDaemon()
    try unmount(mounted.point, lazily: true)
    try mounted.mount()
    #expect(try run(fixture, counts).output == "0\n1\n")
  }

  @Test func commandsSayWhatThereIs() throws {
    let fixture = try fixture()
    let point = fixture.mounted.point
    let home = "\(point)/Users/\(fixture.user.name)"
    let granted = try run(
      fixture, "cd $D && insula grant $APP w/letter; insula grant $APP $D/w --read-write; insula grants")
    expect(
      granted,
      """
      \(RunFixture.identifier) may read \(home)/Documents/w/letter.
      \(RunFixture.identifier) may read and change \(home)/Documents/w.
      APP                ACCESS      PATH
      \(RunFixture.identifier)  read-only   \(home)/Documents/w/letter
      \(RunFixture.identifier)  read-write  \(home)/Documents/w

      """)
    let listed = try run(fixture, "rm $D/w/letter; insula grants $APP --json")
    let list = try #require(
      try JSONSerialization.jsonObject(with: Data(listed.output.utf8)) as? [[String: Any]])
    #expect(list.map { $0["path"] as? String } == ["\(home)/Documents/w/letter", "\(home)/Documents/w"])
    #expect(list.map { $0["isMissing"] as? Bool } == [true, false])
    #expect(list.map { $0["access"] as? String } == ["read-only", "read-write"])
    // Root sees whose they are; others see none of them.
    #expect(try run(fixture, as: RunFixture.root, "insula grants").output.contains(" \(fixture.user.name) "))
    let stranger = try TemporaryAccount()
    expect(try run(fixture, as: stranger.account, "insula grants"), "There are no grants.\n")
    #expect(try run(fixture, as: stranger.account, "insula grants --user \(fixture.user.name)").status == 7)
    // Nor do they take them back.
    #expect(try run(fixture, as: stranger.account, "insula revoke $APP --all").status == 1)
    // Also what is gone can be taken back.
    let taken = try run(fixture, "insula revoke $APP $D/w/letter; insula grants | wc -l")
    expect(taken, "Revoked the grant of \(home)/Documents/w/letter to \(RunFixture.identifier).\n2\n")
    expect(try run(fixture, "insula revoke $APP --all > /dev/null; insula grants"), "There are no grants.\n")
    #expect(try run(fixture, "insula revoke $APP --all").status == 1)
  }

  /// What the signature says of chosen files, what is asked for, and what comes of it.
  private static let accesses: [(String?, String, String?)] = [
    (nil, "", "read-only"), (nil, "--read-write", "read-write"), (nil, "--read-only", "read-only"),
    ("read-write", "", "read-write"), ("read-write", "--read-only", "read-only"),
    ("read-only", "", "read-only"), ("read-only", "--read-write", nil),
  ]

  @Test func signaturesSayWhatAppsAskFor() throws {
    for entitlement in [nil, "read-write", "read-only"] {
      let fixture = try fixture(entitlements: entitlement.map(Self.entitlement))
      for (signed, option, expected) in Self.accesses where signed == entitlement {
        let result = try run(
          fixture, "insula grant $APP $D/w/letter \(option) && insula grants | grep -o 'read-[a-z]*'")
        #expect(result.output.hasSuffix((expected ?? "") + (expected == nil ? "" : "\n")), "\(option)")
        #expect(
          (result.status == 0) == (expected != nil), "\(entitlement ?? "none") \(option): \(result.errors)")
      }
    }
  }

  @Test func outlivesRestartAndUpdateAndGoesWithTheApp() throws {
    let fixture = try fixture()
    let list = "insula grants | tail -n +2 | sed 's,.*Documents,,'"
    #expect(try run(fixture, "insula grant $APP $D/w/letter $D/w").status == 0)
    #expect(try run(fixture, "mv $D/w $D/v").status == 0)
    #expect(try fixture.mounted.unmount().status == 0)
    try fixture.mounted.mount()
    expect(try run(fixture, list), "/v/letter\n/v\n")
    expect(try run(fixture, "run cat $D/v/letter"), "dear\n")
    // A signature of the same team.
    let app = fixture.mounted.temporary.appending("store/Notes-made/Notes.app")
    try fixture.succeed("sign", app, "--identity", "tester", "--force")
    let updated = try fixture.mounted.run(
      "update", app, "--store", fixture.mounted.point, "--allow-downgrade")
    #expect(updated.status == 0, "\(updated.errors)")
    expect(try run(fixture, list), "/v/letter\n/v\n")
    expect(try run(fixture, "run cat $D/v/letter"), "dear\n")
    try fixture.succeed("uninstall", RunFixture.identifier, "--keep-data", "--store", fixture.mounted.point)
    expect(try run(fixture, "insula grants"), "There are no grants.\n")
    try fixture.succeed("install", app, "--store", fixture.mounted.point)
    expect(try run(fixture, "insula grants; run cat $D/v/letter"), "There are no grants.\n")
  }

  @Test func goesWithTheHome() throws {
    let fixture = try fixture()
    #expect(try run(fixture, "insula grant $APP $D/w").status == 0)
    try fixture.succeed(
      "user", "remove", fixture.user.name, "--delete-home", "--store", fixture.mounted.store)
    expect(try run(fixture, as: RunFixture.root, "insula grants"), "There are no grants.\n")
  }

  /// What others were granted there ends as well: the next home of that name is somebody else's.
  @Test func othersGrantsGoWithTheHome() throws {
    let fixture = try fixture()
    let other = try TemporaryAccount()
    let (mounted, user) = (fixture.mounted, fixture.user)
    try fixture.succeed("user", "add", other.account.name, "--store", mounted.store)
    let share = "mkdir $HOUSE/Public/f && echo dear >$HOUSE/Public/f/x && chmod 755 $HOUSE/Public/f"
    #expect(try run(fixture, share).status == 0)
    let own = mounted.path("Users/\(other.account.name)/Documents")
    let grant = "insula grant $APP $HOUSE/Public/f '\(own)' && run cat $HOUSE/Public/f/x"
    #expect(try run(fixture, as: other.account, grant).output.hasSuffix("dear\n"))
    for words in [["user", "remove", user.name, "--delete-home"], ["user", "add", user.name]] {
      #expect(try mounted.run(words + ["--store", mounted.store]).status == 0, "\(words)")
    }
    #expect(try run(fixture, share).status == 0)
    let left = try run(fixture, as: other.account, "insula grants; run cat $HOUSE/Public/f/x")
    #expect(left.output.contains(own) && !left.output.contains("Public") && left.status == 1, "\(left)")
    #expect(!left.output.contains("dear"), "\(left)")
  }

  /// What was changed while no daemon ran, and where the grant is after that.
  private static let changes: [(String, String, String)] = [
    ("mv $D/w/letter $D/second", "/second\n", "dear\n"),
    ("mv $D/w/letter $D/second; echo new > $D/w/letter", "/second\n", "dear\n"),
    ("mv $D/w $D/v", "/v/letter\n", "dear\n"),
    ("echo new > $D/w/x; mv $D/w/x $D/w/letter", "/w/letter\n", "new\n"),
    ("rm $D/w/letter", "/w/letter  (missing)\n", ""),
  ]

  @Test(arguments: changes.indices)
  func isFoundAgainAfterADaemonThatCouldNotNoteIt(index: Int) throws {
    let (change, place, contents) = Self.changes[index]
    let fixture = try fixture()
    #expect(try run(fixture, "insula grant $APP $D/w/letter").status == 0)
    #expect(try fixture.mounted.unmount().status == 0)
    let backing = fixture.mounted.backing("Users/\(fixture.user.name)/Documents")
    let changed = try run(fixture, as: RunFixture.root, "D='\(backing)'; \(change)")
    #expect(changed.status == 0, "\(changed.errors)")
    try fixture.mounted.mount()
    expect(try run(fixture, "insula grants | tail -n +2 | sed 's,.*Documents,,'"), place, "\(change)")
    let path = place.split(separator: " ").first.map { $0.replacing("\n", with: "") } ?? ""
    expect(try run(fixture, "run cat $D\(path) 2> /dev/null"), contents, "\(change)")
  }

  @Test(arguments: [false, true]) func withoutADaemonTheStoreIsAskedItself(rootless: Bool) throws {
    let fixture = try fixture(rootless: rootless)
    #expect(try fixture.mounted.unmount().status == 0)
    let backing = fixture.mounted.backing("Users/\(fixture.user.name)/Documents")
    let account = rootless ? fixture.user : RunFixture.root
    let words = rootless ? "" : "--user \(fixture.user.name)"
    let script = """
      I="$INSULA"; S='\(fixture.mounted.store)'
      "$I" grant $APP '\(backing)/w' '\(backing)/w/letter' \(words) --store "$S" > /dev/null
      "$I" revoke $APP '\(backing)/w/letter' \(words) --store "$S" > /dev/null
      "$I" grants --store "$S" | tail -n +2 | sed 's,.*Documents,,'
      """
    expect(try run(fixture, as: account, script), "/w\n")
    try fixture.mounted.mount()
    expect(try run(fixture, "run cat $D/w/letter"), "dear\n")
  }
}
