// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import TestSupport
internal import Testing

/// Programs of the machine as apps, at work in their views; `make programs` has twelve of them.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct RunProgramTests {
  private func isMissing(_ program: String) -> Bool {
    guard access("/usr/bin/\(program)", X_OK) != 0 else { return false }
    print("SKIPPED: \(program) is not installed, so it was not tried as an app")
    return true
  }

  @Test func bashWorksInItsView() throws {
    guard !isMissing("bash") else { return }
    let fixture = try RunFixture()
    try fixture.install("Bash", options: ["--from", "/usr/bin/bash"])
    let script =
      "for n in 1 2 3; do echo $((n * n)); done | tac > Documents/squares; cat <(wc -l) < Documents/squares"
    let result = try fixture.shell("insula run org.example.bash --args -c '\(script)'")
    #expect(result.status == 0, "\(result.output)\(result.errors)")
    let home =
      fixture.container.replacingOccurrences(of: RunFixture.identifier, with: "org.example.bash") + "/Data"
    #expect(try String(contentsOfFile: home + "/Documents/squares", encoding: .utf8) == "9\n4\n1\n")
    // What it writes, it does not run.
    let own = "printf \"#!/bin/sh\\\\necho ran\" > Documents/own; chmod +x Documents/own; Documents/own"
    let refused = try fixture.shell("insula run org.example.bash --args -c '\(own)'")
    #expect(refused.status == 126 && !refused.output.contains("ran"), "\(refused.output)\(refused.errors)")
  }

  @Test func sqliteWorksInItsView() throws {
    guard !isMissing("sqlite3") else { return }
    let fixture = try RunFixture()
    try fixture.install("Base", options: ["--from", "/usr/bin/sqlite3"])
    let result = try fixture.shell(
      """
      insula run org.example.base --args Documents/base.db <<'END'
      pragma journal_mode = wal; create table t (n); insert into t values (1), (2), (39);
      pragma integrity_check; select sum(n) from t;
      END
      insula run org.example.base --args /nonexistent/base.db 'create table t (n)'
      """)
    #expect(result.output.split(separator: "\n") == ["wal", "ok", "42"], "\(result.output)\(result.errors)")
    #expect(result.ending == .failed)
  }

  /// A directory with libraries of its own, and an archive of it.
  @Test func aDirectoryWithItsLibrariesWorksInItsView() throws {
    guard !isMissing("cc") else { return }
    let fixture = try RunFixture()
    let place = try fixture.mounted.temporary.makeDirectory("store/answer")
    let built = try Program.run(
      [
        "sh", "-ec",
        """
        mkdir lib elsewhere
        echo 'int answer(void) { return 42; }' | \\
          cc -x c -shared -fPIC -Wl,-soname,libanswer.so -o lib/libanswer.so -
        echo 'int more(void) { return 1; }' | \\
          cc -x c -shared -fPIC -Wl,-soname,libmore.so -o elsewhere/libmore.so -
        mv elsewhere ../elsewhere
        echo 'int answer(void); int more(void); int main(void) { return answer() + more(); }' > main.c
        cc -o run main.c lib/libanswer.so ../elsewhere/libmore.so \\
          -Wl,-rpath,'$ORIGIN/lib':"$(realpath ../elsewhere)"
        """,
      ], in: place)
    try #require(built.status == 0, "\(built.errors)")
    try fixture.install("Answer", options: ["--from", place])
    let result = try fixture.shell("insula run org.example.answer")
    #expect(result.status == 43, "\(result.errors)")
  }
}
