// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// `insula trust add --team` while the store is mounted: the daemon assigns the team, and what the former
/// root has signed has nothing of the team's from then on.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .mayTake(seconds: 180))
struct TeamAssignmentTests {
  /// The store with a player of the team's, which a user has granted a file and allowed songs and refused
  /// photos; and an app of another team's.
  private struct Assigning {
    let consents: ConsentFixture
    let mounted: MountedStore
    var fixture: RunFixture { consents.fixture }
    let root: String
    /// Before the name of a program: whose identities are those of the next root.
    let next: [String]

    init(rootless: Bool) throws {
      consents = try ConsentFixture(rootless: rootless)
      mounted = consents.fixture.mounted
      next = ["env", "HOME=\(mounted.temporary.appending("next-home"))"]
      root = mounted.temporary.appending("next.pem")
      for words in [
        ["identity", "new", "next", "--team", "ABCDE12345"],
        ["identity", "export", "next", "--certificate", root],
      ] {
        let result = try mounted.run(words, before: next)
        try #require(result.status == 0, "\(words): \(result)")
      }
      try fixture.succeed("identity", "new", "stranger", "--team", "OTHER12345")
      let stranger = try make("Other", by: "stranger")
      try fixture.succeed("install", stranger, "--store", mounted.store)
    }

    /// Makes a signed bundle; its path.
    func make(_ name: String, by identity: String, before: [String] = [], version: String? = nil) throws
      -> String
    {
      let directory = mounted.temporary.appending("made-\(identity)")
      try mounted.temporary.makeDirectory("made-\(identity)", mode: 0o777)
      try fixture.succeed("new-app", name, directory)
      let plist = "made-\(identity)/\(name).app/Contents/Info.plist"
      var text = try #require(mounted.temporary.text(of: plist))
      let texts = ["AppleMusic", "PhotoLibrary"].map {
        "<key>NS\($0)UsageDescription</key><string>Shows your \($0).</string>"
      }
      text = text.replacingOccurrences(of: "</dict>\n</plist>", with: texts.joined() + "</dict>\n</plist>")
      if let version {
        let key = "<key>CFBundleVersion</key>"
        let parts = text.components(separatedBy: key)
        try #require(parts.count == 2)
        let rest = parts[1].drop { $0 != "\n" }.dropFirst().drop { $0 != "\n" }
        text = parts[0] + key + "\n\t<string>\(version)</string>" + rest
      }
      try mounted.temporary.write(text, to: plist)
      let bundle = "\(directory)/\(name).app"
      let signed = try mounted.run(["sign", bundle, "--identity", identity], before: before)
      try #require(signed.status == 0, "\(signed)")
      return bundle
    }

    func assign() throws -> ProgramResult {
      try mounted.run("trust", "add", root, "--team", "ABCDE12345", "--store", mounted.store)
    }
  }

  @Test(arguments: [false, true]) func formerRootsAppLosesWhatWasTheTeams(rootless: Bool) throws {
    let assigning = try Assigning(rootless: rootless)
    let (consents, mounted) = (assigning.consents, assigning.mounted)
    let given = try consents.shell(
      """
      set -e; cd '\(consents.home)'; echo doc > Documents/doc
      insula grant \(ConsentFixture.player) '\(consents.home)/Documents/doc' --read-only
      decide allow media-library; decide deny photos
      """)
    try #require(given.status == 0, "\(given)")
    // Both run, and the player does not end when it is asked to: it looks on until it has lost both.
    let said = mounted.temporary.appending("said")
    let begun = try consents.shell(
      """
      cat > \(said).sh <<'END'
      trap '' TERM
      seen=0
      while a=$(cat "$HOME_OF_USER/Documents/doc" "$HOME_OF_USER/Music/Music/song" 2>&1); do
        [ $seen = 1 ] || { echo "$a"; seen=1; echo begun; }
        # One that loses nothing ends, too.
        [ $((n+=1)) -lt 6000 ] || exit 9
        sleep 0.02
      done
      cat "$HOME_OF_USER/Documents/doc" 2>/dev/null || echo lost the file
      cat "$HOME_OF_USER/Music/Music/song" 2>/dev/null || echo lost the songs
      sleep 100
      END
      { inside \(ConsentFixture.player) "$(cat \(said).sh)"; echo "ended: $?"; } > \(said) 2>&1 < /dev/null &
      inside org.example.other 'echo begun; sleep 100' > \(said)-other 2>&1 < /dev/null &
      until grep -q begun \(said) && grep -q begun \(said)-other; do
        [ $((w+=1)) -gt 3000 ] && exit 9; sleep 0.02
      done
      """)
    try #require(begun.status == 0, "\(begun)")
    let assigned = try assigning.assign()
    #expect(assigned.status == 0 && assigned.output.contains("and no longer to"), "\(assigned)")
    let left = try mounted.run("ps", "--store", mounted.store).output
    #expect(!left.contains(ConsentFixture.player) && left.contains("org.example.other"), "\(left)")
    #expect(eventually { mounted.temporary.text(of: "said")?.contains("ended: ") == true })
    let words = try #require(mounted.temporary.text(of: "said"))
    #expect(words.hasPrefix("doc\nsong\nbegun\nlost the file\nlost the songs\n"), "\(words)")
    #expect(words.contains("ended: 137\n"), "\(words)")
    #expect(try mounted.run("kill", "org.example.other", "--store", mounted.store).status == 0)
    // What the former root has signed gets nothing of it by being started again.
    let again = try consents.inside("cat \"$HOME_OF_USER/Documents/doc\"")
    #expect(again.status == 1 && !again.output.contains("doc\n"), "\(again)")
    #expect(try consents.state(of: "media-library") == "not-determined")
    #expect(try consents.state(of: "photos") == "denied")
    // The update under the new root has all of it, without a restart between.
    let bundle = try assigning.make("Player", by: "next", before: assigning.next, version: "9")
    let updated = try mounted.run("update", bundle, "--store", mounted.store)
    #expect(updated.status == 0, "\(updated)")
    let now = try consents.inside("cat \"$HOME_OF_USER/Documents/doc\" \"$HOME_OF_USER/Music/Music/song\"")
    #expect(now.output == "doc\nsong\n", "\(now)")
    #expect(try consents.state(of: "photos") == "denied")
    let grants = try consents.shell("insula grants \(ConsentFixture.player)")
    #expect(grants.output.contains("Documents/doc"), "\(grants)")
  }

  /// What waits and was signed under the former root is given up: it would wait for ever, and take its place
  /// if the team were assigned back.
  @Test func updateOfTheFormerRootIsGivenUp() throws {
    let assigning = try Assigning(rootless: false)
    let (consents, mounted) = (assigning.consents, assigning.mounted)
    let said = mounted.temporary.appending("said")
    let begun = try consents.shell(
      """
      { inside \(ConsentFixture.player) 'echo begun; exec sleep 300'; } > \(said) 2>&1 < /dev/null &
      until grep -q begun \(said); do [ $((w+=1)) -gt 3000 ] && exit 9; sleep 0.02; done
      """)
    try #require(begun.status == 0, "\(begun)")
    let bundle = try assigning.make("Player", by: "tester", version: "9")
    let waits = try mounted.run("update", bundle, "--when-closed", "--store", mounted.store)
    #expect(waits.status == 0, "\(waits)")
    #expect(try mounted.temporary.names(in: "store/state/updates").count == 1)
    let assigned = try assigning.assign()
    #expect(assigned.status == 0, "\(assigned)")
    let log = { try mounted.run("log", "--store", mounted.store).output }
    #expect(try eventually { try log().contains("it was given up") })
    #expect(try !log().contains("tried again later"))
    #expect(try mounted.temporary.names(in: "store/state/updates") == [])
  }

  /// The attack: an app of the former root takes longer to start than the assignment waits for it.
  @Test(arguments: [false, true]) func appThatStartsForLongDoesNotBegin(rootless: Bool) throws {
    let assigning = try Assigning(rootless: rootless)
    let (consents, mounted) = (assigning.consents, assigning.mounted)
    let pause = try mounted.temporary.makeDirectory("pause", mode: 0o777)
    _ = try mounted.unmount()
    try mounted.mount(before: ["env", "INSULA_HALT=\(pause)"])
    try mounted.temporary.write("", to: "pause/viewMade")
    let said = mounted.temporary.appending("said")
    let begun = try consents.shell(
      """
      { inside \(ConsentFixture.player) 'echo begun; exec sleep 300'; echo "ended: $?"; } \
        > \(said) 2>&1 < /dev/null &
      until [ -e '\(pause)/reached' ]; do [ $((w+=1)) -gt 3000 ] && exit 9; sleep 0.02; done
      """)
    try #require(begun.status == 0, "\(begun)")
    let assigned = try assigning.assign()
    #expect(assigned.status == 0, "\(assigned)")
    try mounted.temporary.write("", to: "pause/go")
    let isOver = {
      ["begun", "ended: "].contains { mounted.temporary.text(of: "said")?.contains($0) == true }
    }
    #expect(eventually(isOver))
    let words = mounted.temporary.text(of: "said") ?? ""
    // It was called off, and then either tried no more, or refused what the former root's apps have.
    let isRefused = words.contains("has data of apps of the team") && words.hasSuffix("ended: 1\n")
    #expect((isRefused || words.hasSuffix("ended: 3\n")) && !words.contains("begun"), "\(words)")
    let running = try mounted.run("ps", "--store", mounted.store).output
    #expect(!running.contains(ConsentFixture.player), "\(running)")
    // Others begin, and end.
    #expect(try consents.inside("true", app: "org.example.other").status == 0)
    _ = try mounted.run("kill", ConsentFixture.player, "--store", mounted.store)
  }

  /// One who starts the former root's version for the first time after that, beside one who has used it.
  @Test func dataAndDecisionsOfWhoComesLaterFollowTheUpdate() throws {
    let assigning = try Assigning(rootless: false)
    let (consents, mounted) = (assigning.consents, assigning.mounted)
    let later = try TemporaryAccount()
    try assigning.fixture.succeed("user", "add", later.account.name, "--store", mounted.store)
    let home = mounted.path("Users/\(later.account.name)")
    let first = try consents.inside("echo mine > \"$HOME/Documents/own\"")
    try #require(first.status == 0, "\(first)")
    let assigned = try assigning.assign()
    try #require(assigned.status == 0, "\(assigned)")
    let used = try consents.shell(
      """
      set -e; echo doc > '\(home)/Documents/doc'
      inside \(ConsentFixture.player) 'echo theirs > "$HOME/Documents/own"'
      insula grant \(ConsentFixture.player) '\(home)/Documents/doc' --read-only
      decide deny photos
      """, as: later.account)
    try #require(used.status == 0, "\(used)")
    let bundle = try assigning.make("Player", by: "next", before: assigning.next, version: "9")
    let updated = try mounted.run("update", bundle, "--store", mounted.store)
    #expect(updated.status == 0, "\(updated)")
    let theirs = try consents.shell(
      """
      inside \(ConsentFixture.player) 'cat "$HOME/Documents/own" "\(home)/Documents/doc"'
      states | grep '^photos '
      """, as: later.account)
    #expect(theirs.output == "theirs\ndoc\nphotos denied\n", "\(theirs)")
    #expect(try consents.inside("cat \"$HOME/Documents/own\"").output == "mine\n")
  }

  /// One who has granted the app something and has not started it yet.
  @Test func grantsWaitForTheUpdate() throws {
    let assigning = try Assigning(rootless: false)
    let (consents, mounted) = (assigning.consents, assigning.mounted)
    let file = "\(consents.home)/Documents/doc"
    let grant = "echo doc > '\(file)' && insula grant \(ConsentFixture.player) '\(file)' --read-only"
    let granted = try consents.shell(grant)
    try #require(granted.status == 0, "\(granted)")
    let assigned = try assigning.assign()
    try #require(assigned.status == 0, "\(assigned)")
    for _ in 0..<2 {
      let refused = try consents.inside("true")
      #expect(refused.status == 1 && refused.errors.contains("was signed under another root"), "\(refused)")
    }
    let bundle = try assigning.make("Player", by: "next", before: assigning.next, version: "9")
    let updated = try mounted.run("update", bundle, "--store", mounted.store)
    #expect(updated.status == 0, "\(updated)")
    let now = try consents.inside("cat \"$HOME_OF_USER/Documents/doc\"")
    #expect(now.output == "doc\n", "\(now)")
  }

  /// The attack: an app that somebody else has signed in the team's name runs when its user installs the
  /// team's own, and goes on in what becomes that one's.
  ///
  /// What ends is what that user runs and what shares the data; others go on, and so does another user's. In
  /// a store of one's own, containers are made with their app, so they are the new root's from the assignment
  /// on, and nothing of the former root's starts with them.
  @Test func appsOfTheFormerRootEndWhereTheTeamsOwnIsInstalled() throws {
    let assigning = try Assigning(rootless: false)
    let (consents, mounted) = (assigning.consents, assigning.mounted)
    let user = assigning.fixture.user
    let assigned = try assigning.assign()
    try #require(assigned.status == 0, "\(assigned)")
    let neighbour = try TemporaryAccount()
    try assigning.fixture.succeed("user", "add", neighbour.account.name, "--store", mounted.store)
    let said = mounted.temporary.appending("said")
    func start(_ app: String, as account: Account? = nil, called name: String) throws {
      let begun = try consents.shell(
        """
        { inside \(app) 'echo begun; exec sleep 300'; echo "ended: $?"; } > \(said)-\(name) 2>&1 < /dev/null &
        until grep -q begun \(said)-\(name); do [ $((w+=1)) -gt 3000 ] && exit 9; sleep 0.02; done
        """, as: account)
      try #require(begun.status == 0, "\(name): \(begun)")
    }
    try start(ConsentFixture.player, called: "player")
    try start(ConsentFixture.mute, called: "mute")
    try start("org.example.other", called: "other")
    try start(ConsentFixture.player, as: neighbour.account, called: "neighbour")
    let bundle = try assigning.make("Player", by: "next", before: assigning.next, version: "9")
    let installed = try consents.shell("insula install -u \(user.name) '\(bundle)'")
    #expect(installed.status == 0, "\(installed)")
    // When it is installed, that one does not run any more, and all others do.
    let lines = try mounted.run("ps", "--store", mounted.store).output.split(separator: "\n")
    func running(_ app: String) -> Int { lines.count { $0.contains(app) } }
    #expect(running(ConsentFixture.player) == 1, "\(lines)")
    #expect(running(ConsentFixture.mute) == 1 && running("org.example.other") == 1, "\(lines)")
    #expect(eventually { mounted.temporary.text(of: "said-player")?.contains("ended: 143\n") == true })
    for name in ["mute", "other", "neighbour"] {
      #expect(mounted.temporary.text(of: "said-\(name)") == "begun\n", "\(name)")
    }
    // What is granted now, the team's own has.
    let own = try consents.shell(
      """
      echo doc > '\(consents.home)/Documents/doc'
      insula grant \(ConsentFixture.player) '\(consents.home)/Documents/doc' --read-only > /dev/null
      inside \(ConsentFixture.player) 'cat "$HOME_OF_USER/Documents/doc"'
      """)
    #expect(own.output == "doc\n", "\(own)")
    for app in [ConsentFixture.player, ConsentFixture.mute, "org.example.other"] {
      _ = try mounted.run("kill", app, "--store", mounted.store)
    }
  }

  /// Only who owns the store, of which the root must be trusted.
  @Test func assigningIsTheOwnersAlone() throws {
    let assigning = try Assigning(rootless: false)
    let order = #"{"verb":"order","order":{"action":"assign","team":"ABCDE12345","root":[1,2]}}"#
    let user = try assigning.fixture.ask(order, as: assigning.fixture.user)
    #expect(user.contains("only root and the owner of the store"), "\(user)")
    let root = try assigning.fixture.ask(order, as: RunFixture.root)
    #expect(root.contains("a root that the store trusts"), "\(root)")
    #expect(try assigning.consents.inside("true").status == 0)
  }
}
