// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// Files that people open with apps that run already.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct OpenedTests {
  /// An app that takes documents until it is told of a last one, and none after a deaf one; it prints what it
  /// is started with and told.
  private static let listener = """
    #!/usr/bin/python3
    import json, os, socket, sys, time

    def connect():
        made = socket.socket(socket.AF_UNIX)
        made.connect(os.environ["INSULA_SOCKET"])
        return made.makefile("rw")

    def ask(file, **request):
        file.write(json.dumps(request) + "\\n")
        file.flush()
        return file

    def show(word, paths):
        print(word, *[os.path.basename(p) + "=" + open(p).read() for p in paths], flush=True)

    show("started", sys.argv[1:])
    own, calls = connect(), connect()
    while True:
        ask(own, verb="await-opened")
        # By the answer to this it is known that the app waits.
        root = json.loads(ask(calls, verb="self").readline())["self"]["root"]
        print("waiting", flush=True)
        told = [root + "/" + path for path in json.loads(own.readline())["opened"]]
        show("told", told)
        names = " ".join(os.path.basename(path) for path in told)
        if "deaf" in names:
            time.sleep(100)
        if "last" in names:
            break

    """

  private func fixture(rootless: Bool = false, inPlace: Bool = false) throws -> OpenFixture {
    let fixture = try OpenFixture(rootless: rootless)
    try fixture.install(
      "Listener", rank: "Default", types: ["public.image"], inPlace: inPlace, program: Self.listener)
    return fixture
  }

  /// Lines of shell after the app was started with `first.png`, and waits; its output is in `out`.
  private func afterStart(_ fixture: OpenFixture, _ script: String) throws -> ProgramResult {
    try fixture.shell(
      """
      lines() { for i in $(seq 400); do [ $(grep -c "$1" out) -ge $2 ] && return; sleep 0.05; done; cat out; }
      for name in first second third deaf last; do printf $name >$name.png; done
      timeout 100 "$INSULA" open --store "$POINT" first.png >out 2>&1 &
      lines waiting 1
      \(script)
      """)
  }

  @Test(arguments: [false, true], [false, true])
  func anAppThatRunsIsTold(rootless: Bool, inPlace: Bool) throws {
    let result = try afterStart(
      try fixture(rootless: rootless, inPlace: inPlace),
      """
      insula open second.png third.png || echo failed
      lines waiting 2
      insula open --with Listener || echo failed
      lines waiting 3
      insula ps | grep -c listener
      open last.png
      wait; cat out
      """)
    #expect(
      result.output == """
        1
        started first.png=first
        waiting
        told second.png=second third.png=third
        waiting
        told
        waiting
        told last.png=last

        """, "\(result)")
  }

  /// One that does not ask again, or has hung up, is started once more; others of the same app are told.
  @Test func thoseThatDoNotAnswerAreStartedOnceMore() throws {
    let result = try afterStart(
      try fixture(),
      """
      open deaf.png; lines told 1
      # It has taken something just now, and is waited for.
      timeout 100 "$INSULA" open --store "$POINT" second.png >second 2>&1 &
      n=$!; begun() { for i in $(seq 400); do grep -q waiting $1 && break; sleep 0.05; done; }
      begun second; open third.png; open last.png; wait $n; cat second
      # Only the one that is deaf is left, and is not waited for.
      sleep 5; begin=$(date +%s%N); timeout 100 "$INSULA" open --store "$POINT" last.png >third 2>&1 &
      begun third; end=$(date +%s%N); [ $((end - begin)) -le 4500000000 ] && echo at once
      "$INSULA" kill org.example.listener --store "$POINT"; wait; cat out third
      """)
    #expect(
      result.output == """
        started second.png=second
        waiting
        told third.png=third
        waiting
        told last.png=last
        at once
        started first.png=first
        waiting
        told deaf.png=deaf
        started last-2.png=last
        waiting

        """, "\(result)")
  }

  /// An app that has asked once, and asks no more, is waited for by nobody.
  @Test func whoHasHungUpIsNotWaitedFor() throws {
    let fixture = try OpenFixture()
    let program = """
      #!/usr/bin/python3
      import os, socket, time
      made = socket.socket(socket.AF_UNIX)
      made.connect(os.environ["INSULA_SOCKET"])
      made.send(b'{"verb":"await-opened"}\\n')
      time.sleep(0.5)
      made.close()
      print("hung up", flush=True)
      time.sleep(100)

      """
    try fixture.install("Shy", rank: "Default", types: ["public.image"], program: program)
    let result = try fixture.shell(
      """
      for i in 1 2 3; do
        begin=$(date +%s%N); timeout 100 "$INSULA" open --store "$POINT" --with Shy >out$i 2>&1 &
        for j in $(seq 400); do grep -q hung out$i && break; sleep 0.05; done
        [ $(($(date +%s%N) - begin)) -le 4500000000 ] && echo at once
      done
      insula kill org.example.shy; wait; cat out1 out2 out3
      """)
    #expect(result.output == "at once\nat once\nat once\nhung up\nhung up\nhung up\n", "\(result)")
  }

  /// Nobody else's app is told, whatever they ask the daemon for; an app is told only of places in the tree,
  /// and tells none.
  @Test func onlyTheUserTellsTheirApp() throws {
    let fixture = try fixture()
    let started = try fixture.shell(
      """
      printf last >last.png
      setsid timeout 100 "$INSULA" open --store "$POINT" last.png >out 2>&1 </dev/null &
      for i in $(seq 400); do grep -q waiting out && break; sleep 0.05; done
      """)
    #expect(started.status == 0, "\(started)")
    func tell(_ paths: String, as account: Account? = nil) throws -> String {
      let line = #"{"verb":"tell-opened","identifier":"org.example.listener","opened":\#(paths)}"#
      return try fixture.run.ask(line, as: account)
    }
    for path in ["../x", "/etc/passwd", "", "a//b", "a/./b", "a\\u0000b"] {
      let answer = try tell("[\"\(path)\"]")
      #expect(answer.includes("below the root of the tree"), "\(path): \(answer)")
    }
    #expect(try tell(#"{"a":1}"#).includes("\"ok\":false"))
    let long = "[" + Array(repeating: "\"a\"", count: 20_000).joined(separator: ",") + "]"
    #expect(try !tell(long).includes("\"ok\":true"))
    let stranger = try TemporaryAccount()
    for other in [RunFixture.root, stranger.account] {
      let answer = try tell(#"["Users/Shared"]"#, as: other)
      #expect(answer.includes("does not wait for documents"), "\(answer)")
    }
    let inside = try fixture.run.inside(
      """
      python3 -c 'import os, socket
      s = socket.socket(socket.AF_UNIX); s.connect(os.environ["INSULA_SOCKET"]); f = s.makefile("rw")
      f.write("{\\"verb\\":\\"tell-opened\\",\\"identifier\\":\\"org.example.listener\\",\\"opened\\":[]}\\n")
      f.flush(); print(f.readline())'
      """)
    #expect(inside.output.includes("an app can't ask for this"), "\(inside)")
    let end = try fixture.shell(
      """
      open last.png; for i in $(seq 400); do [ $(grep -c told out) = 1 ] && break; sleep 0.05; done; cat out
      """)
    #expect(end.output == "started last.png=last\nwaiting\ntold last-2.png=last\n", "\(end)")
  }
}
