// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What apps ask through the sockets in their views.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct RunSocketTests {
  /// A store with an app that asks by the library: `org.example.caller`.
  private static func fixture(rootless: Bool = false) throws -> RunFixture {
    let fixture = try RunFixture(rootless: rootless)
    let groups = "<array><string>group.org.example.shared</string></array>"
    try fixture.install(
      "Caller", entitlements: "<key>com.apple.security.application-groups</key>\(groups)",
      info: ["Contacts", "AppleMusic", "PhotoLibrary", "PhotoLibraryAdd"].map {
        "<key>NS\($0)UsageDescription</key><string>Wants it.</string>"
      }.joined(), executable: try compiled.get().appending("app-calls"))
    return fixture
  }

  /// With the library as `make install` makes it.
  private static let compiled = Result {
    let made = try TemporaryDirectory()
    let root = Checkout.root
    let result = try Program.run([
      "sh", "-c",
      """
      cd "$1" && for file in "$2"/Sources/CInsula/*.c; do
        cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -I"$2/Sources/CInsula/include" -c "$file" || exit 1
      done
      ar rcs libinsula.a *.o && cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror \
        -I"$2/Sources/CInsula/include" -o app-calls "$2/Tests/Fixtures/app-calls.c" -L. -linsula
      """, "sh", made.path, root,
    ])
    guard result.status == 0 else { throw MountedStore.Failure(words: result.errors) }
    return made
  }

  private static let app = "org.example.caller"

  private func ask(_ fixture: RunFixture, _ words: String) throws -> ProgramResult {
    try fixture.shell("insula run \(Self.app) --args \(words)")
  }

  @Test(arguments: [false, true])
  func appAsksAboutItself(rootless: Bool) throws {
    let fixture = try Self.fixture(rootless: rootless)
    let point = fixture.mounted.point
    let home = "\(point)/Users/\(fixture.user.name)"
    let data = "\(home)/Library/Containers/\(Self.app)/Data"
    let own = try ask(fixture, "info")
    #expect(
      own.output == """
        \(Self.app)
        Caller
        \(point)
        \(point)/Applications/Caller.app
        \(data)
        \(fixture.user.uid)
        group group.org.example.shared

        """, "\(own)")
    for (place, path) in [
      ("documents", data + "/Documents"), ("home", data), ("tmp", data + "/tmp"),
      ("bundle", "\(point)/Applications/Caller.app"),
      ("group:group.org.example.shared", "\(home)/Library/Group Containers/group.org.example.shared"),
    ] {
      let told = try ask(fixture, "path \(place)")
      #expect(told.output == path + "\n", "\(told)")
      // That is what commands say outside.
      #expect(try fixture.shell("insula path \(Self.app) \(place)").output == told.output)
      #expect(try fixture.shell("insula run \(Self.app) -- test -d '\(path)'").status == 0)
    }
    #expect(try ask(fixture, "path group:group.org.other").output.hasPrefix("failed 1 "))
    #expect(try ask(fixture, "path nowhere").output.hasPrefix("failed 22 "))
    let letter = "\(home)/Documents/a \"quoted\" letter"
    let granted = try fixture.shell(
      """
      echo x > '\(letter)'; insula grant \(Self.app) '\(letter)' --read-write
      insula grant $APP \(home)/Music
      """)
    #expect(granted.status == 0, "\(granted)")
    #expect(try ask(fixture, "grants").output == "write \(letter)\n1 grants\n")
  }

  /// Whatever an app sends, it is answered as itself, and gets nothing but answers.
  @Test(arguments: [false, true])
  func appSpeaksForItselfAlone(rootless: Bool) throws {
    let fixture = try Self.fixture(rootless: rootless)
    for request in [
      #"{"verb":"path","place":"documents","identifier":"org.example.notes"}"#,
      #"{"verb":"app","identifier":"org.example.notes"}"#, #"{"verb":"app","identifier":"org.example.none"}"#,
      #"{"verb":"grants","identifier":"org.example.notes","after":0}"#,
      #"{"verb":"grants","user":\#(fixture.user.uid + 1),"after":0}"#,
    ] {
      let reply = try ask(fixture, "call '\(request)'").output
      #expect(reply.contains("an app can ask only about itself"), "\(request): \(reply)")
    }
    for verb in ["status", "apps", "running", "restart", "unmount", "trace", "pass", "endpoint"] {
      let reply = try ask(fixture, "call '{\"verb\":\"\(verb)\"}'").output
      #expect(reply.contains("an app can't ask for this"), "\(verb): \(reply)")
    }
    let own = try ask(fixture, "call '{\"verb\":\"self\",\"identifier\":\"org.example.notes\"}'").output
    #expect(own.contains("\"identifier\":\"\(Self.app)\""), "\(own)")
    // EPERM: no descriptor goes through it.
    if KernelRelease.own >= KernelRelease(6, 16) { #expect(try ask(fixture, "pass").output == "1\n") }
    // Nor does an app's socket do what the control socket does, and the other way round.
    if !rootless {
      let outside = try fixture.ask(#"{"verb":"self"}"#)
      #expect(outside.contains("only an app can ask this"), "\(outside)")
      #expect(try fixture.ask(#"{"verb":"endpoint"}"#).contains("has started no app"))
    }
    // There is nothing else there, and nothing can be put there.
    let place = try fixture.inside(
      "cd /run/insula && ls -A; rm -f app.sock; touch x; ls .. && test -S app.sock")
    #expect(place.output == "app.sock\ninsula\n" && place.status == 0, "\(place)")
  }

  /// The attack: each view has a filesystem made that stays as long as somebody keeps it, and the machine has
  /// so many of them.
  @Test(.enabled(if: KernelRelease.own >= KernelRelease(6, 5), "the kernel does not tell who asks"))
  func socketsTakeNoFilesystems() throws {
    let fixture = try RunFixture()
    let script = """
      import errno, os, time
      \(RunFixture.asking)
      mounts, connections = [], []
      def names(m): return os.listdir("/proc/self/fd/%d" % m)
      for turn in range(2):
          assert ask({"verb": "run", "identifier": sys.argv[2]})[1] == 1
          connections.append(kept.pop())
          for again in range(2):
              assert ask({"verb": "endpoint"})[1] == 1
              mounts.append(kept.pop())
      print([names(m) for m in mounts], len({os.stat(m).st_ino for m in mounts}))
      print({os.stat(m).st_dev for m in mounts} == {os.stat(os.path.dirname(sys.argv[1])).st_dev})
      for change in [lambda: os.mkdir("x", dir_fd=mounts[0]), lambda: os.unlink("app.sock", dir_fd=mounts[0]),
                     lambda: os.chmod("app.sock", 0o666, dir_fd=mounts[0])]:
          try: change(); print("done")
          except OSError as error: print(errno.errorcode[error.errno])
      os.close(connections[0])
      end = time.monotonic() + 60
      while names(mounts[0]) and time.monotonic() < end: time.sleep(0.01)
      print([names(m) for m in mounts])
      """
    let made = try fixture.mounted.temporary.write(script, to: "keep.py")
    #expect(chmod(made, 0o644) == 0)
    let result = try fixture.shell("python3 \(made) \(try fixture.mounted.socket()) $APP")
    let socket = "['app.sock']"
    #expect(
      result.output == """
        [\(socket), \(socket), \(socket), \(socket)] 2
        True
        EROFS
        EROFS
        EROFS
        [[], [], \(socket), \(socket)]

        """, "\(result)")
    // Nothing of that is left, and others than root see nothing of it while it is there.
    let place = try fixture.mounted.socket().replacing(".sock", with: ".apps")
    #expect(try fixture.shell("ls \(place)").errors.contains("Permission denied"))
    #expect(try fixture.mounted.unmount().status == 0)
    #expect(!FD.cwd.has(place))
  }

  /// Each socket is a mount that lasts as long as somebody has it open.
  @Test(.enabled(if: KernelRelease.own >= KernelRelease(6, 5), "the kernel does not tell who asks"))
  func anAppGetsFewSockets() throws {
    let fixture = try RunFixture()
    let script = """
      \(RunFixture.asking)
      for turn in range(2):
          assert ask({"verb": "run", "identifier": sys.argv[2]})[1] == 1
          texts = [ask({"verb": "endpoint"}) for _ in range(4)]
          answers = [(json.loads(text.splitlines()[0]), count) for text, count in texts]
          print([(answer["ok"], count) for answer, count in answers], answers[3][0].get("message"))
      """
    let made = try fixture.mounted.temporary.write(script, to: "ask.py")
    #expect(chmod(made, 0o644) == 0)
    let result = try fixture.shell("python3 \(made) \(try fixture.mounted.socket()) $APP")
    let expected =
      "[(True, 1), (True, 1), (False, 0), (False, 0)] this app has been given its socket already\n"
    #expect(result.output == expected + expected, "\(result)")
  }

  @Test(arguments: [false, true])
  func appIsToldWhenItsGrantsChange(rootless: Bool) throws {
    let fixture = try Self.fixture(rootless: rootless)
    let home = "\(fixture.mounted.point)/Users/\(fixture.user.name)/Documents"
    let script = """
      out=$(mktemp); insula run \(Self.app) --args await > $out & running 1
      until grep -q '0 grants' $out || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      # What is granted to another app is nothing of this one's.
      echo x > \(home)/other; insula grant $APP \(home)/other > /dev/null; sleep 0.3; cat $out
      echo x > \(home)/own; insula grant \(Self.app) \(home)/own --read-only > /dev/null; wait
      cat $out; insula run \(Self.app) --args await > $out & running 1
      until grep -q '1 grants' $out || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      mv \(home)/own \(home)/moved; wait; cat $out; rm $out
      """
    let result = try fixture.shell(script)
    let (own, moved) = ("read \(home)/own\n1 grants\n", "read \(home)/moved\n1 grants\n")
    #expect(result.output == "0 grants\n0 grants\n\(own)\(own)\(moved)", "\(result)")
  }

  /// The keeper has the sockets: whoever waits goes on waiting, and whoever calls is answered.
  @Test(arguments: [false, true])
  func socketsOutliveTheProcessThatServes(rootless: Bool) throws {
    let fixture = try Self.fixture(rootless: rootless)
    let home = "\(fixture.mounted.point)/Users/\(fixture.user.name)/Documents"
    let out = try fixture.mounted.temporary.makeDirectory("out", mode: 0o777) + "/out"
    let begin = try fixture.shell(
      """
      setsid "$INSULA" run --store "$POINT" \(Self.app) --args await > \(out) 2>&1 < /dev/null &
      until grep -q '0 grants' \(out) || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      setsid "$INSULA" run --store "$POINT" \(Self.app) -- sh -c '
      until [ -e Documents/go ] || [ $((w+=1)) -gt 2400 ]; do sleep 0.05; done
      exec \(fixture.mounted.point)/Applications/Caller.app/Contents/MacOS/Caller path home' \
        > \(out)2 2>&1 < /dev/null & running 2
      """)
    try #require(begin.status == 0, "\(begin)")
    let worker = try #require(try fixture.mounted.daemon())
    kill(worker, SIGKILL)
    #expect(try eventually { try fixture.mounted.daemon().map { $0 != worker } ?? false })
    let data = "\(fixture.mounted.point)/Users/\(fixture.user.name)/Library/Containers/\(Self.app)/Data"
    let rest = try fixture.shell(
      """
      echo x > \(home)/own; insula grant \(Self.app) \(home)/own > /dev/null; touch \(data)/Documents/go
      """)
    #expect(rest.status == 0, "\(rest)")
    #expect(eventually { (FD.text(of: out, limit: 4096) ?? "").hasSuffix("own\n1 grants\n") })
    #expect(eventually { FD.text(of: out + "2", limit: 4096) == data + "\n" })
    _ = try fixture.shell("insula kill \(Self.app)")
  }

  @Test func libraryAddsPhotos() throws {
    let fixture = try Self.fixture()
    let result = try fixture.shell(
      """
      tmp="$(insula path \(Self.app) tmp)"
      cd "$tmp"
      printf 'GIF89a and the rest' > 'a "quoted".gif'; ln -s a*.gif link.gif; echo no > b.gif
      "$INSULA" consent allow \(Self.app) photos-add --store "$POINT"
      insula run \(Self.app) --cwd tmp --args add-photo 'a "quoted".gif'
      insula run \(Self.app) --args add-photo tmp/link.gif
      for bad in tmp/b.gif tmp/none.gif /usr/bin/env; do insula run \(Self.app) --args add-photo $bad; done
      cd /; cat "$POINT/Users/\(fixture.user.name)/Pictures/Photos Library.photoslibrary/originals"/*/*.gif
      """)
    let lines = result.output.split(separator: "\n")
    #expect(lines.count == 7 && lines[1] == "added" && lines[2] == "added", "\(result)")
    for (line, code) in zip(lines.dropFirst(3), [22, 2, 22]) {
      #expect(line.hasPrefix("failed \(code) "), "\(line)")
    }
    #expect(lines.last == "GIF89a and the restGIF89a and the rest", "\(result)")
  }

  @Test func libraryTellsItems() throws {
    let fixture = try Self.fixture()
    let result = try fixture.shell(
      """
      book="$POINT/Users/\(fixture.user.name)/Library/Application Support/AddressBook"; mkdir -p "$book"
      for i in $(seq 1200); do printf 'BEGIN:VCARD\\nFN:Person %s\\nEND:VCARD\\n' $i; done > "$book/a.vcf"
      "$INSULA" consent allow \(Self.app) contacts --store "$POINT"
      insula run \(Self.app) --args items contacts | grep -o '"name":"Person [0-9]*"' | sort -u | wc -l
      insula run \(Self.app) --args items photos; insula run \(Self.app) --args items songs
      """)
    let lines = result.output.split(separator: "\n")
    #expect(lines.dropFirst().first == "1200", "\(result)")
    #expect(lines.count == 4 && lines.suffix(2).allSatisfy { $0.hasPrefix("failed ") }, "\(result)")
  }

  /// One app with as many connections as it may have, all of them hanging, and its neighbours.
  @Test func hangingCallsOfManyViewsDisturbNobody() throws {
    let fixture = try Self.fixture()
    let count = getenv("INSULA_VIEWS").flatMap { Int(String(cString: $0)) } ?? 80
    let before = try latency(fixture)
    let out = try fixture.mounted.temporary.makeDirectory("out", mode: 0o777) + "/out"
    let begin = try fixture.shell(
      """
      for i in $(seq \(count)); do
        setsid "$INSULA" run --store "$POINT" \(Self.app) --args await > \(out).$i 2>&1 < /dev/null &
      done
      for round in $(seq 1200); do
        [ $(cat \(out).* | grep -c '0 grants') = \(count) ] && exit 0; sleep 0.1
      done; cat \(out).*; exit 1
      """)
    try #require(begin.status == 0, "\(begin)")
    let after = try latency(fixture)
    print("a call of an app: \(before) us; beside \(count) views with calls that hang: \(after) us")
    #expect(after < before * 4 + 2000)
    let control = try fixture.shell(
      "for i in 1 2 3; do timeout 10 \"$INSULA\" status \"$POINT\" > /dev/null || exit 1; done")
    #expect(control.status == 0, "\(control)")
    #expect(try fixture.shell("insula kill \(Self.app); running 0").status == 0)
  }

  private func latency(_ fixture: RunFixture) throws -> Double {
    let result = try ask(fixture, "time 500")
    return try #require(result.output.split(separator: " ").first.flatMap { Double($0) }, "\(result)")
  }

  @Test(arguments: [false, true])
  func connectionsHaveABudget(rootless: Bool) throws {
    let fixture = try Self.fixture(rootless: rootless)
    let script = """
      import socket, json
      def connect():
          s = socket.socket(socket.AF_UNIX); s.settimeout(10); s.connect("/run/insula/app.sock"); return s
      def ask(s, line):
          s.sendall(line); return json.loads(s.makefile().readline())
      many = [connect() for _ in range(16)]
      print(all(ask(s, b'{"verb":"self"}\\n')["ok"] for s in many))
      extra = connect(); print(json.loads(extra.makefile().readline())["failure"])
      long = many.pop()
      try:
          for _ in range(64): long.sendall(b"x" * 4096)
          print(long.recv(1))
      except OSError: print(b"")
      print(ask(many[0], b'{"verb":"self"}\\n')["ok"])
      """
    let result = try fixture.inside("/usr/bin/python3 - <<'END'\n\(script)\nEND")
    #expect(result.output == "True\ncrowded\nb''\nTrue\n", "\(result)")
    // They go with the view.
    #expect(try fixture.shell("running 0").status == 0)
    #expect(try ask(fixture, "path home").status == 0)
  }

  /// The program itself, which is in a bundle here with all that it needs.
  @Test func commandsWorkInsideAnApp() throws {
    let fixture = try RunFixture()
    try fixture.install("Tool", options: ["--from", Program.insula])
    let home = "\(fixture.mounted.point)/Users/\(fixture.user.name)"
    let data = "\(home)/Library/Containers/org.example.tool/Data"
    func tool(_ words: String) throws -> ProgramResult {
      try fixture.shell("insula run org.example.tool --args \(words)")
    }
    #expect(try tool("path org.example.tool documents").output == data + "/Documents\n")
    #expect(try tool("path Tool caches").output == data + "/Library/Caches\n")
    #expect(try tool("path documents").output == home + "/Documents\n")
    #expect(try tool("info org.example.tool").output.hasPrefix("Tool (org.example.tool)\n"))
    #expect(try tool("grants").output == "There are no grants.\n")
    _ = try fixture.shell(
      "echo x > \(home)/Documents/own; insula grant org.example.tool \(home)/Documents/own")
    #expect(try tool("grants").output.contains("\(home)/Documents/own"))
    let other = try tool("info org.example.notes")
    #expect(other.ending == .notPermitted && other.errors.contains("only about itself"), "\(other)")
    for words in [
      "apps", "run org.example.notes", "status", "install x.app", "grant Tool x", "log", "mount", "ps",
    ] {
      let refused = try tool(words)
      #expect(refused.status == 7 && refused.errors.contains("can't be used inside an app"), "\(refused)")
    }
    #expect(try tool("grants --store /x").status == 7)
    #expect(try tool("version").status == 0 && tool("help run").status == 0)
    #expect(try tool("ls \(data)").status == 0)
    #expect(try fixture.shell("insula grants --wait").status == 2)
  }
}
