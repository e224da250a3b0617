// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// The name of a program that serves a disk of root's and is nobody that the machine knows.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct EngineNameTests {
  /// Each such change takes away what is mounted over the file.
  @Test func itIsFoundAlthoughAccountsChangeMeanwhile() throws {
    guard DiskVolumeTests.has("mount.exfat-fuse"), DiskVolumeTests.has("mkfs.exfat") else {
      Issue.record("SKIPPED: exfat-fuse is not installed, so it serves no disk here")
      return
    }
    let temporary = try TemporaryDirectory(mode: 0o755)
    // On a machine with an /etc of its own; its exFAT begins twice when the accounts have just changed.
    let script = """
      cd "$1"; mkdir point sbin once; chmod 777 once; cp -a /etc etc; mount --bind etc /etc
      mount --bind sbin /usr/local/sbin; truncate -s 64M x.img; mkfs.exfat x.img >/dev/null
      E=mount.exfat-fuse; cat >sbin/$E <<'END'
      #!/bin/sh
      for n in 1 2; do
        mkdir $O/asked$n 2>/dev/null || continue
        timeout 20 sh -c "until [ -e $O/done$n ]; do sleep 0.02; done"; id -un; break
      done
      exec $ENGINE "$@"
      END
      sed -i "s|\\$O|$PWD/once|g; s|\\$ENGINE|$(command -v $E)|" sbin/$E
      chmod 755 sbin/$E
      for n in 1 2; do
        until [ -d once/asked$n ] || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
        cp /etc/passwd /etc/passwd+; mv /etc/passwd+ /etc/passwd; touch once/done$n
      done &
      $INSULA init store >/dev/null && $INSULA mount store point &&
        $INSULA volume add x.img --engine program --store point >/dev/null
      echo one >point/Volumes/x/f; cat point/Volumes/x/f; ls once; $INSULA unmount point
      kill $! 2>/dev/null
      """
    let result = try Program.run(
      ["timeout", "-k", "5", "100", "unshare", "-m", "sh", "-c", script, "sh", temporary.path],
      environment: [
        "HOME": "/nonexistent", "INSULA": Program.insula, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
      ]
    )
    #expect(result.output == "one\nasked1\nasked2\ndone1\ndone2\n", "\(result)")
  }
}
