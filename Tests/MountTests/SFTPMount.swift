// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A mount of a directory by sshfs, which speaks to the server's program itself and keeps nothing that it has
/// read.
final class SFTPMount {
  static var isPossible: Bool {
    MountedStore.isPossible && FileManager.default.isExecutableFile(atPath: "/usr/bin/sshfs")
      && FileManager.default.isExecutableFile(atPath: "/usr/lib/openssh/sftp-server")
  }

  let temporary: TemporaryDirectory
  /// The directory itself.
  let behind: String
  var point: String { temporary.appending("point") }

  /// Of a directory of its own, or of one that another client has too.
  init(of directory: String? = nil) throws {
    temporary = try TemporaryDirectory()
    for name in ["behind", "point"] { try temporary.makeDirectory(name, mode: 0o755) }
    behind = directory ?? temporary.appending("behind")
    let script = """
      import subprocess, sys, os
      server = subprocess.Popen(
          ["/usr/lib/openssh/sftp-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
      client = subprocess.Popen(
          ["sshfs", "-f", "-o", "passive,dir_cache=no,attr_timeout=0,entry_timeout=0", ":" + sys.argv[1],
           sys.argv[2]], stdin=server.stdout, stdout=server.stdin, stderr=open(sys.argv[2] + ".log", "w"))
      os.close(0), os.close(1), os.close(2)
      server.stdin.close(); server.stdout.close(); client.wait(); server.wait()
      """
    let file = try temporary.write(script, to: "sshfs.py")
    let words = ["sh", "-c", "setsid python3 \"$@\" >/dev/null 2>&1 &", "sh", file]
    _ = try Program.run(words + [behind, point])
    let point = point
    let isMounted = try eventually { try MountTable.current().top(at: point) != nil }
    try #require(isMounted, "sshfs does not mount: \(temporary.text(of: "point.log") ?? "")")
  }

  deinit { _ = umount2(point, Int32(CLX_MNT_DETACH)) }
}
