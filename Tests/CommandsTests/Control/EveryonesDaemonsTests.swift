// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// What root asks all daemons of the machine, whatever users have put where daemons are.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct EveryonesDaemonsTests {
  /// The sockets, which are in a namespace of their own, answer nothing.
  @Test func oneUsersSocketsTakeNobodysPlace() throws {
    let mounted = try MountedStore()
    let script = """
      set -e
      mount -t tmpfs none /run
      mkdir -p /run/user/65533/insula /run/user/65534
      chown -R 65533 /run/user/65533
      chown 65534 /run/user/65534
      setpriv --reuid=65533 --regid=65533 --clear-groups /usr/bin/python3 - <<'END' &
      import os, signal, socket
      os.chdir("/run/user/65533/insula")
      kept = []
      for number in range(500):
          listener = socket.socket(socket.AF_UNIX)
          listener.bind(f"{number}.sock")
          listener.listen(8)
          kept.append(listener)
      os.rename("499.sock", "all.sock")
      signal.pause()
      END
      silent=$!
      tries=0
      until [ -e /run/user/65533/insula/all.sock ] || [ $((tries += 1)) -gt 2000 ]; do sleep 0.02; done
      as() { setpriv --reuid=65534 --regid=65534 --clear-groups env XDG_RUNTIME_DIR=/run/user/65534 "$@"; }
      as "$1" init "$2/users"
      as "$1" mount "$2/users" "$2/point"
      # Until then all are looked for that other tests have mounted.
      (ulimit -Sn 100; "$1" volume lock --all) 2>"$2/said" || echo "status $?"
      as "$1" unmount "$2/point"
      kill $silent
      """
    let result = try Program.run([
      "timeout", "300", "unshare", "-m", "bash", "-c", script, "bash", Program.insula, mounted.temporary.path,
    ])
    let said = mounted.temporary.text(of: "said") ?? ""
    let lines = said.split(separator: "\n")
    #expect(result.output.hasSuffix("status 1\n"), "\(result)")
    #expect(lines.count { $0.contains("65533") } == 33, "\(said)")
    #expect(lines.contains { $0.contains("65533/insula has more than 32 daemons") }, "\(said)")
    #expect(!said.contains("65534") && !said.contains("Too many open files"), "\(said)")
  }
}
