// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Signals, the terminal, and the end of an app that runs.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct RunSignalTests {
  @Test(arguments: ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "ALRM"])
  func signalsArePassedOn(name: String) throws {
    let fixture = try RunFixture()
    let result = try fixture.shell(
      """
      # A shell has its children in the background ignore some, which then is kept.
      env --default-signal "$INSULA" run --store "$POINT" "$APP" -- \
        sh -c 'trap "echo caught; exit 9" \(name); \
      echo ready > Documents/ready; while :; do sleep 0.02; done' &
      pid=$!
      until [ -s $DATA/Documents/ready ] || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      kill -\(name) $pid; wait $pid; echo $?
      """)
    #expect(result.output == "caught\n9\n", "\(result.errors)")
    let killed = try fixture.shell(
      """
      env --default-signal "$INSULA" run --store "$POINT" "$APP" -- sleep 60 & pid=$!
      running 1; sleep 0.2; kill -\(name) $pid; wait $pid; echo $?
      """)
    #expect(Int(killed.output.dropLast()) ?? 0 > 128, "\(killed.output)\(killed.errors)")
  }

  @Test func whatTheCallerIgnoresStaysIgnored() throws {
    let fixture = try RunFixture()
    let result = try fixture.shell(
      "nohup \"$INSULA\" run --store $POINT $APP -- sh -c 'kill -HUP $$; echo here'")
    #expect(result.output == "here\n", "\(result.errors)")
  }

  @Test func whenTheCommandIsKilledTheAppIsToo() throws {
    let fixture = try RunFixture()
    let result = try fixture.shell(
      """
      "$INSULA" run --store "$POINT" "$APP" -- \
        sh -c 'while :; do date +%s%N > Documents/clock; sleep 0.02; done' & pid=$!
      until [ -s $DATA/Documents/clock ] || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      kill -KILL $pid; wait $pid; running 0
      first=$(cat $DATA/Documents/clock); sleep 0.3; \
      [ "$first" = "$(cat $DATA/Documents/clock)" ] && echo still
      insula ps
      """)
    #expect(result.output == "still\nNo apps are running.\n", "\(result.output)\(result.errors)")
  }

  /// The sandbox has not begun to end with us when the signal comes, or it just has.
  @Test(arguments: [("TERM", SIGTERM), ("HUP", SIGHUP), ("KILL", SIGKILL)])
  func nothingStaysOfWhatIsEndedWhileItBegins(name: String, number: Int32) throws {
    let fixture = try RunFixture()
    let result = try fixture.shell(
      """
      for thousandths in $(seq 10 60); do
        "$INSULA" run --store "$POINT" "$APP" -- sleep 600 & pid=$!
        sleep 0.0$thousandths; kill -\(name) $pid; wait $pid; echo $?
      done 2>/dev/null
      """)
    #expect(
      Set(result.output.split(separator: "\n")) == ["\(128 + number)"], "\(result.output)\(result.errors)")
    // What is killed needs a moment to go.
    var left: [String] = []
    _ = try eventually {
      left = try processes(of: fixture.user)
      return left.isEmpty
    }
    #expect(left.isEmpty)
  }

  /// Whatever comes while the sandbox is started is kept for the app: slowed down, that takes a second.
  @Test func nothingIsLostWhileItStarts() throws {
    let fixture = try RunFixture()
    let result = try fixture.shell(
      """
      for tenths in $(seq 1 12); do
        strace -D -o /dev/null -e trace=rt_sigaction -e inject=rt_sigaction:delay_enter=50000 \
          "$INSULA" run --store "$POINT" "$APP" -- sleep 20 & pid=$!
        sleep $((tenths / 10)).$((tenths % 10)); kill -TERM $pid; wait $pid; echo $?
      done 2>/dev/null
      """)
    #expect(Set(result.output.split(separator: "\n")) == ["143"], "\(result.output)\(result.errors)")
  }

  private func processes(of account: Account) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: "/proc").filter { Int($0) != nil }.compactMap {
      number in
      let status = FD.text(of: "/proc/\(number)/status", limit: 1 << 16) ?? ""
      return status.contains("\nUid:\t\(account.uid)\t") ? String(status.prefix { $0 != "\n" }) : nil
    }
  }

  private static let terminalProgram = Checkout.path("Tests/Fixtures/at-a-terminal.py")

  /// ^C and ^\ reach the app and nobody else; ^Z stops all of it, and it goes on in the foreground.
  @Test(arguments: ["interrupt", "quit", "stop", "hangup", "type"])
  func terminalIsTheApps(what: String) throws {
    let fixture = try RunFixture()
    let result = try fixture.shell(
      "exec /usr/bin/python3 \(Self.terminalProgram) \(what) \"$INSULA\" run --store $POINT $APP --")
    #expect(result.status == 0, "\(result.output)\(result.errors)")
  }

  @Test(arguments: [false, true])
  func runningAppsAreListedAndEnded(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let result = try fixture.shell(
      """
      insula ps
      "$INSULA" run --store "$POINT" "$APP" -- sleep 60 & first=$!
      "$INSULA" run --store "$POINT" "$APP" -- sh -c 'sleep 60 & sleep 60' & second=$!
      running 2; sleep 0.2; insula ps | awk '{print $1, $2, $3}' | sort; echo $first $second
      insula kill $APP; echo $?; insula ps; wait $first; echo $?; wait $second; echo $?
      insula kill $APP
      """)
    let lines = result.output.split(separator: "\n").map(String.init)
    try #require(lines.count == 9, "\(result.output)\(result.errors)")
    let pids = lines[4].split(separator: " ").map(String.init)
    #expect(lines[0] == "No apps are running." && lines[1] == "IDENTIFIER USER PID")
    #expect(Set(lines[2...3]) == Set(pids.map { "\(RunFixture.identifier) \(fixture.user.name) \($0)" }))
    #expect(Array(lines[5...]) == ["0", "No apps are running.", "143", "143"])
    #expect(result.status == 1 && result.errors.contains("is not running"))
  }

  @Test func whatDoesNotListenIsKilled() throws {
    let fixture = try RunFixture()
    let result = try fixture.shell(
      """
      "$INSULA" run --store "$POINT" "$APP" -- sh -c 'trap "" TERM; \
      echo > Documents/ready; while :; do sleep 60; done' & pid=$!
      until [ -s $DATA/Documents/ready ] || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      insula kill $APP; echo $?; wait $pid; echo $?
      "$INSULA" run --store "$POINT" "$APP" -- sleep 60 & pid=$!; running 1; sleep 0.2
      insula kill $APP -s sigkill; wait $pid; echo $?; insula kill $APP --signal STOP
      """)
    #expect(result.output == "0\n137\n137\n", "\(result.output)\(result.errors)")
    #expect(result.status == 2)
  }

  /// The number of a mount that is gone is another filesystem's by then, which the daemon must not take away.
  @Test func daemonThatAnAppKeepsFromEndingHasNoMount() throws {
    let fixture = try RunFixture()
    let mounted = fixture.mounted
    let (worker, socket) = (try #require(try mounted.daemon()), try mounted.socket())
    let result = try fixture.shell(
      """
      "$INSULA" run --store "$POINT" "$APP" -- sh -c 'trap "" TERM; \
      echo > Documents/ready; while :; do sleep 60; done' >/dev/null 2>&1 &
      until [ -s $DATA/Documents/ready ] || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      """)
    #expect(result.status == 0, "\(result)")
    let script = """
      import json, os, socket, subprocess, sys, time
      point, place, worker = sys.argv[1], sys.argv[2], int(sys.argv[3])
      def device():
          s = socket.socket(socket.AF_UNIX); s.connect(place); s.sendall(b'{"verb":"status"}\\n')
          return json.loads(s.makefile().readline())["status"]["mountDevice"]
      before = device()
      subprocess.run(["umount", point], check=True)
      end = time.monotonic() + 20
      while device() == before and time.monotonic() < end: time.sleep(0.01)
      print(device(), os.path.exists(f"/proc/{worker}"))
      """
    let told = try Program.run(["/usr/bin/python3", "-c", script, mounted.point, socket, "\(worker)"])
    #expect(told.output == "4294967295:4294967295 True\n", "\(told)")
  }

  @Test func nobodyElseSeesOrEndsIt() throws {
    let fixture = try RunFixture()
    let other = try TemporaryAccount()
    let begun = try fixture.shell(
      "\"$INSULA\" run --store \"$POINT\" \"$APP\" -- sleep 60 > /dev/null 2>&1 & "
        + "running 1; insula ps | wc -l"
    )
    #expect(begun.output == "2\n")
    let seen = try fixture.shell("insula ps; insula kill $APP", as: other.account)
    #expect(seen.output == "No apps are running.\n" && seen.errors.contains("is not running"))
    #expect(try fixture.shell("insula ps | wc -l; insula kill $APP", as: RunFixture.root).output == "2\n")
    #expect(try fixture.shell("insula ps").output == "No apps are running.\n")
  }
}
