// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// `O_APPEND` holds for as long as the open file has it, and for writes, not for maps.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct AppendTests {
  /// In a store that is mounted so: opens `p`, runs the lines, and prints what the file has then.
  private static func run(_ way: DataWay, _ mounted: MountedStore, _ lines: String) throws -> String {
    let script = """
      import fcntl, mmap, os, sys
      p = sys.argv[1]
      \(lines)
      print(open(p).read())
      """
    let result = try way.python(script, mounted.path("Users/Shared/file"))
    return result.output + result.errors
  }

  @Test(arguments: DataWay.allCases) func appendingComesByFcntl(way: DataWay) throws {
    let mounted = try way.mounted()
    let lines = """
      open(p, 'w').write('abc')
      f = os.open(p, os.O_WRONLY)
      fcntl.fcntl(f, fcntl.F_SETFL, os.O_APPEND)
      os.write(f, b'd')
      """
    #expect(try Self.run(way, mounted, lines) == "abcd\n")
  }

  /// With passthrough the kernel writes by the flags with which the file was opened.
  @Test(arguments: DataWay.allCases) func appendingGoesByFcntl(way: DataWay) throws {
    let mounted = try way.mounted()
    let lines = """
      open(p, 'w').write('abc')
      f = os.open(p, os.O_WRONLY | os.O_APPEND)
      os.write(f, b'd')
      fcntl.fcntl(f, fcntl.F_SETFL, 0)
      os.pwrite(f, b'A', 0)
      """
    let usesPassthrough = try mounted.flag("passthrough")
    #expect(try Self.run(way, mounted, lines) == (usesPassthrough ? "abcdA\n" : "Abcd\n"))
  }

  /// A page that is written back has its place, also through a file that appends.
  @Test(arguments: DataWay.allCases) func mapOfAFileThatAppendsKeepsItsPlace(way: DataWay) throws {
    let mounted = try way.mounted()
    let lines = """
      open(p, 'w').write('abc')
      f = os.open(p, os.O_RDWR | os.O_APPEND)
      m = mmap.mmap(f, 3)
      m[0:1] = b'A'
      m.flush()
      os.write(f, b'd')
      """
    #expect(try Self.run(way, mounted, lines) == "Abcd\n")
  }

  /// Many who append at once lose nothing, through one mount and in the store.
  @Test(arguments: DataWay.allCases) func appendingTakesTurns(way: DataWay) throws {
    let mounted = try way.mounted()
    let lines = """
      for child in range(4):
        if os.fork() == 0:
          f = os.open(p, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
          for turn in range(200): os.write(f, b'%d%04d\\n' % (child, turn))
          os._exit(0)
      for child in range(4): os.wait()
      lines = open(p).read().split()
      assert len(lines) == 800 and len(set(lines)) == 800, len(lines)
      for child in range(4):
        own = [line for line in lines if line[0] == str(child)]
        assert own == sorted(own)
      open(p, 'w').write('all')
      """
    #expect(try Self.run(way, mounted, lines) == "all\n")
  }

  /// What is appended by one call stays together, whichever view the others come through.
  @Test(arguments: [false, true]) func appendsThroughSeveralViewsStayWhole(rootless: Bool) throws {
    let mounts = try SeveralMounts(2, rootless: rootless)
    let file = mounts.path(0, "log")
    let script = """
      import os, sys
      def append(path, tag):
        if os.fork(): return
        f = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        for turn in range(600):
          record = b'%s:%d:%s\\n' % (tag, turn, b'z' * (turn * 131 % 5000))
          assert os.write(f, record) == len(record)
        os._exit(0)
      for tag, path in (b'a', sys.argv[1]), (b'b', sys.argv[1]), (b'c', sys.argv[2]): append(path, tag)
      for child in range(3): assert os.wait()[1] == 0
      torn = 0
      for line in open(sys.argv[1], 'rb').read().split(b'\\n')[:-1]:
        parts = line.split(b':')
        torn += len(parts) != 3 or parts[2] != b'z' * (int(parts[1]) * 131 % 5000)
      print(torn)
      """
    let result = try Program.run(["/usr/bin/python3", "-c", script, file, mounts.path(1, "log")])
    #expect(result.output == "0\n", "\(result.errors)")
  }
}
