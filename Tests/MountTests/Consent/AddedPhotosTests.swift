// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

// What an app may try with photos that it adds (which files it may name is in PhotoIntakeTests):
//
// - it has asked nobody, was denied, is restricted, or has consent to something else: `consentIsRequired`
// - it sees, reads, lists or changes what is there since it may add: `addingShowsNothing`
// - it adds what it has asked for before its user took consent back: `revocationCountsForWhatWaits`
// - it makes its call again and again while the process that serves ends: `photoIsAddedOnceOverReplacements`

/// Apps add photos without seeing the library.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct AddedPhotosTests {
  /// Python for apps: `photo(NAME)` makes a photo in the app's home, `add(NAME)` adds it.
  private static let client = """
    import json, os, socket, sys
    def ask(**fields):
        s = socket.socket(socket.AF_UNIX)
        s.connect(os.environ["INSULA_SOCKET"])
        s.sendall((json.dumps(fields) + "\\n").encode())
        return json.loads(s.makefile().readline())
    def photo(name):
        file = open(os.path.join(os.environ["HOME"], name), "wb")
        file.write(b"\\xff\\xd8\\xff\\xe0" + name.encode() * 5000)
        file.close()
    def add(name, **more):
        reply = ask(verb="add-photo", file=name, **more)
        return "added" if reply["ok"] else "errno %d" % reply["errno"]
    def new(name, **more):
        photo(name)
        return add(name, **more)
    """

  private func fixture(rootless: Bool = false) throws -> ConsentFixture {
    let fixture = try ConsentFixture(rootless: rootless)
    let client = try fixture.fixture.mounted.temporary.write(Self.client, to: "client.py")
    let made = try fixture.shell(
      """
      for app in \(ConsentFixture.player) \(ConsentFixture.mute); do
        cp '\(client)' "$(insula path $app documents)/client.py"
      done
      """)
    try #require(made.status == 0, "\(made)")
    return fixture
  }

  private func python(_ code: String, app: String = ConsentFixture.player) -> String {
    """
    insula run --env HOME_OF_USER="$POINT/Users/$(id -un 2> /dev/null)" \(app) -- python3 -B -c '
    import sys; sys.path.insert(0, "Documents")
    from client import *
    \(code)'
    """
  }

  private func files(_ fixture: ConsentFixture) throws -> Int {
    let result = try fixture.shell(
      "find '\(fixture.home)/Pictures' -path '*.photoslibrary/originals/*' -name '*.jpg' | wc -l")
    return Int(result.output.trimmingCharacters(in: .whitespacesAndNewlines)) ?? -1
  }

  @Test(arguments: [false, true])
  func userIsAskedAndPhotosAreAdded(rootless: Bool) throws {
    let fixture = try fixture(rootless: rootless)
    let result = try fixture.shell(
      "agent allow\n"
        + python(
          """
          print(new("tmp/a.jpg"), new("Library/Caches/b.jpg"), new("Documents/c.jpg"))
          """)
        + "\nwait $agentpid; grep -c number $agent; grep -o photos-add $agent")
    #expect(result.output == "added added added\n1\nphotos-add\n", "\(result)")
    #expect(try files(fixture) == 3)
    #expect(try fixture.state(of: "photos-add") == "authorized")
    #expect(try fixture.state(of: "photos") == "not-determined")
    // What was added is the user's, and as it was.
    let check = try fixture.shell(
      """
      cd '\(fixture.home)/Pictures/All.photoslibrary/originals'
      find . -type f ! -user "$(id -un)"
      find . -type f -size 45004c -o -type f -size 100004c -o -type f -size 75004c | wc -l
      """)
    #expect(check.output == "3\n", "\(check)")
  }

  @Test(arguments: [false, true])
  func consentIsRequired(rootless: Bool) throws {
    let fixture = try fixture(rootless: rootless)
    let add = python("print(new(\"tmp/a.jpg\"))")
    #expect(try fixture.shell(add).output == "errno 1\n")
    #expect(try fixture.state(of: "photos-add") == "not-determined")
    // Something else is no consent to this.
    #expect(try fixture.shell("decide allow media-library > /dev/null\n" + add).output == "errno 1\n")
    #expect(try fixture.shell("agent deny\n" + add + "\nwait $agentpid").output == "errno 1\n")
    #expect(try fixture.shell("agent allow\n" + add + "\nkill $agentpid").output == "errno 1\n")
    // An app that has not said why it asks is ended.
    let mute = python("print(new(\"tmp/a.jpg\"))", app: ConsentFixture.mute)
    let ended = try fixture.shell("agent allow\n" + mute + "; echo $?\nkill $agentpid")
    #expect(ended.output == "137\n" && ended.errors.contains("NSPhotoLibraryAddUsage"), "\(ended)")
    #expect(try files(fixture) == 0)
    // Whoever may use all photos may add some, whatever was said of that alone.
    #expect(try fixture.shell("decide allow photos\n" + add).output == "authorized\nadded\n")
    #expect(try fixture.state(of: "photos-add") == "authorized")
    #expect(try fixture.shell("decide deny photos\n" + add).output == "denied\nerrno 1\n")
    #expect(try fixture.state(of: "photos-add") == "denied")
    #expect(try files(fixture) == 1)
  }

  /// An administrator who restricts photos restricts adding some.
  @Test(arguments: ["photos", "photos-add", "*"])
  func restrictionIsTheAdministrators(service: String) throws {
    let fixture = try fixture()
    let managed = "\(fixture.fixture.mounted.point)/Library/Managed Preferences"
    let list = "<plist version=\"1.0\"><dict><key>\(service)</key><true/></dict></plist>"
    let written = try Program.run([
      "sh", "-c",
      "mkdir -p '\(managed)' && echo '\(list)' > '\(managed)/org.insula.consent.plist'",
    ])
    try #require(written.status == 0, "\(written)")
    let add = python("print(new(\"tmp/a.jpg\"))")
    #expect(try fixture.shell("decide allow photos-add\n" + add).output == "restricted\nerrno 1\n")
    #expect(try files(fixture) == 0)
  }

  @Test(arguments: [false, true])
  func addingShowsNothing(rootless: Bool) throws {
    let fixture = try fixture(rootless: rootless)
    let result = try fixture.shell(
      "decide allow photos-add\n"
        + python(
          """
          print(new("tmp/a.jpg"))
          pictures = os.environ["HOME_OF_USER"] + "/Pictures"
          def attempt(call, *words):
              try: call(*words); return "done"
              except OSError as error: return error.errno
          library = pictures + "/All.photoslibrary"
          print(attempt(os.listdir, pictures), attempt(os.stat, library), attempt(open, library + "/1"),
                attempt(os.mkdir, pictures + "/New.photoslibrary"),
                attempt(os.rename, "tmp/a.jpg", library + "/a"),
                attempt(os.link, "tmp/a.jpg", library + "/a"))
          print(sorted(ask(verb="add-photo", file="tmp/a.jpg")))
          before = os.stat(pictures)
          print(new("tmp/b.jpg"), os.stat(pictures) == before)
          """))
    #expect(
      result.output
        == "authorized\nadded\n1 1 1 1 1 1\n['ok']\nadded True\n", "\(result)")
  }

  /// Nothing is added after the command's return, whoever was given it before: directly before the photo gets
  /// its name, it is asked for.
  @Test func revocationCountsForWhatWaits() throws {
    let fixture = try fixture()
    let result = try fixture.shell(
      """
      decide allow photos-add
      out=$(mktemp)
      { \(python(
        """
        import threading, time
        photo("tmp/a.jpg"); print("ready", flush=True)
        while not os.path.exists(os.environ["TMPDIR"] + "/go"): time.sleep(0.02)
        out = []
        threads = [threading.Thread(target=lambda: out.append(add("tmp/a.jpg"))) for _ in range(3)]
        for t in threads: t.start()
        for t in threads: t.join()
        print(sorted(out))
        """)); } 2>&1 | cat > $out &
      until grep -q ready $out || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      starter=$(insula ps --json | sed -n 's/.*"pid" : \\([0-9]*\\).*/\\1/p'); kill -STOP $starter
      touch "$(insula path \(ConsentFixture.player) tmp)/go"
      sleep 1; decide deny photos-add
      kill -CONT $starter; wait; cat $out
      """)
    #expect(
      result.output == "authorized\ndenied\nready\n['errno 1', 'errno 1', 'errno 1']\n", "\(result)")
    #expect(try files(fixture) == 0)
  }

  @Test(arguments: [false, true])
  func photoIsAddedOnceOverReplacements(rootless: Bool) throws {
    let fixture = try fixture(rootless: rootless)
    let out = try fixture.fixture.mounted.temporary.makeDirectory("out", mode: 0o777) + "/out"
    let code = """
      import time
      begin, calls, lost = time.time(), 0, 0
      print("ready", flush=True)
      while not os.path.exists(os.environ["TMPDIR"] + "/end"):
          photo("tmp/%d.jpg" % calls)
          for attempt in range(100):
              try:
                  if add("tmp/%d.jpg" % calls, token="call %d" % calls) == "added": break
              except Exception: lost += 1
          else: print("never added")
          calls += 1
      print(calls, lost > 0)
      """
    let begun = try fixture.shell(
      """
      decide allow photos-add
      { \(python(code)); } > '\(out)' 2>&1 < /dev/null &
      until grep -q ready '\(out)' || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      """)
    try #require(begun.status == 0, "\(begun)")
    for _ in 0..<5 { try fixture.fixture.succeed("restart", fixture.fixture.mounted.store) }
    let after = try fixture.shell(
      """
      touch "$(insula path \(ConsentFixture.player) tmp)/end"
      i=0; until [ $(wc -l < '\(out)') -ge 2 ] || [ $i = 1000 ]; do sleep 0.02; i=$((i+1)); done
      tail -n +2 '\(out)'
      """)
    let added = try files(fixture)
    let words = after.output.split(separator: " ")
    #expect(words.count == 2 && words.first.map { Int($0) } == added, "\(added) \(after)")
  }
}
