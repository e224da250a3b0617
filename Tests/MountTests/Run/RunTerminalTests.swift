// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// An app at a terminal: it has one of its own, and its person notices nothing of that.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct RunTerminalTests {
  private static let talk = Checkout.path("Tests/Fixtures/talk-at-a-terminal.py")

  /// What is typed at a shell, and what is to be seen after each; `$R` runs something as the app.
  private func talk(_ steps: [(typed: String, word: String)], as account: Account? = nil) throws {
    let fixture = try RunFixture()
    let words = steps.flatMap { [$0.typed, $0.word] }.map { "'" + $0.replacing("'", with: "'\\''") + "'" }
    let who = account == nil ? "" : "--user \(fixture.user.name)"
    let result = try fixture.shell(
      """
      export R="$INSULA run --store $POINT \(who) $APP --"
      exec timeout 200 /usr/bin/python3 \(Self.talk) \(words.joined(separator: " "))
      """, as: account)
    #expect(result.status == 0, "\(result.output)\(result.errors)")
  }

  /// How the terminal is set after a line.
  private static let settings = ("stty -a | grep -o ' [-]*icanon'", " icanon")

  @Test func sizeIsPassedOnAndSettingsComeBack() throws {
    try talk([
      ("$R sh -c 'stty size; trap \"stty size; exit 3\" WINCH; while :; do sleep 0.1; done'", "24 80"),
      ("SIZE", "31 97"), ("echo $?", "3\\s"), Self.settings,
    ])
  }

  @Test(arguments: [false, true]) func shellHasItsJobs(asRoot: Bool) throws {
    try talk(
      [
        ("$R bash --norc -i", ""), ("sleep 77 &", ""), ("jobs", "Running"), ("fg", "sleep"),
        ("^Z", "Stopped"), ("bg; jobs", "Running"), ("kill %1; exit", "> "), ("echo $((6*7))", "42"),
      ], as: asRoot ? RunFixture.root : nil)
  }

  @Test func stopsAndGoesOnAsAJob() throws {
    try talk([
      ("$R sh -c 'while :; do sleep 0.1; echo tick; done'", "tick"), ("^Z", "Stopped"), Self.settings,
      ("fg", "tick"), ("^C", "> "), ("echo $?", "130"),
    ])
  }

  /// It is stopped when it reads, as any job is, and gets the terminal by `fg`.
  @Test func readsInTheForegroundAlone() throws {
    try talk([
      ("$R sh -c 'echo begun; read line; echo got $line' &", "begun\\s"), ("sleep 1; jobs", "Stopped"),
      ("fg", ""), ("words", "got words"), ("echo $((6*7))", "42"),
    ])
  }

  @Test func neighboursInAPipelineHaveTheTerminal() throws {
    try talk([
      ("$R cat /etc/passwd | less", "root"), ("q", "> "),
      ("echo words | $R sh -c 'cat; read x </dev/tty; echo $x'", "words"),
      ("typed", "typed\\s+typed"), ("echo $((6*7))", "42"),
    ])
  }

  @Test func settingsComeBackWhenItIsEnded() throws {
    try talk([
      (
        "(sleep 2; kill -TERM $(pgrep -P $$ -x insula)) & "
          + "$R sh -c 'stty raw; echo raw; sleep 60'; echo ended $?",
        "ended 143"
      ),
      Self.settings,
    ])
  }

  @Test func editorIsStoppedAndGoesOn() throws {
    try talk([
      ("TERM=vt100 $R vim -u NONE Documents/x", "~"), ("ihello", ""), ("ESC", ""), (":w", "written"),
      ("^Z", "Stopped"), ("fg", "~"), (":q", "> "), ("$R cat Documents/x", "hello"),
    ])
  }

  /// Root's terminal is not a user's: the process that has it is root's.
  @Test func rootsTerminalIsNotTheUsers() throws {
    let fixture = try RunFixture()
    let result = try fixture.shell(
      """
      export R="$INSULA run --store $POINT --user \(fixture.user.name) $APP --"
      exec timeout 200 /usr/bin/python3 \(Self.talk) 'tty >&2; $R sleep 60 &' '/dev/pts/(?=[0-9])' 'sleep 1; \
      for p in $(pgrep -u \(fixture.user.uid)); do readlink /proc/$p/fd/*; \
      done | grep -c ^$(tty)$; kill %1' '\\s0\\s'
      """, as: RunFixture.root)
    #expect(result.status == 0, "\(result.output)\(result.errors)")
  }

  /// Nor is it for any other command that root gives for a user: who is in its session can type there.
  @Test func rootsTerminalIsNotTheUsersForAnyCommand() throws {
    let fixture = try RunFixture()
    let scan = try fixture.mounted.temporary.write(
      """
      import os, subprocess, sys
      mine, uid, seen, same = os.getsid(0), int(sys.argv[1]), 0, 0
      commands = [subprocess.Popen(
          ["sh", "-c", 'for i in 1 2 3 4 5 6 7 8; do "$@" >/dev/null; done', "sh", *sys.argv[2:]])]
      while commands[0].poll() is None:
          for name in os.listdir("/proc"):
              try:
                  if os.stat("/proc/" + name).st_uid != uid or not name.isdigit(): continue
                  files = [os.readlink(f"/proc/{name}/fd/{fd}") for fd in os.listdir(f"/proc/{name}/fd")]
                  same += os.getsid(int(name)) == mine or os.ttyname(0) in files
                  seen += 1
              except OSError: pass
      print("seen" if seen > 0 else "none", "same", same)
      """, to: "scan.py")
    let user = fixture.user
    let result = try fixture.shell(
      """
      defaults="$INSULA defaults domains --store $POINT --user \(user.name)"
      export R="/usr/bin/python3 \(scan) \(user.uid) $defaults"
      exec timeout 200 /usr/bin/python3 \(Self.talk) '$R' 'seen same 0'
      """, as: RunFixture.root)
    #expect(result.status == 0, "\(result.output)\(result.errors)")
  }
}
