// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What the log says of how apps have ended, and who can have it say that.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct AppEndingTests {
  private func endings(_ fixture: RunFixture) throws -> [[String: Any]] {
    let result = try fixture.shell("insula log --json", as: fixture.mounted.owner ?? RunFixture.root)
    try #require(result.status == 0, "\(result.errors)")
    return result.output.split(separator: "\n").compactMap {
      try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
    }.filter { $0["event"] as? String == "ended" }
  }

  /// The last one, when there are so many.
  private func ending(_ fixture: RunFixture, _ count: Int) throws -> [String: Any] {
    var found: [[String: Any]] = []
    _ = try eventually {
      found = try endings(fixture)
      return found.count >= count
    }
    try #require(found.count == count, "\(found)")
    return found[count - 1]
  }

  private func expect(
    _ entry: [String: Any], _ ending: String, status: Int? = nil, signal: String? = nil, by: Int? = nil,
    _ words: String
  ) {
    #expect(entry["ending"] as? String == ending, "\(entry)")
    #expect(entry["status"] as? Int == status, "\(entry)")
    #expect(entry["signal"] as? String == signal, "\(entry)")
    #expect(entry["by"] as? Int == by, "\(entry)")
    #expect((entry["detail"] as? String)?.hasSuffix(words) == true, "\(entry)")
  }

  @Test(arguments: [false, true]) func logSaysHow(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    #expect(try fixture.inside("exit 0").status == 0)
    expect(try ending(fixture, 1), "exited", status: 0, "s, exit status 0")
    #expect(try fixture.inside("exit 42").status == 42)
    expect(try ending(fixture, 2), "exited", status: 42, "s, exit status 42")
    #expect(try fixture.inside("kill -SEGV $$").status == 139)
    expect(try ending(fixture, 3), "signal", status: 139, signal: "SEGV", "s, signal SEGV")
    _ = try fixture.shell("run sleep 600 & running 1; insula kill $APP; wait")
    expect(
      try ending(fixture, 4), "killed", status: 143, signal: "TERM", "s, by 'insula kill', signal TERM")
    // The process that waits for it knows nothing of that.
    _ = try fixture.shell("run sleep 600 & running 1; insula kill $APP --signal KILL; wait")
    expect(try ending(fixture, 5), "killed", signal: "KILL", "s, by 'insula kill', signal KILL")
    // A signal that it survives is not how it ended.
    _ = try fixture.shell(
      """
      run sh -c 'trap "exit 7" USR1; echo ready; sleep 600 & wait' >"$DATA/Documents/out" & running 1
      until grep -q ready "$DATA/Documents/out" || [ $((w+=1)) -gt 2400 ]; do sleep 0.05; done
      insula kill $APP --signal USR1; wait
      """)
    expect(try ending(fixture, 6), "exited", status: 7, "s, exit status 7")
    _ = try fixture.shell(
      "\"$INSULA\" run --store \"$POINT\" $APP -- sleep 600 & a=$!; running 1; kill -KILL $a; wait")
    expect(try ending(fixture, 7), "unknown", "nobody knows how: 'insula run' was ended before it could tell")
    #expect(try fixture.shell("insula run $APP --cwd nowhere").status == 125)
    _ = try ending(fixture, 8)
    let text = try fixture.shell("insula log").output
    #expect(text.contains(" s, exit status 42)"), "\(text)")
  }

  @Test func logSaysByWhom() throws {
    let fixture = try RunFixture()
    _ = try fixture.shell("run sleep 600 > /dev/null 2>&1 < /dev/null & running 1")
    #expect(try fixture.shell("insula kill $APP", as: RunFixture.root).status == 0)
    expect(
      try ending(fixture, 1), "killed", status: 143, signal: "TERM", by: 0, "by 'insula kill', signal TERM")
    #expect(try fixture.shell("insula log").output.contains("[\(fixture.user.name), by root] ended"))
    _ = try fixture.shell("run sleep 600 > /dev/null 2>&1 < /dev/null & running 1")
    #expect(try fixture.mounted.run("unmount", fixture.mounted.point, "--lazy").status == 0)
    let log = try fixture.mounted.run("log", "--json", "--store", fixture.mounted.store)
    let last = log.output.split(separator: "\n").last { $0.contains("\"ended\"") } ?? ""
    #expect(last.contains(#""ending":"unmounted""#) && last.contains(#""by":0"#), "\(log)")
    #expect(last.contains("because the store was unmounted"), "\(last)")
  }

  /// Neither another user nor another process of the same one says how an app has ended, and nobody says it
  /// after the one that could.
  @Test func nobodyForgesTheEnd() throws {
    let fixture = try RunFixture()
    let other = try TemporaryAccount()
    _ = try fixture.shell("run sleep 600 > /dev/null 2>&1 < /dev/null & running 1")
    for account in [fixture.user, other.account, RunFixture.root] {
      let answer = try fixture.ask(#"{"verb":"ended","status":0}"#, as: account)
      #expect(answer.contains(#""ok":false"#) && answer.contains("is not the one that runs it"), "\(answer)")
    }
    // The app itself reaches no daemon.
    let socket = try fixture.mounted.socket()
    #expect(try fixture.inside("test -e '\(socket)'").status == 1)
    #expect(try fixture.shell("insula kill $APP").status == 0)
    #expect(try eventually { try endings(fixture).count == 2 })
    #expect(try endings(fixture).contains { $0["ending"] as? String == "killed" })
    #expect(try !endings(fixture).contains { $0["status"] as? Int == 0 })
  }

  /// A process that is no 'insula run' and has asked for a view speaks for that view alone, once.
  @Test(.enabled(if: KernelRelease.own >= KernelRelease(6, 5), "the kernel does not tell who asks"))
  func whoHasAskedForAViewSpeaksForThatOne() throws {
    let fixture = try RunFixture()
    _ = try fixture.shell("run sleep 600 > /dev/null 2>&1 < /dev/null & running 1")
    let script = """
      \(RunFixture.asking)
      print(ask({"verb": "run", "identifier": sys.argv[2]})[0])
      for status in (9, 0): print(ask({"verb": "ended", "status": status})[0])
      """
    let made = try fixture.mounted.temporary.write(script, to: "ask.py")
    #expect(chmod(made, 0o644) == 0)
    let result = try fixture.shell("python3 \(made) \(try fixture.mounted.socket()) $APP")
    #expect(result.status == 0 && !result.output.contains(#""ok":false"#), "\(result)")
    let entry = try ending(fixture, 1)
    #expect(entry["status"] as? Int == 9, "\(entry)")
    #expect(try fixture.shell("insula kill $APP").status == 0)
    expect(try ending(fixture, 2), "killed", status: 143, signal: "TERM", "signal TERM")
  }
}
