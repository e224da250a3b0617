// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// What programs have closed before the server has it.
@Suite(
  .enabled(if: WebDAVServer.isPossible && MountedStore.isPossible, "rclone is not installed"),
  .mayTake(seconds: 300))
struct UploadTests {
  private final class Uploading: VolumeFixture {
    let run: RunFixture
    let server: WebDAVServer

    init() throws {
      run = try RunFixture()
      try run.mounted.temporary.makeDirectory("steps", mode: 0o777)
      server = try WebDAVServer(in: run.mounted.temporary)
      // Where rclone keeps what it has not uploaded.
      let home = ["usermod", "--home", run.mounted.temporary.appending("steps"), run.user.name]
      let moved = try Program.run(home, environment: ["PATH": "/usr/sbin:/sbin:/usr/bin:/bin"])
      try #require(moved.status == 0, "\(moved)")
      try expect("add", "")
    }

    func shell(_ script: String, as account: Account?) throws -> ProgramResult {
      try run.shell(
        """
        D="$POINT/Volumes/dav"; S='\(server.directory)'; R='\(run.mounted.temporary.appending("steps"))'
        volume() { verb=$1; shift; timeout 100 "$INSULA" volume "$verb" --store "$POINT" "$@"; }
        add() { volume add \(server.url)/ --at dav >/dev/null 2>&1; }
        until_there() { until [ -e "$1" ] || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done; }
        \(script)
        """, as: account)
    }

    /// Has a program close a file once the server does not answer any more.
    func write(_ name: String) throws {
      try expect(
        """
        (exec 5>$D/\(name); echo \(name) >&5; touch $R/\(name)-open; until_there $R/\(name)-stopped
          exec 5>&-; touch $R/\(name)-closed) >/dev/null 2>&1 &
        until_there $R/\(name)-open
        """, "")
      server.stop()
      try expect("touch $R/\(name)-stopped; until_there $R/\(name)-closed", "")
    }
  }

  @Test func whatIsClosedIsUploadedBeforeAnEject() throws {
    let uploading = try Uploading()
    try uploading.expect("echo one >$D/a; volume eject dav; cat $S/a; add", "one\n")
    try uploading.write("b")
    try uploading.expect(
      "(volume eject dav 2>$R/said; echo $? >$R/new; mv $R/new $R/ended) >/dev/null 2>&1 & sleep 1", "")
    // Each of two who ask gets an answer of their own.
    let both = try uploading.run.mounted.run("unmount", uploading.run.mounted.point)
    #expect(both.status == 3 && both.errors.includes("another command waits"), "\(both)")
    let ejected = try uploading.shell("until_there $R/ended; cat $R/ended $R/said")
    #expect(ejected.output.hasPrefix("3\n"), "\(ejected)")
    #expect(ejected.output.includes("dav: 1 file is not uploaded yet, and kept in /"), "\(ejected)")
    let unmounted = try uploading.run.mounted.run("unmount", uploading.run.mounted.point)
    #expect(unmounted.status == 3 && unmounted.errors.includes("1 file is not uploaded yet"), "\(unmounted)")
    // Given up, it is told where it is, and is uploaded when the volume is there again.
    let given = try uploading.shell("volume eject dav --force; ls $S")
    #expect(given.status == 0 && given.output.includes("a\n"), "\(given)")
    #expect(given.errors.includes("1 file is not uploaded yet, and kept in /"), "\(given)")
    uploading.server.goOn()
    try uploading.expect("add; until_there $S/b; cat $S/b", "b\n")
  }

  /// Who unmounts waits for a server that is slow.
  @Test func anUnmountWaitsForUploads() throws {
    let uploading = try Uploading()
    let mounted = uploading.run.mounted
    try uploading.write("c")
    // It goes on while this waits for it.
    let later = ["sh", "-c", "(sleep 3; kill -CONT \(uploading.server.process)) >/dev/null 2>&1 &"]
    try #require(try Program.run(later).status == 0)
    let unmounted = try mounted.run("unmount", mounted.point)
    #expect(unmounted.status == 0, "\(unmounted)")
    #expect(try Program.run(["cat", uploading.server.directory + "/c"]).output == "c\n")
  }

  /// What a user puts beside rclone's own files takes as long to look through as they like: the program is
  /// ended all the same, and with it what keeps others from being served.
  @Test func whatIsInTheCacheKeepsNoProgram() throws {
    let uploading = try Uploading()
    try uploading.expect(
      """
      M=$(echo $R/.cache/insula/uploads-*/vfsMeta); mkdir -p "$M/x"; cd "$M/x"; head -c 1000000 /dev/zero >a
      /usr/bin/python3 -c 'import os
      for n in range(30000): os.link("a", str(n))'
      volume eject dav 2>&1 | grep -c "told how many files are not uploaded yet"
      pgrep -u $(id -u) -c rclone
      """, "1\n1\n")
    uploading.server.stop()
    try uploading.expect(
      """
      (timeout 60 stat $D/new >/dev/null 2>&1; : >$R/over) & sleep 1; kill -STOP $(pgrep -u $(id -u) rclone)
      timeout 20 "$INSULA" volume eject dav --force --store "$POINT" >/dev/null 2>&1; echo $?
      for n in $(seq 250); do pgrep -u $(id -u) rclone >/dev/null || break; sleep 0.02; done
      pgrep -u $(id -u) rclone; until_there $R/over
      """, "0\n")
  }
}
