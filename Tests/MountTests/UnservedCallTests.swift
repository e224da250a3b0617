// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import TestSupport
internal import Testing

/// What a file of ext4 can be asked that a file of ours can't: refused by the errno that programs know.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct UnservedCallTests {
  @Test(arguments: DataWay.allCases) func refusedByTheUsualErrno(way: DataWay) throws {
    let mounted = try way.mounted()
    let script = """
      import array, fcntl, os, sys
      f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o644)
      os.write(f, bytes(8192))
      os.fsync(f)
      def attempt(name, call):
        try: call()
        except OSError as error: print(name, {25: 'ENOTTY', 95: 'EOPNOTSUPP'}.get(error.errno, error))
        else: print(name, 'ok')
      # FS_IOC_GETVERSION, GETFSUUID, GETFSLABEL, FITRIM, GET_ENCRYPTION_POLICY, FIEMAP
      for number in (0x80087601, 0x80111500, 0x81009431, 0xc0185879, 0x400c6615, 0xc020660b):
        attempt(hex(number), lambda: fcntl.ioctl(f, number, array.array('B', bytes(4096)), True))
      nowait, dontcache, noappend = 8, 0x80, 0x20
      attempt('nowait', lambda: os.preadv(f, [bytearray(10)], 0, nowait))
      attempt('dontcache', lambda: os.preadv(f, [bytearray(10)], 0, dontcache))
      os.close(f)
      f = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
      # Known since Linux 6.9.
      try: os.pwritev(f, [b'x'], 0, noappend)
      except OSError: pass
      print(os.fstat(f).st_size)
      """
    let result = try way.python(script, mounted.path("Users/Shared/file"))
    let lines = result.output.split(separator: "\n").map(String.init)
    #expect(
      lines.dropLast() == [
        "0x80087601 ENOTTY", "0x80111500 ENOTTY", "0x81009431 ENOTTY", "0xc0185879 ENOTTY",
        "0x400c6615 ENOTTY", "0xc020660b EOPNOTSUPP", "nowait EOPNOTSUPP", "dontcache EOPNOTSUPP",
      ], "\(result.output)\(result.errors)")
    // Appended all the same, or refused by a kernel that does not know it.
    #expect(["8192", "8193"].contains(lines.last ?? ""), "\(result.output)")
  }
}
