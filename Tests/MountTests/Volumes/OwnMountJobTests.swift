// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
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
  /// Passes a directory of the tree in requests, and prints the answers.
  private static let pass = """
    import array, json, os, socket, sys
    for request in sys.argv[3:]:
      passed = os.open(sys.argv[2], os.O_RDONLY | os.O_DIRECTORY)
      made = socket.socket(socket.AF_UNIX); made.connect(sys.argv[1]); file = made.makefile("r")
      made.sendall(b'{"verb":"pass"}\\n'); file.readline()
      rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [passed]))
      made.sendmsg([b"\\n"], [rights]); file.readline()
      made.sendall(request.encode() + b"\\n"); print(file.readline())
    """

  /// Nobody has the daemon wait for itself, and keep the mount by that: who looks into the locked volume
  /// would wait for as long as its user likes.
  @Test func whatItServesIsNotPassedToIt() throws {
    let fixture = try EncryptedFixture()
    let mounted = fixture.run.mounted
    let script = try mounted.temporary.write(Self.pass, to: "pass.py")
    func order(_ action: String, _ more: String) -> String {
      #"'{"verb":"order","order":{"action":"\#(action)","bundle":"X.app","home":"\#(fixture.run.user.name)","#
        + #""allowsDowngrade":false,"keepsData":false\#(more)}}'"#
    }
    let orders = [order("install", ""), order("update", ""), order("update", #","whenClosed":true"#)]
    try fixture.expect("create Contents --wait; volume lock Contents", "")
    for place in ["$V", "$POINT/Users/\(fixture.run.user.name)"] {
      let answers = try fixture.shell(
        "timeout 60 python3 \(script) \(mounted.socket()) \(place) \(orders.joined(separator: " "))")
      let refusals = answers.output.components(separatedBy: "copy the bundle out of your own mount first")
      #expect(refusals.count == orders.count + 1, "\(answers)")
    }
    try fixture.refuse("volume add \"$POINT/Users/\(fixture.run.user.name)/Documents\"", "it lies on fuse")
    #expect(try mounted.run("unmount", mounted.point).status == 0)
  }

  /// The user's volume is locked, and whoever looks into it waits: so the daemon itself, which was passed the
  /// directory that has it, as if it were an app, in a filesystem of the user's own that leads there.
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
      mkdir $C/over
      timeout 100 unshare -Urm sh -c 'mount -t overlay -o "lowerdir=$2:$3" over "$3" &&
        exec /usr/bin/python3 - "$1" "$3" "$4"' sh \(try mounted.socket()) "$V" $C/over $C \\
        >/dev/null 2>&1 <<'END' &
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
