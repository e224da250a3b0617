// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What apps have of volumes: what their user has granted.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct VolumeViewTests {
  private struct Work {
    let run: RunFixture
    let directory: String
    private static let mayWrite = "<key>com.apple.security.files.user-selected.read-write</key><true/>"

    init(rootless: Bool, device: Bool = false) throws {
      run = try RunFixture(rootless: rootless, entitlements: Self.mayWrite)
      directory = run.mounted.temporary.appending("work")
      let made = try Program.run([
        "sh", "-c",
        """
        mkdir "$0" && if [ -n "$3" ]; then mount -t tmpfs -o mode=755 none "$0"; fi; cd "$0" &&
          mkdir mine other && echo one >mine/a && echo two >other/b && ln -s ../other mine/out &&
          echo secret >"$0-decoy" && ln -s "$0-decoy" mine/etc && chown -Rh $1:$2 .
        """, directory, "\(run.user.uid)", "\(run.user.gid)", device ? "yes" : "",
      ])
      try #require(made.status == 0, "\(made.errors)")
      let added = try run.shell("\"$INSULA\" volume add --store \"$POINT\" \(directory)")
      try #require(added.status == 0, "\(added)")
    }

    func unmountDevice() { _ = try? Program.run(["umount", "-l", directory]) }

    func expect(
      _ script: String, _ output: String, location: SourceLocation = #_sourceLocation
    ) throws {
      let result = try run.shell("V=\"$POINT/Volumes/work\"; id=\(RunFixture.identifier)\n" + script)
      #expect(result.status == 0 && result.output == output, "\(result)", sourceLocation: location)
    }

  }

  /// A working directory that is moved out of what was granted past the daemon stays the app's until that is
  /// revoked.
  @Test func whatIsMovedAwayFromOutsideIsLostWithTheGrant() throws {
    let fixture = try Work(rootless: false)
    try fixture.expect(
      """
      mkdir $V/mine/sub; echo three >$V/mine/sub/c; insula grant $id $V/mine >/dev/null
      come() { for n in $(seq 500); do [ -e "$1" ] && break; sleep 0.02; done; ls "$1" | wc -l; }
      run sh -c "cd $V/mine/sub; echo >$DATA/tmp/begun
        until [ -e $DATA/tmp/moved ] || [ \\$((w+=1)) -gt 6000 ]; do sleep 0.02; done
        sleep 2; cat c; ls .. 2>&1 | grep -c other; echo >$DATA/tmp/seen
        until [ -e $DATA/tmp/revoked ] || [ \\$((w+=1)) -gt 6000 ]; do sleep 0.02; done
        cat c 2>&1 | grep -c -i -e 'no such' -e permitted -e stale" &
      come $DATA/tmp/begun; cd \(fixture.directory); mv mine/sub other/; touch $DATA/tmp/moved
      come $DATA/tmp/seen; insula revoke $id $V/mine >/dev/null; touch $DATA/tmp/revoked; wait
      """, "1\nthree\n0\n1\n1\n")
  }

  /// Of a system store also on another device, as a disk that was plugged in.
  private static let ways: [(rootless: Bool, device: Bool)] = [(false, false), (true, false), (false, true)]

  @Test(arguments: ways)
  func anAppHasWhatWasGranted(rootless: Bool, device: Bool) throws {
    let fixture = try Work(rootless: rootless, device: device)
    defer { if device { fixture.unmountDevice() } }
    let volumes = fixture.run.mounted.path("Volumes")
    // Without a grant there is nothing of it.
    try fixture.expect(
      "run sh -c \"ls -A $POINT/Volumes; cat $V/mine/a\" 2>&1 | grep -c -E 'No such|denied|permitted'", "2\n")
    try fixture.expect(
      "insula grant $id $V/mine >/dev/null; insula grants $id | grep -c Volumes/work/mine", "1\n")
    try fixture.expect(
      """
      run sh -c "ls -A $POINT/Volumes $V $V/mine; cat $V/mine/a; echo more >>$V/mine/a; echo new >$V/mine/c
      ls $V/other $V/mine/../other 2>&1 | grep -c 'No such'
      ls $V/mine/out/ $V/mine/etc/ 2>&1 | grep -c such
      ln $V/mine/a $V/mine/d; mv $V/mine/d $V/e 2>&1 | wc -l; mkdir $V/new 2>&1 | wc -l"
      cat \(fixture.directory)/mine/a \(fixture.directory)/mine/c; ls \(fixture.directory)
      """,
      """
      \(volumes):
      work

      \(volumes)/work:
      mine

      \(volumes)/work/mine:
      a
      etc
      out
      one
      2
      2
      1
      1
      one
      more
      new
      mine
      other

      """)
    // A grant follows what is moved, ends with what it is for, and is there at the next mount.
    try fixture.expect(
      "mv $V/mine $V/yours; run sh -c \"cat $V/yours/c; ls $V/mine 2>/dev/null; true\"", "new\n")
    _ = try fixture.run.mounted.unmount()
    try fixture.run.mounted.mount()
    try fixture.expect("run cat $V/yours/c; insula grants $id | grep -c Volumes/work/yours", "new\n1\n")
    let out = fixture.run.mounted.temporary.appending("out-\(rootless)-\(device)")
    try fixture.expect(
      """
      wait_for() { until [ -e $DATA/tmp/$1 ] || [ $((w+=1)) -gt 2400 ]; do sleep 0.05; done; }
      : >\(out) || exit 1
      run sh -c "echo >$DATA/tmp/begun
        until [ -e $DATA/tmp/go ] || [ \\$((w+=1)) -gt 2400 ]; do sleep 0.05; done
        cat $V/yours/c; ls -A $V" >\(out) 2>&1 &
      wait_for begun; insula revoke $id $V/yours >/dev/null; touch $DATA/tmp/go; wait
      grep -c -E 'No such|denied|permitted' \(out)
      """, "2\n")
  }

  /// Who looks at one that is used by an app is told by whom.
  @Test func anAppThatUsesOneIsNamed() throws {
    let fixture = try Work(rootless: false)
    try fixture.expect(
      """
      insula grant $id $V/mine >/dev/null
      run sh -c "exec 3<$V/mine/a; echo >$DATA/tmp/begun
        until [ -e $DATA/tmp/go ] || [ \\$((w+=1)) -gt 2400 ]; do sleep 0.05; done; cat <&3" &
      until [ -e $DATA/tmp/begun ] || [ $((w+=1)) -gt 2400 ]; do sleep 0.05; done
      "$INSULA" volume eject work --store "$POINT" 2>&1 | grep -c "is in use: .*$id"; touch $DATA/tmp/go; wait
      "$INSULA" volume eject work --store "$POINT"; ls -A $POINT/Volumes
      """, "1\none\n")
  }

  /// What anyone can put on a disk runs with nobody else's rights, and is no device.
  @Test func aHostileDiskGivesNothing() throws {
    let fixture = try Work(rootless: false, device: true)
    defer { fixture.unmountDevice() }
    let made = try Program.run([
      "sh", "-c",
      """
      cd "$0/other" && cp /usr/bin/id setid && chmod 6755 setid && mknod null c 1 3 && chmod 666 null &&
        mkfifo pipe && ln -s / root && mkdir sealed.app && setfattr -n trusted.insula.flags -v x b &&
        setfattr -n trusted.insula.acl -v broken setid
      """, fixture.directory,
    ])
    try #require(made.status == 0, "\(made.errors)")
    try fixture.expect(
      """
      cat $V/other/setid 2>&1 | grep -c denied; echo x 2>/dev/null >$V/other/null || echo no device
      cat $V/other/b; touch $V/other/b 2>&1 | grep -c permitted; ls $V/other | wc -l
      """, "1\nno device\ntwo\n1\n6\n")
    _ = try Program.run(["setfattr", "-x", "trusted.insula.acl", fixture.directory + "/other/setid"])
    try fixture.expect(
      """
      cd $V/other; ./setid -u; stat -c %a setid
      python3 -c 'import os; print(oct(os.stat("setid").st_mode))'
      """,
      "\(fixture.run.user.uid)\n755\n0o100755\n")
    // What a program is capable of is not asked of a disk either.
    let capable = try Program.run([
      "sh", "-c",
      "setfattr -n security.capability -v 0x01000002ffffffff00000000ffffffff00000000 \"$0\"/other/setid",
      fixture.directory,
    ])
    try #require(capable.status == 0, "\(capable)")
    try fixture.expect(
      "getfattr -n security.capability $V/other/setid 2>&1 | grep -c 'No such attribute'", "1\n")
    // So a list does not name it: a program that copies all that is listed would fail.
    try fixture.expect("getfattr --absolute-names -m - $V/other/setid | grep -c capability; true", "0\n")
    // Also for root, who copies all that there is.
    let mounted = fixture.run.mounted
    let name = fixture.run.user.name
    for words in [["eject", "work", "--user", name], ["add", fixture.directory, "--at", "work"]] {
      let result = try mounted.run(["volume"] + words + ["--store", mounted.point])
      try #require(result.status == 0, "\(result)")
    }
    let copied = try Program.run([
      "sh", "-ec",
      """
      mkdir "$1"; setfattr -n user.note -v kept "$0/mine/a"
      rsync -X "$0/other/setid" "$0/mine/a" "$1/"; mkdir "$0/mine/new"
      rsync -X "$1/setid" "$1/a" "$0/mine/new/"
      getfattr --absolute-names --only-values -n user.note "$0/mine/new/a"
      getfattr --absolute-names -m - "$0/mine/new/setid" | grep -c capability
      """, fixture.run.mounted.path("Volumes/work"), fixture.run.mounted.temporary.appending("copies"),
    ])
    #expect(copied.status == 1 && copied.output == "kept0\n" && copied.errors.isEmpty, "\(copied)")
  }

  /// Programs that take the number of an object for a signed one see no negative number.
  @Test func objectsOfADiskHaveSmallNumbers() throws {
    let fixture = try Work(rootless: false, device: true)
    defer { fixture.unmountDevice() }
    try fixture.expect(
      """
      cd $V; for i in $(seq 40); do mkdir mine/d$i; done
      python3 - <<'END'
      import os
      seen = [os.stat(".").st_ino]
      for top, directories, files in os.walk("."):
          with os.scandir(top) as found:
              for entry in found:
                  number = os.lstat(entry.path).st_ino
                  assert entry.inode() == number, entry.path
                  seen.append(number)
      print(len(seen) > 40, len(set(seen)) == len(seen), all(0 < number < 1 << 63 for number in seen))
      END
      """, "True True True\n")
  }
}
