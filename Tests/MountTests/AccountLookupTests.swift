// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// A name service that does not answer keeps nobody waiting who uses the mount.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct AccountLookupTests {
  /// Whom the C library asks first lives in a namespace of our own, and never answers; the library waits five
  /// seconds for it.
  @Test func nobodyWaitsForADirectoryService() throws {
    let mounted = try MountedStore()
    let script = """
      mount -t tmpfs none /run && mkdir -m 755 /run/nscd && python3 - "$@" <<'END'
      import os, socket, struct, subprocess, sys, time
      insula, store, point = sys.argv[1:]
      silent = socket.socket(socket.AF_UNIX)
      silent.bind("/run/nscd/socket")
      silent.listen(1000)
      os.chmod("/run/nscd/socket", 0o666)
      subprocess.run([insula, "mount", store, point], check=True)
      file = point + "/Users/Shared/file"
      open(file, "w").close()
      slowest = 0
      def timed(call, *words):
          global slowest
          start = time.monotonic()
          try: return call(*words)
          except OSError as error: return error.errno
          finally: slowest = max(slowest, time.monotonic() - start)
      def entry(who):
          return struct.pack(">IIIII", 1, 0, 0, 1, len(who)) + who + b"\\0" * (-len(who) % 4)
      for who in b"root", b"root@localdomain", b"nobody-of-this-name@localdomain", b"a.b@elsewhere.example":
          print(timed(os.setxattr, file, "system.nfs4_acl", entry(who)), end=" ")
      numbers = entry(b"4000000123")
      print(timed(os.setxattr, file, "system.nfs4_acl", numbers), end=" ")
      print(timed(os.getxattr, file, "system.nfs4_acl") == numbers, slowest < 3, flush=True)
      subprocess.run([insula, "unmount", point], check=True)
      END
      """
    let result = try Program.run(
      [
        "timeout", "300", "unshare", "-m", "sh", "-c", script, "sh", Program.insula, mounted.store,
        mounted.point,
      ])
    #expect(result.output.hasSuffix("None None 22 22 None True True\n"), "\(result.output)\(result.errors)")
  }
}
