// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Device nodes are kept, and opened by nobody.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct DeviceTests {
  @Test func toolsKeepDevicesAndNobodyOpensThem() throws {
    let mounted = try MountedStore.mounted()
    func run(_ line: String) throws -> ProgramResult {
      try Program.run(
        ["timeout", "100", "sh", "-c", "cd '\(mounted.path("Users/Shared"))' && \(line)"],
        environment: ["LC_ALL": "C"])
    }
    let made = try run(
      "set -e; mkdir from; mknod -m 666 from/null c 1 3; "
        + "mknod -m 640 from/disk b 259 70000; chown 1:2 from/disk"
    )
    try #require(made.status == 0, "\(made.errors)")
    let look = "stat -c '%n %F %t %T %a %u %g' null disk"
    let expected = try run("cd from && \(look)").output
    #expect(
      expected.contains("character special file 1 3 666")
        && expected.contains("block special file 103 11170 640"))
    for way in [
      "cp -a from to", "rsync -a from/ to", "mkdir to; tar -cf - -C from . | tar -xpf - -C to",
      "cp -a from other; mv other to", "mkdir to; mv from/* to; cp -a to/* from",
    ] {
      let copied = try run(way)
      #expect(copied.status == 0 && copied.errors.isEmpty, "\(way): \(copied.errors)")
      #expect(try run("cd to && \(look)").output == expected, "\(way)")
      #expect(try run("rm -r to").status == 0)
    }
    for name in ["null", "disk"] {
      for flags in [O_RDONLY, O_WRONLY, O_RDWR | O_NONBLOCK] {
        #expect(open(mounted.path("Users/Shared/from/" + name), flags) == -1 && errno == EACCES)
      }
    }
    let user = try Client(uid: 54321)
    #expect(try user.errno("open", mounted.path("Users/Shared/from/null"), "\(O_RDWR)") == EACCES)
    for (line, ending) in [
      ("mknod null c 1 3", .failed), ("cp -a from/null null", .failed),
      ("tar -cf - from | tar -xf - -C /tmp/nowhere", .seriousTrouble),
    ] as [(String, Ending)] {
      let become = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"]
      let result = try Program.run(
        become + ["sh", "-c", "cd '\(mounted.path("Users/Shared"))' && \(line)"], environment: ["LC_ALL": "C"]
      )
      #expect(result.ending == ending, "\(line): \(result)")
    }
    #expect(try mounted.run("check", mounted.store).status == 0)
    #expect(try run("mknod '\(mounted.path("System/null"))' c 1 3").ending == .failed)
  }
}
