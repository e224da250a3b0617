// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

// What an app may try that wants to be told more than its user has allowed:
//
// - it has asked nobody, was denied, or is restricted: `consentIsRequired`
// - it has no words for a person: `UsageKeyTests`
// - it asks for two things at once, or ends in the middle: `appsMayAskForManyThings`
// - it wants another kind, another home, or the files themselves: `onlyWhatWasAskedForIsTold`
// - it is told after its user has taken consent back: `revocationCountsWhileItIsRead`
// - another process of its user's says that it reads for the app: `strangersDoNotRead`
// - the process that serves ends in between: `readingOutlivesTheProcessThatServes`
// - the process that has started it hangs: `startersThatHangAreNotWaitedFor`
//
// What may be in a library is in ItemReaderTests and ItemParserTests.

/// Apps are told what is private, without the files that it is in.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct PrivateItemsTests {
  /// `items KIND...` asks as an app, and prints what is told of each, or the error's number.
  private static let client = """
    import json, os, socket, sys
    def asker():
        s = socket.socket(socket.AF_UNIX)
        s.connect(os.environ["INSULA_SOCKET"])
        lines = s.makefile()
        def ask(**fields):
            s.sendall((json.dumps(fields) + "\\n").encode())
            return json.loads(lines.readline())
        return ask
    def items(kind, ask=None, limit=100):
        ask, found, after = ask or asker(), [], None
        while True:
            fields = {"verb": "items", "kind": kind, "limit": limit}
            if after: fields["after"] = after
            reply = ask(**fields)
            if not reply["ok"]: return reply
            found += reply["items"]
            after = reply.get("next")
            if not after: return found
    def told(kind, **more):
        found = items(kind, **more)
        if isinstance(found, dict): return "errno %d" % found["errno"]
        return sorted(i.get("title") or i.get("name") for i in found)
    """

  private func fixture(rootless: Bool = false, songs: Int = 3) throws -> ConsentFixture {
    let fixture = try ConsentFixture(rootless: rootless)
    let temporary = fixture.fixture.mounted.temporary
    let client = try temporary.write(Self.client, to: "client.py")
    let script = """
      import os, sys
      home = sys.argv[1]
      def frame(name, text):
          text = b"\\x03" + text.encode()
          return name + len(text).to_bytes(4, "big") + b"\\0\\0" + text
      def song(title):
          frames = frame(b"TIT2", title) + frame(b"TPE1", "Somebody")
          size = bytes(len(frames) >> shift & 127 for shift in (21, 14, 7, 0))
          return b"ID3\\x03\\0\\0" + size + frames + (b"\\xff\\xfb\\x90\\0" + b"\\0" * 413) * 40
      for number in range(int(sys.argv[2])):
          open(f"{home}/Music/Music/{number}.mp3", "wb").write(song(f"Song {number}"))
      open(f"{home}/Music/Other/other.mp3", "wb").write(song("Other"))
      os.mkfifo(f"{home}/Music/Music/pipe.mp3")
      book = f"{home}/Library/Application Support/AddressBook"
      for folder in (book, f"{home}/Library/Calendars", f"{home}/Library/Reminders"):
          os.makedirs(folder, exist_ok=True)
      open(f"{book}/a.vcf", "w").write("BEGIN:VCARD\\nFN:Jane\\nEMAIL:j@example.com\\nEND:VCARD\\n")
      open(f"{home}/Library/Calendars/Work.ics", "w").write(
          "BEGIN:VCALENDAR\\nBEGIN:VEVENT\\nSUMMARY:Meeting\\nDTSTART:20240131T101500Z\\nEND:VEVENT\\n"
          "BEGIN:VTODO\\nSUMMARY:No reminder\\nEND:VTODO\\nEND:VCALENDAR\\n")
      open(f"{home}/Library/Reminders/List.ics", "w").write(
          "BEGIN:VCALENDAR\\nBEGIN:VTODO\\nSUMMARY:Milk\\nEND:VTODO\\nEND:VCALENDAR\\n")
      """
    let made = try fixture.shell(
      """
      python3 - '\(fixture.home)' \(songs) <<'END'
      \(script)
      END
      cp '\(client)' "$(insula path \(ConsentFixture.player) documents)/client.py"
      """)
    try #require(made.status == 0, "\(made)")
    return fixture
  }

  /// What an app says that runs this in Python.
  private func python(_ code: String, app: String = ConsentFixture.player) -> String {
    """
    insula run --env HOME_OF_USER="$POINT/Users/$(id -un 2> /dev/null)" \(app) -- python3 -B -c '
    import sys; sys.path.insert(0, "Documents")
    from client import *
    \(code)'
    """
  }

  @Test(arguments: [false, true])
  func titlesAreToldAndFilesAreNot(rootless: Bool) throws {
    let fixture = try fixture(rootless: rootless)
    let result = try fixture.shell(
      """
      decide allow media-library; decide allow contacts; decide allow calendars; decide allow reminders
      """ + "\n"
        + python("for kind in (\"songs\", \"contacts\", \"events\", \"reminders\"): print(told(kind))"))
    #expect(
      result.output.hasSuffix(
        """
        authorized
        ['Song 0', 'Song 1', 'Song 2']
        ['Jane']
        ['Meeting']
        ['Milk']

        """), "\(result)")
  }

  /// The program may be anywhere: below /tmp, where the sandbox covers it, or in the tree itself.
  @Test(arguments: [false, true], ["$PLACE/a clone", "$POINT/Users/$(id -un)/Documents/clone"])
  func theProgramMayBeAnywhere(rootless: Bool, place: String) throws {
    let fixture = try fixture(rootless: rootless)
    let below = try fixture.fixture.mounted.temporary.makeDirectory("place", mode: 0o777)
    let result = try fixture.shell(
      """
      PLACE='\(below)'; D="\(place)"; mkdir "$D" && cp "$INSULA" "$D/insula" && INSULA="$D/insula"
      decide allow media-library; decide allow contacts
      """ + "\n" + python("for kind in (\"songs\", \"contacts\"): print(told(kind))"))
    #expect(
      result.output == "authorized\nauthorized\n['Song 0', 'Song 1', 'Song 2']\n['Jane']\n", "\(result)")
  }

  /// A person is asked, once for all that is asked for; and nothing is told before, and no file ever given.
  @Test(arguments: [false, true])
  func consentIsRequired(rootless: Bool) throws {
    let fixture = try fixture(rootless: rootless)
    let nobody = try fixture.shell(python("print(told(\"songs\"))"))
    #expect(nobody.output == "errno 1\n", "\(nobody)")
    #expect(try fixture.state(of: "media-library") == "not-determined")
    let asked = try fixture.shell(
      "agent allow deny\n" + python("print(told(\"songs\")); print(told(\"contacts\"), told(\"contacts\"))")
        + "\nwait $agentpid; grep -c number $agent")
    #expect(asked.output == "['Song 0', 'Song 1', 'Song 2']\nerrno 1 errno 1\n2\n", "\(asked)")
    #expect(try fixture.state(of: "contacts") == "denied")
  }

  @Test func onlyWhatWasAskedForIsTold() throws {
    let fixture = try fixture()
    let result = try fixture.shell(
      "decide allow calendars\n"
        + python(
          """
          ask = asker()
          for fields in ({"kind": "photos"}, {"kind": "songs"}, {"kind": "events", "after": "1.0.0"},
                         {"kind": "events", "limit": 0}, {"kind": "events", "limit": 10**6},
                         {"kind": "events", "after": "x" * 1000}, {}):
              print(ask(verb="items", **fields).get("errno"))
          for verb in ("next-reading", "next-task"): print(ask(verb=verb)["errno"])
          print(told("events", ask=ask), told("reminders", ask=ask))
          print(set(items("events")[0]))
          """))
    let lines = result.output.split(separator: "\n").map(String.init)
    #expect(
      lines.dropFirst().dropLast(2)
        == ["None", "1", "116", "22", "22", "22", "22", "1", "1"], "\(result)")
    #expect(lines.dropLast().last == "['Meeting'] errno 1", "\(result)")
    #expect(lines.last?.contains("path") == false && lines.last?.contains("file") == false)
  }

  @Test(arguments: [false, true])
  func appsMayAskForManyThings(rootless: Bool) throws {
    let fixture = try fixture(rootless: rootless, songs: 40)
    let result = try fixture.shell(
      "decide allow media-library; decide allow contacts\n"
        + python(
          """
          import threading
          # One that does not wait for what it has asked for.
          for _ in range(5):
              s = socket.socket(socket.AF_UNIX); s.connect(os.environ["INSULA_SOCKET"])
              s.sendall(b"{\\"verb\\": \\"items\\", \\"kind\\": \\"songs\\"}\\n"); s.close()
          out = []
          def one(kind): out.append((kind, len(items(kind, limit=7))))
          threads = [threading.Thread(target=one, args=(k,)) for k in ["songs", "contacts"] * 4]
          for t in threads: t.start()
          for t in threads: t.join()
          print(sorted(set(out)), len(out))
          """))
    #expect(result.output.hasSuffix("[('contacts', 1), ('songs', 40)] 8\n"), "\(result)")
  }

  /// What is taken back is taken back, also from somebody who has asked before.
  @Test func revocationCountsWhileItIsRead() throws {
    let fixture = try fixture(songs: 2000)
    let result = try fixture.shell(
      """
      decide allow media-library
      out=$(mktemp)
      { \(python(
        """
        ask = asker()
        print(len(ask(verb="items", kind="songs", limit=1)["items"]), flush=True)
        print(ask(verb="items", kind="songs", limit=1000).get("errno", "told"))
        print(told("songs"))
        """)); } > $out 2>&1 &
      until grep -q 1 $out || [ $((w+=1)) -gt 6000 ]; do sleep 0.01; done
      decide deny media-library
      wait $!; cat $out
      """)
    let lines = result.output.split(separator: "\n").map(String.init)
    #expect(lines.prefix(3) == ["authorized", "denied", "1"] && lines.last == "errno 1", "\(result)")
    #expect(lines.dropLast().last == "1", "\(result)")
  }

  /// Neither another user's process, nor another one of the same user's, reads for an app.
  @Test func strangersDoNotRead() throws {
    let fixture = try fixture()
    let line = #"{"verb":"next-reading"}"#
    #expect(try fixture.fixture.ask(line).contains("started no app"))
    #expect(try fixture.fixture.ask(line, as: RunFixture.root).contains("started no app"))
    let answer = #"{"verb":"answer-task","number":1,"answer":{"items":{"_0":{"items":[]}}}}"#
    #expect(try fixture.fixture.ask(answer).contains("only an agent"))
    // An agent is no reader: it is asked about nothing but consent.
    let result = try fixture.shell(
      "decide allow contacts; agent hang\n" + python("print(told(\"contacts\"))")
        + "\nkill $agentpid; grep -c number $agent")
    #expect(result.output == "authorized\n['Jane']\n0\n", "\(result)")
  }

  /// Somebody starts views, reads for them, has each ask for a panel that nobody answers, and lets them go.
  @Test func whoReadsEndsWithTheView() throws {
    let fixture = try fixture()
    let mounted = fixture.fixture.mounted
    let before = try mounted.descriptors()
    let script = """
      import array, json, os, socket, sys
      def connection():
          s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(sys.argv[1])
          return s
      kept = []
      for verb in ('"next-reading"', '"next-task","started":true') * 6:
          a = connection()
          a.sendall(json.dumps({"verb": "run", "identifier": sys.argv[2]}).encode() + b"\\n")
          fds, data = array.array("i"), b""
          while b"\\n" not in data:
              part, more, _, _ = a.recvmsg(65536, socket.CMSG_SPACE(16))
              assert part, data
              for _, _, numbers in more: fds.frombytes(numbers)
              data += part
          assert json.loads(data)["ok"], data
          b = connection()
          b.sendall(b'{"verb":' + verb.encode() + b'}\\n')
          c = connection()
          c.sendall(b'{"verb":"status"}\\n')
          assert c.makefile().readline()  # of one user, whoever has asked first is answered first
          for fd in fds: os.close(fd)
          kept.append(b)
      for b in kept:
          answer = b.makefile().read()
          assert "has ended" in answer, answer
      print(len(kept), flush=True)
      sys.stdin.read()
      """
    let path = try mounted.temporary.write(script, to: "readers.py")
    let result = try fixture.shell(
      "python3 '\(path)' '\(mounted.socket())' \(ConsentFixture.player) < /dev/null")
    #expect(result.output == "12\n", "\(result)")
    #expect(try eventually { try mounted.descriptors() <= before + 4 })
  }

  @Test(arguments: [false, true])
  func readingOutlivesTheProcessThatServes(rootless: Bool) throws {
    let fixture = try fixture(rootless: rootless)
    let out = try fixture.fixture.mounted.temporary.makeDirectory("out", mode: 0o777) + "/out"
    let code = """
      print(told("contacts"), flush=True)
      while not os.path.exists(os.environ["TMPDIR"] + "/go"): pass
      for _ in range(20):
          try: print(told("contacts")); break
          except Exception: pass
      """
    let begun = try fixture.shell(
      """
      decide allow contacts
      { \(python(code)); } > '\(out)' 2>&1 < /dev/null &
      until grep -q Jane '\(out)' || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      """)
    try #require(begun.status == 0, "\(begun)")
    try fixture.fixture.succeed("restart", fixture.fixture.mounted.store)
    let after = try fixture.shell(
      """
      touch "$(insula path \(ConsentFixture.player) tmp)/go"
      insula ps > /dev/null
      i=0; until [ $(grep -c Jane '\(out)') = 2 ] || [ $i = 500 ]; do sleep 0.02; i=$((i+1)); done
      cat '\(out)'
      """)
    #expect(after.output == "['Jane']\n['Jane']\n", "\(after)")
  }

  /// Who reads may be stopped, and the app is told that nobody does.
  @Test func startersThatHangAreNotWaitedFor() throws {
    let fixture = try fixture()
    let result = try fixture.shell(
      """
      decide allow contacts
      out=$(mktemp)
      { \(python(
        """
        import time
        print(os.getpid(), flush=True)
        while not os.path.exists(os.environ["TMPDIR"] + "/go"): time.sleep(0.02)
        begin = time.time()
        print(told("contacts"), time.time() - begin < 60)
        """)); } 2>&1 | cat > $out &
      until grep -q . $out || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      starter=$(insula ps --json | sed -n 's/.*"pid" : \\([0-9]*\\).*/\\1/p'); kill -STOP $starter
      touch "$(insula path \(ConsentFixture.player) tmp)/go"
      until [ $(wc -l < $out) = 2 ] || [ $((w+=1)) -gt 1200 ]; do sleep 0.1; done
      kill -CONT $starter; wait; cat $out
      """)
    #expect(result.output.hasSuffix("errno 5 True\n"), "\(result)")
  }
}
