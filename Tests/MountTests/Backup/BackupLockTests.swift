// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import TestSupport
internal import Testing

/// What restic's locks of a repository keep from whom.
@Suite(
  .enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"),
  .mayTake(seconds: 240))
struct BackupLockTests {
  /// A run that was killed leaves a lock; one that goes on keeps its own.
  @Test func locksOfEndedRunsAreTakenAway() throws {
    let fixture = try BackupFixture()
    _ = try fixture.succeed("init; backup now --store \"$POINT\"")
    let begin = """
      mkfifo $SCRATCH/in; plain backup --stdin <$SCRATCH/in >/dev/null 2>&1 & run=$!
      exec 3>$SCRATCH/in
      until ls "$REPOSITORY"/locks | grep -q . || [ $((n+=1)) -gt 600 ]; do sleep 0.05; done
      """
    // What the shell calls so is a function of it, in a process of its own.
    let killed = try fixture.shell(
      """
      \(begin)
      pkill -KILL -P $run; wait $run; ls "$REPOSITORY"/locks | wc -l
      backup forget --keep last=1 && backup now --store "$POINT" && ls "$REPOSITORY"/locks | wc -l
      """)
    #expect(killed.ending == .ok && killed.output.hasPrefix("1\n"), "\(killed)")
    #expect(killed.output.hasSuffix("\n0\n"), "\(killed)")
    let running = try fixture.shell(
      """
      rm $SCRATCH/in; \(begin)
      backup forget --keep last=1; echo $?; echo x >&3; exec 3>&-; wait $run; echo $?
      """)
    #expect(running.output.hasSuffix("3\n0\n"), "\(running)")
    #expect(running.errors.contains("in use"), "\(running)")
  }
}
