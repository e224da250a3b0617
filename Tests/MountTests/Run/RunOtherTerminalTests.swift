// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// An app that is started with terminals of other sessions: it reads nothing of what people type there.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct RunOtherTerminalTests {
  private static let fixture = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent(
      "Fixtures/other-terminals.py"
    )
    .path

  /// Reads by everything that may lead to a terminal, and keeps in `$PLACE` what was there.
  private static let probe = """
    import os, select, sys, time
    found = []
    for way in (0, 1, 2, "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2", "/dev/tty", "/dev/console",
                "/dev/stdin", "/dev/stderr"):
        try:
            fd = way if isinstance(way, int) else os.open(way, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY)
            # Whoever is the writer of a pipe reads what they have written.
            if not os.isatty(fd) and way not in (0, "/proc/self/fd/0"): continue
            if select.select([fd], [], [], 0.3)[0]: found.append((way, os.read(fd, 100)))
        except OSError as error: pass
    kinds = "".join("T" if os.isatty(fd) else "-" for fd in (0, 1, 2))
    with open(sys.argv[1] + "/found", "w") as file: print(kinds, found, file=file)
    print("from-one"); sys.stdout.flush(); os.write(2, b"from-two\\n"); sys.exit(7)
    """

  /// Runs the probe outside or as an app, and gives what was found, and what is left and shown.
  private func attempt(
    _ fixture: RunFixture, _ streams: String, inside: Bool, as account: Account? = nil, more: String = ""
  ) throws -> (found: String, result: ProgramResult) {
    let place = inside ? "$DATA/Documents" : "$T"
    let run = inside ? "$INSULA run --store $POINT \(more) $APP --" : ""
    let result = try fixture.shell(
      """
      T=$(mktemp -d); trap 'rm -rf $T' EXIT; cat >$T/probe <<'END-OF-PROBE'
      \(Self.probe)
      END-OF-PROBE
      rm -f \(place)/found
      /usr/bin/python3 \(Self.fixture) \(streams) \(run) /usr/bin/python3 -c "$(cat $T/probe)" \(place)
      cat \(place)/found
      """, as: account)
    let lines = result.output.split(separator: "\n").map(String.init)
    return (lines.last ?? "", result)
  }

  /// Streams, what the app has instead, and at which terminals its words are shown.
  private static let table: [(streams: String, kinds: String, one: String, two: String)] = [
    // setsid in a shell; and su -c.
    ("AAA", "---", "A", "A"),
    // Each is another one.
    ("ABD", "---", "B", "D"), ("AFF", "---", "", ""), ("FAF", "---", "A", ""), ("FFA", "---", "", "A"),
    ("AFA", "---", "", "A"),
    // Beside a terminal of its session's own, which is relayed.
    ("ACC", "-TT", "C", "C"), ("FCA", "-T-", "C", "A"), ("CAB", "T--", "A", "B"), ("CCA", "TT-", "C", "A"),
  ]

  @Test(arguments: [false, true]) func nothingIsReadThere(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    #expect(try fixture.shell("run true").status == 0)
    for row in Self.table {
      let others = Set(row.streams).subtracting(["C", "F"])
      let outside = try attempt(fixture, row.streams, inside: false)
      #expect(outside.found.contains("typed-at-"), "\(row), outside: \(outside)")
      let (found, result) = try attempt(fixture, row.streams, inside: true)
      #expect(!found.contains("typed-at-"), "\(row) READ: \(found)")
      #expect(found.hasPrefix(row.kinds), "\(row): \(found)")
      #expect(result.output.hasPrefix("status 7\n"), "\(row): \(result)")
      for other in others {
        #expect(result.output.contains("left \(other) ['typed-at-\(other)']"), "\(row): \(result)")
      }
      for letter in Set(row.streams).subtracting(["F"]).map(String.init) {
        let shown = result.output.split(separator: "\n").first { $0.hasPrefix("shown \(letter) ") } ?? ""
        #expect(shown.contains("from-one") == (row.one == letter), "\(row): \(result)")
        #expect(shown.contains("from-two") == (row.two == letter), "\(row): \(result)")
      }
    }
  }

  /// Nor has the user whom root names: their processes can be taken over by others of theirs.
  @Test func rootsTerminalIsNotTheUsers() throws {
    let fixture = try RunFixture()
    let more = "--user \(fixture.user.name)"
    for streams in ["AAA", "ABD", "CCA"] {
      let (found, result) = try attempt(fixture, streams, inside: true, as: RunFixture.root, more: more)
      #expect(!found.contains("typed-at-") && found.contains("["), "\(streams) READ: \(found)")
      #expect(
        result.output.contains("left A ['typed-at-A']") && result.output.hasPrefix("status 7\n"), "\(result)")
    }
    // While it runs, none of the user's processes has a descriptor of it.
    let scan = try fixture.mounted.temporary.write(
      """
      import os, subprocess, sys, time
      uid, terminals, seen = int(sys.argv[1]), {os.ttyname(fd) for fd in (0, 1, 2)}, 0
      command = subprocess.Popen(sys.argv[2:])
      found = []
      while command.poll() is None:
          for name in os.listdir("/proc"):
              try:
                  if not name.isdigit() or os.stat("/proc/" + name).st_uid != uid: continue
                  for fd in os.listdir(f"/proc/{name}/fd"):
                      seen += 1
                      if os.readlink(f"/proc/{name}/fd/{fd}") in terminals: found.append(name)
              except OSError: pass
      print("seen" if seen else "none", "found", len(found))
      """, to: "scan.py")
    let result = try fixture.shell(
      """
      /usr/bin/python3 \(Self.fixture) ABD /usr/bin/python3 \(scan) \(fixture.user.uid) \
        $INSULA run --store $POINT \(more) $APP -- sleep 1
      """, as: RunFixture.root)
    #expect(result.output.contains("'seen', 'found', '0'"), "\(result)")
  }

  /// By su, in whose session there is no terminal; and the same with a terminal of its own.
  @Test func suStartsWithoutATerminal() throws {
    let fixture = try RunFixture()
    let run = "$INSULA run --store $POINT $APP -- sh -c \"cat; tty; echo over\""
    let result = try fixture.shell(
      """
      T=$(mktemp -d); chmod 755 $T; trap 'rm -rf $T' EXIT
      echo "INSULA=$INSULA POINT=$POINT APP=$APP HOME=/nonexistent" >$T/line
      echo '\(run)' >>$T/line
      /usr/bin/python3 \(Self.fixture) AAA su -s /bin/sh \(fixture.user.name) -c "sh $T/line"
      """, as: RunFixture.root)
    #expect(
      result.output.contains("left A ['typed-at-A']") && result.output.hasPrefix("status 0\n"), "\(result)")
    #expect(result.output.contains("'not', 'a', 'tty', 'over'"), "\(result)")
    #expect(result.output.contains("'terminal', 'of', 'another', 'session,'"), "\(result)")
    let own = try fixture.shell(
      "script -qec 'sh -c \"$INSULA run --store $POINT $APP -- tty\"' /dev/null </dev/null")
    #expect(own.output.contains("/dev/") && !own.output.contains("not a tty"), "\(own)")
  }

  /// What is sent to `insula run` reaches the app although another process copies what it writes.
  @Test func signalsAreStillPassedOn() throws {
    let fixture = try RunFixture()
    let result = try fixture.shell(
      """
      run true; cat >$DATA/Documents/wait <<'END'
      trap 'echo caught; exit 9' TERM; touch Documents/ready; while :; do sleep 0.02; done
      END
      T=$(mktemp -d); trap 'rm -rf $T' EXIT; cat >$T/send <<'END'
      "$INSULA" run --store "$POINT" "$APP" -- sh Documents/wait & pid=$!
      for i in $(seq 1500); do [ -e $DATA/Documents/ready ] && break; sleep 0.02; done
      kill -TERM $pid; wait $pid; echo ended $?
      END
      /usr/bin/python3 \(Self.fixture) FAA sh $T/send
      """)
    #expect(result.output.contains("'caught', 'ended', '9'"), "\(result)")
  }
}
