// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What is private, and what an app gets of it: nothing before its user has consented.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct ConsentTests {
  @Test(arguments: [false, true])
  func firstAccessAsks(rootless: Bool) throws {
    let fixture = try ConsentFixture(rootless: rootless)
    let result = try fixture.shell(
      """
      agent allow
      inside \(ConsentFixture.player) 'cat "$HOME_OF_USER/Music/Music/song"; ls "$HOME_OF_USER/Music"'
      wait $agentpid; cat $agent
      """)
    let lines = result.output.split(separator: "\n").map(String.init)
    try #require(lines.count == 5, "\(result)")
    // What it was not asked about stays unseen.
    #expect(
      lines[0] == "song" && lines[1] == "Music" && lines[2] == "ready" && lines[4] == "done", "\(result)")
    #expect(lines[3].contains("\"text\": \"Shows your AppleMusic.\""), "\(lines[3])")
    #expect(lines[3].contains("\"identifier\": \"org.example.player\""), "\(lines[3])")
    #expect(try fixture.state(of: "media-library") == "authorized")
    #expect(try fixture.state(of: "photos") == "not-determined")
    // From then on nobody is asked, and nothing can be changed in a library of media.
    let later = try fixture.inside(
      """
      cd "$HOME_OF_USER/Music"; cat Music/song; echo x > Music/new || ls Other
      """)
    #expect(later.output == "song\n" && later.status == 2, "\(later)")
  }

  @Test(arguments: [false, true])
  func refusalLasts(rootless: Bool) throws {
    let fixture = try ConsentFixture(rootless: rootless)
    let result = try fixture.shell(
      """
      agent deny allow
      inside \(ConsentFixture.player) 'cat "$HOME_OF_USER/Music/Music/song"; ls "$HOME_OF_USER/Music"' 2>&1
      inside \(ConsentFixture.player) 'cat "$HOME_OF_USER/Music/Music/song"' 2>&1
      kill $agentpid; grep -c task $agent; grep -c done $agent
      """)
    let lines = result.output.split(separator: "\n").map(String.init)
    #expect(lines.filter { $0.hasSuffix("Operation not permitted") }.count == 3, "\(result)")
    #expect(lines.suffix(2) == ["0", "1"], "\(result)")
    #expect(try fixture.state(of: "media-library") == "denied")
  }

  /// Nobody there to ask decides nothing, and the log says what to do.
  @Test(arguments: [false, true])
  func nobodyThereDecidesNothing(rootless: Bool) throws {
    let fixture = try ConsentFixture(rootless: rootless)
    let result = try fixture.inside("cat \"$HOME_OF_USER/Music/Music/song\"")
    #expect(result.status == 1 && result.errors.contains("Operation not permitted"), "\(result)")
    #expect(try fixture.state(of: "media-library") == "not-determined")
    let log = try fixture.shell("sleep 1.5; insula log").output
    #expect(log.contains("insula consent"), "\(log)")
  }

  @Test(arguments: [false, true])
  func appThatSaysNothingIsEnded(rootless: Bool) throws {
    let fixture = try ConsentFixture(rootless: rootless)
    let result = try fixture.shell(
      """
      agent allow
      inside \(ConsentFixture.mute) 'ls "$HOME_OF_USER"; ls "$HOME_OF_USER/Music"; echo on; sleep 20'
      echo $?; insula ps; kill $agentpid; cat $agent
      """)
    #expect(result.output.contains("137\n") && !result.output.contains("on\n"), "\(result)")
    #expect(result.errors.contains("NSAppleMusicUsageDescription"), "\(result)")
    #expect(!result.output.contains("number"), "nobody was asked: \(result)")
    let log = try fixture.shell("sleep 1.5; insula log").output
    #expect(log.contains("did not say why it asks"), "\(log)")
  }

  /// It was built before there was such a refusal, and would go on as if its user had nothing.
  @Test(arguments: [false, true])
  func appFromBeforeTheKeysIsEndedWhenRefused(rootless: Bool) throws {
    let fixture = try ConsentFixture(rootless: rootless)
    let script = "cat \"$HOME_OF_USER/Music/Music/song\"; echo on; sleep 20"
    let refused = try fixture.shell(
      """
      agent deny
      inside \(ConsentFixture.old) '\(script)'
      echo $?; kill $agentpid; cat $agent
      """)
    #expect(refused.output.contains("137\n") && !refused.output.contains("on\n"), "\(refused)")
    #expect(refused.output.contains("number"), "somebody was asked: \(refused)")
    #expect(refused.errors.contains("NSAppleMusicUsageDescription"), "\(refused)")
    let allowed = try fixture.shell(
      """
      agent allow
      inside \(ConsentFixture.old) 'cat "$HOME_OF_USER/Pictures/All.photoslibrary/1"; echo on'
      echo $?; kill $agentpid
      """)
    #expect(allowed.output == "photo\non\n0\n", "\(allowed)")
  }

  /// The store decides what the media library is.
  @Test(arguments: [false, true])
  func allMusicIsTheMediaLibraryIfTheStoreSaysSo(isAll: Bool) throws {
    let fixture = try ConsentFixture(initOptions: isAll ? ["--all-music"] : [])
    #expect(try fixture.shell("decide allow media-library").output == "authorized\n")
    let result = try fixture.inside(
      "cd \"$HOME_OF_USER/Music\"; cat Music/song; cat Other/file; echo x > new")
    #expect(result.output == (isAll ? "song\nother\n" : "song\n"), "\(result)")
    #expect(result.isRefusal, "it can't be changed: \(result)")
  }

  /// A restriction that comes while an app runs takes from it what it had.
  @Test(arguments: [false, true])
  func restrictionActsOnAppsThatRun(rootless: Bool) throws {
    let fixture = try ConsentFixture(rootless: rootless)
    let managed = "\(fixture.fixture.mounted.point)/Library/Managed Preferences"
    let list =
      "<plist version=\"1.0\"><dict><key>media-library</key><true/></dict></plist>"
    let documents = "\(fixture.home)/Library/Containers/\(ConsentFixture.player)/Data/Documents"
    let words = [
      "timeout", "120", "sh", "-c",
      """
      until [ -e '\(documents)/has-read' ] || [ $((w+=1)) -gt 2400 ]; do sleep 0.05; done
      mkdir -p '\(managed)' && echo '\(list)' > '\(managed)/org.insula.consent.plist'
      until [ -e '\(documents)/has-lost' ] || [ $((w+=1)) -gt 2400 ]; do sleep 0.05; done
      rm '\(managed)/org.insula.consent.plist'
      """,
    ]
    let asOwner = rootless ? ["runuser", "-u", fixture.fixture.user.name, "--"] : []
    let administrator = try JoinableThread(name: "restricts") { _ = try? Program.run(asOwner + words) }
    defer { administrator.join() }
    let result = try fixture.shell(
      """
      decide allow media-library
      inside \(ConsentFixture.player) '
        cd "$HOME_OF_USER"; exec 3< Music/Music/song; cat Music/Music/song; touch "$HOME/Documents/has-read"
        n=0; while cat Music/Music/song > /dev/null 2>&1; do
          n=$((n + 1)); [ $n -lt 1000 ] || exit 9; sleep 0.05; done
        head -c 1 <&3 2>&1; cat Music/Music/song 2>&1; touch "$HOME/Documents/has-lost"
        n=0; until cat Music/Music/song 2> /dev/null; do
          n=$((n + 1)); [ $n -lt 1000 ] || exit 8; sleep 0.05; done'
      """)
    let lines = result.output.split(separator: "\n").map(String.init)
    #expect(result.status == 0, "\(result)")
    #expect(lines.first == "authorized" && lines.filter { $0 == "song" }.count == 2, "\(result)")
    #expect(lines.filter { $0.hasSuffix("Operation not permitted") }.count == 2, "\(result)")
  }

  /// What an administrator restricts, nobody's answer overrides; and it is no refusal of the user's.
  @Test func restrictionIsTheAdministrators() throws {
    let fixture = try ConsentFixture()
    let managed = "\(fixture.fixture.mounted.point)/Library/Managed Preferences"
    func restrict(_ text: String) throws {
      let script = "mkdir -p '\(managed)' && cat > '\(managed)/org.insula.consent.plist'"
      let written = try Program.run(["sh", "-c", script + " <<'END'\n\(text)\nEND"])
      try #require(written.status == 0, "\(written)")
    }
    #expect(try fixture.shell("decide allow photos; decide deny contacts").output == "authorized\ndenied\n")
    try restrict(
      "<plist version=\"1.0\"><dict><key>photos</key><true/><key>media-library</key>"
        + "<array><string>org.example.other</string></array></dict></plist>")
    #expect(try fixture.state(of: "photos") == "restricted")
    #expect(try fixture.state(of: "contacts") == "denied")
    #expect(try fixture.state(of: "media-library") == "not-determined")
    #expect(try fixture.shell("decide allow photos").output == "restricted\n")
    let result = try fixture.inside("ls \"$HOME_OF_USER/Pictures\"")
    #expect(result.status == 2 && result.errors.contains("Operation not permitted"), "\(result)")
    for damaged in ["", "<plist version=\"1.0\"><dict><key>photons</key><true/></dict></plist>", "\u{1}"] {
      try restrict(damaged)
      #expect(try fixture.state(of: "reminders") == "restricted", "\(damaged)")
    }
    try #require(try Program.run(["rm", "-r", managed]).status == 0)
    #expect(try fixture.state(of: "photos") == "authorized")
  }

  /// Where a link leads to is not told either to an app that had found it before.
  @Test(arguments: [false, true])
  func linksAreTakenBack(rootless: Bool) throws {
    let fixture = try ConsentFixture(rootless: rootless)
    let script = """
      import os, time
      own = os.environ["HOME"] + "/Documents/"
      library = os.environ["HOME_OF_USER"] + "/Pictures/All.photoslibrary"
      os.symlink("told", library + "/link")
      link = os.open(library + "/link", os.O_PATH | os.O_NOFOLLOW)
      print(os.readlink("", dir_fd=link))
      open(own + "found", "w").close()
      end = time.monotonic() + 60
      while not os.path.exists(own + "denied") and time.monotonic() < end: time.sleep(0.02)
      try: print(os.readlink("", dir_fd=link))
      except OSError as error: print("errno", error.errno)
      """
    let program = try fixture.fixture.mounted.temporary.write(script, to: "links.py")
    let result = try fixture.shell(
      """
      decide allow photos; inside \(ConsentFixture.player) true
      own='\(fixture.home)/Library/Containers/\(ConsentFixture.player)/Data/Documents'
      insula run --env HOME_OF_USER='\(fixture.home)' \(ConsentFixture.player) -- \\
        python3 -B - < '\(program)' &
      timeout 60 sh -c "until [ -e '$own/found' ]; do sleep 0.02; done"
      decide deny photos; touch "$own/denied"; wait
      """)
    #expect(result.output == "authorized\ndenied\ntold\nerrno 2\n", "\(result)")
  }

  /// What changes acts at once, in apps that run: also on what is open and mapped.
  @Test(arguments: [false, true])
  func decisionsActAtOnce(rootless: Bool) throws {
    let fixture = try ConsentFixture(rootless: rootless)
    let result = try fixture.shell(
      """
      out=$(mktemp)
      inside \(ConsentFixture.player) '
        cd "$HOME_OF_USER"
        until cat Music/Music/song 2> /dev/null || [ $((w+=1)) -gt 2400 ]; do sleep 0.05; done
        exec 3< Music/Music/song; echo open
        until ! { cat < /proc/self/fd/3; } > /dev/null 2>&1 || [ $((w+=1)) -gt 2400 ]; do sleep 0.05; done
        head -c 1 <&3 2>&1; ls Music 2>&1; stat -c %s Music' > $out 2>&1 &
      sleep 0.5; cat $out; decide allow media-library
      until grep -q open $out || [ $((w+=1)) -gt 2400 ]; do sleep 0.05; done
      decide deny media-library; wait; cat $out
      """)
    let lines = result.output.split(separator: "\n").map(String.init)
    #expect(lines.prefix(4) == ["authorized", "denied", "song", "open"], "\(result)")
    #expect(lines.filter { $0.hasSuffix("Operation not permitted") }.count == 2, "\(result)")
    #expect(lines.last == "0", "\(result)")
  }
}
