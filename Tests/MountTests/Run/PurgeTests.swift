// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

// What a hostile user or app may try with what is thrown away:
//
// - have others' files removed, or directories that are none of the two: `PurgingTests`
// - have a running app's files removed: `appThatRunsKeepsEverything`, `startsAreRacedAgainstPurges`
// - purge what others have: `othersAreNotPurged`
// - have a purge never end, so that others' never begin: `whoIsInsideFillsNothingForEver`
// - ask for what no disk has: `absurdGoalsAreRefused`
// - prepare what is hard to remove: `PurgingTests`
// - keep the space by a protective flag, or by starting the app again and again: that is theirs to do

/// `insula purge` on a mounted store.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct PurgeTests {
  private static let fill = """
    mkdir -p $HOME/Library/Caches/a/b $HOME/tmp/c
    head -c 100000 /dev/zero >$HOME/Library/Caches/a/b/cache
    head -c 100000 /dev/zero >$HOME/tmp/c/temporary
    echo kept >$HOME/Documents/kept; echo kept >"$HOME/Library/Application Support/kept"
    """
  private static let list = "cd $DATA; find . -type f -not -name starts.txt -not -name CACHEDIR.TAG | sort"

  @Test(arguments: [false, true])
  func onlyWhatCanBeMadeAgainGoes(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    try #require(try fixture.inside(Self.fill).status == 0)
    let before = try fixture.shell("cd $DATA; stat -c '%A %u %g' tmp Library/Caches")
    let dry = try fixture.shell("insula purge -n")
    #expect(dry.status == 0 && dry.output.contains("This would free"), "\(dry.errors)")
    #expect(try fixture.shell(Self.list).output.contains("./Library/Caches/a/b/cache"))
    // What somebody has open, they keep.
    let ran = try fixture.shell(
      "exec 3<$DATA/Library/Caches/a/b/cache; insula purge --json && wc -c <&3; insula log --json")
    #expect(ran.status == 0 && ran.output.contains("\n100000\n"), "\(ran.output)\(ran.errors)")
    #expect(ran.output.contains(#""event":"purged""#), "\(ran.output)")
    #expect(
      try fixture.shell(Self.list).output == "./Documents/kept\n./Library/Application Support/kept\n")
    let after = try fixture.shell("cd $DATA; stat -c '%A %u %g' tmp Library/Caches")
    #expect(before.output == after.output && !after.output.isEmpty)
    // And the app runs as it did.
    #expect(try fixture.inside(Self.fill).status == 0)
    #expect(
      try fixture.shell("insula purge org.example.notes --caches; \(Self.list)").output.contains("./tmp/c"))
    try fixture.succeed("unmount", fixture.mounted.point)
    // Of a store that is not mounted, too.
    let unmounted = try fixture.mounted.run("purge", "--store", fixture.mounted.store)
    #expect(unmounted.status == 0 && unmounted.output.contains("Freed"), "\(unmounted.errors)")
    let check = try fixture.mounted.run("check", fixture.mounted.store)
    #expect(check.status == 0, "\(check.output)")
  }

  @Test func appThatRunsKeepsEverything() throws {
    let fixture = try RunFixture()
    try #require(try fixture.inside(Self.fill).status == 0)
    let result = try fixture.shell(
      """
      run sleep 100 & running 1
      insula purge; \(Self.list)
      insula kill $APP; running 0; insula purge; \(Self.list)
      """)
    #expect(result.errors.contains("keeps its caches: the app is running"), "\(result.errors)")
    let parts = result.output.components(separatedBy: "There is nothing to delete.\n")
    try #require(parts.count == 2, "\(result.output)")
    #expect(parts[1].contains("./Library/Caches/a/b/cache\n") && parts[1].contains("./tmp/c/temporary\n"))
    #expect(parts[1].components(separatedBy: "Freed").last?.contains("cache") == false)
  }

  @Test func othersAreNotPurged() throws {
    let fixture = try RunFixture()
    try #require(try fixture.inside(Self.fill).status == 0)
    let other = try TemporaryAccount()
    let line =
      #"{"verb":"order","order":{"action":"purge","purge":{"apps":[],"places":["tmp","caches"],"#
      + #""isDryRun":false,"#
    // Once for everybody, which means oneself; and once for the other one.
    for user in ["null", "\(fixture.user.uid)"] {
      let answer = try fixture.ask(
        line + "\"user\":\(user)},\"allowsDowngrade\":false,\"keepsData\":false}}", as: other.account)
      #expect(answer.contains(user == "null" ? #""items":[]"# : #""ok":false"#), "\(answer)")
    }
    #expect(try fixture.shell(Self.list).output.contains("cache"))
  }

  /// In the socket's own words, since no command would say this.
  @Test func absurdGoalsAreRefused() throws {
    let fixture = try RunFixture()
    try #require(try fixture.inside(Self.fill).status == 0)
    func ask(_ goal: String) throws -> String {
      try fixture.ask(
        #"{"verb":"order","order":{"action":"purge","purge":{"apps":[],"places":["tmp"],"#
          + #""isDryRun":false,"goal":"#
          + goal + #"},"allowsDowngrade":false,"keepsData":false}}"#)
    }
    for goal in [
      #""0%""#, #""100%""#, #""-5G""#, #""9223372036854775807T""#, #""1e9""#, #""""#, "7", "{}", "[]",
    ] {
      #expect(try ask(goal).contains(#""ok":false"#), "\(goal)")
    }
    #expect(try fixture.shell(Self.list).output.contains("./tmp/c/temporary"))
    let answer = try ask(#""9223372036854775807""#)
    #expect(answer.contains(#""missing":"#) && answer.contains(#""count":3"#), "\(answer)")
  }

  /// Each start makes files and looks for them; each purge throws away what it may.
  @Test func startsAreRacedAgainstPurges() throws {
    let fixture = try RunFixture()
    let starts = Int(ProcessInfo.processInfo.environment["INSULA_STARTS"] ?? "40") ?? 40
    let script = """
      for place in $HOME/tmp $HOME/Library/Caches; do
        mkdir -p $place/a/b && echo words >$place/a/b/c || exit 7
        for i in 1 2 3 4 5 6 7 8 9 10; do
          [ "$(cat $place/a/b/c)" = words ] || exit 8
          [ "$(ls $place/a)" = b ] || exit 9
        done
      done
      """
    let result = try fixture.shell(
      """
      SCRIPT=$(cat <<'END'
      \(script)
      END
      )
      (while :; do "$INSULA" purge --store "$POINT"; done >/dev/null 2>&1) & purges=$!
      for i in $(seq \(starts)); do run sh -c "$SCRIPT" || echo "start $i failed with $?"; done
      kill $purges; wait $purges
      insula log --json | grep -c '"event":"purged"'
      """)
    #expect(Int(result.output.trimmingCharacters(in: .whitespacesAndNewlines)) ?? 0 > 2, "\(result)")
  }

  /// Nobody who unmounts waits for a purge; the next process ends it.
  @Test func unmountDoesNotWait() throws {
    let fixture = try RunFixture()
    let made = try fixture.inside(
      "cd $HOME/tmp; for d in $(seq 100); do mkdir $d; (cd $d; seq 200 | xargs touch); done")
    try #require(made.status == 0)
    let result = try fixture.shell(
      """
      insula purge >/dev/null 2>&1 & purge=$!
      until [ $(ls $DATA/tmp | wc -l) = 1 ] || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      "$INSULA" unmount "$POINT"; echo $?; wait $purge
      """, as: RunFixture.root)
    #expect(result.output == "0\n", "\(result)")
    try fixture.mounted.mount()
    #expect(try fixture.shell("ls $DATA/tmp").output == "CACHEDIR.TAG\n")
    let staging = fixture.mounted.store + "/state/staging"
    #expect(try eventually { try FileManager.default.contentsOfDirectory(atPath: staging).isEmpty })
  }

  /// Who works in a directory goes on in it as long as it is there.
  @Test func whoIsInsideFillsNothingForEver() throws {
    let fixture = try RunFixture()
    try #require(try fixture.inside("true").status == 0)
    let result = try fixture.shell(
      """
      running 0; mkdir -p $DATA/tmp/d/e; cd $DATA/tmp/d/e
      (while :; do i=$((i + 1)); mkdir $i && : >$i/f || exit; done) 2>/dev/null & filler=$!
      insula purge --json >&2; echo $?
      kill $filler 2>/dev/null; wait $filler
      cd /; ls $DATA/tmp
      """)
    #expect(result.output == "0\nCACHEDIR.TAG\n", "\(result)")
  }

  /// What was taken when the process that serves is killed is gone by the next one's doing.
  @Test func killedPurgeIsFinished() throws {
    let fixture = try RunFixture()
    let made = try fixture.inside(
      "cd $HOME/tmp; for d in $(seq 100); do mkdir $d; (cd $d; seq 200 | xargs touch); done")
    try #require(made.status == 0)
    let result = try fixture.shell(
      """
      insula purge >/dev/null 2>&1 & sleep 0.15
      kill -KILL $(insula status --json | sed -n 's/^ *"pid" : \\([0-9]*\\).*/\\1/p')
      wait; insula status >/dev/null; ls $DATA/tmp | wc -l
      """, as: RunFixture.root)
    // With the tag that such a directory has.
    let left = Int(result.output.trimmingCharacters(in: .whitespacesAndNewlines)) ?? -1
    #expect(left == 1 || left == 101, "\(result.output)\(result.errors)")
    let staging = fixture.mounted.store + "/state/staging"
    #expect(try eventually { try FileManager.default.contentsOfDirectory(atPath: staging).isEmpty })
  }
}
