// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A job of the daemon that looks into the daemon's own mount keeps no worker from being replaced: only the
/// next one can answer it.
@Suite(
  .enabled(if: EncryptedFixture.isPossible, "mounting needs root and /dev/fuse, and gocryptfs"),
  .mayTake(seconds: 240))
struct OwnMountJobTests {
  /// The user's volume is locked, and whoever looks into it waits: so the daemon itself, which was passed the
  /// directory that has it, as if it were an app.
  @Test func theNextWorkerAnswersIt() throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    let fixture = try EncryptedFixture()
    let mounted = fixture.run.mounted
    let worker = try #require(try mounted.daemon())
    try fixture.expect(
      """
      create Contents --wait; volume lock Contents
      timeout 100 /usr/bin/python3 - \(try mounted.socket()) "$V" $C >/dev/null 2>&1 <<'END' &
      import array, os, socket, sys, time
      passed = os.open(sys.argv[2], os.O_RDONLY | os.O_DIRECTORY)
      made = socket.socket(socket.AF_UNIX); made.connect(sys.argv[1]); file = made.makefile("r")
      made.sendall(b'{"verb":"pass"}\\n'); file.readline()
      rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [passed]))
      made.sendmsg([b"\\n"], [rights]); file.readline()
      made.sendall(b'{"verb":"order","order":{"action":"install","bundle":"X.app",'
        b'"home":"\(fixture.run.user.name)","allowsDowngrade":false,"keepsData":false}}\\n')
      while not os.path.exists(sys.argv[3] + "/go"): time.sleep(0.02)
      END
      """, "")
    #expect(eventually { waitsForFilesystem(worker) })
    // Nobody is left whom anybody could end.
    try fixture.expect("touch $C/go; wait", "")
    #expect(waitsForFilesystem(worker))
    #expect(kill(worker, SIGKILL) == 0)
    let listed = try Program.run(["timeout", "30", "ls", mounted.path("Users")])
    #expect(listed.ending == .ok && listed.output.contains("Shared\n"), "\(listed)")
    #expect(try mounted.daemon().map { $0 != worker } == true)
    try fixture.expect("unlock Contents; ls $V", "Contents\n")
    #expect(eventually { !waitsForFilesystem(worker) })
    #expect(eventually { (try? mounted.run("restart", mounted.store).ending) == .ok })
    try fixture.expect("ls $V", "Contents\n")
  }
}
