// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Whoever could put another store in a store's place keeps it from being mounted.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct StoreDoorMountTests {
  @Test(arguments: [false, true]) func aStoreThatOthersCanExchangeIsNotMounted(asNobody: Bool) throws {
    let mounted = try MountedStore(asNobody: asNobody)
    let parent = mounted.temporary.path
    // Nobody but root is in root's group.
    #expect(chown(mounted.store, uid_t.max, 65_534) == 0)
    for (path, mode) in [(mounted.store, 0o777), (mounted.store, 0o720), (parent, 0o777)]
      as [(String, mode_t)]
    {
      #expect(chmod(path, mode) == 0)
      for options in [[], ["-o", "ro"]] {
        let refused = try mounted.run(["mount", mounted.store, mounted.point] + options)
        #expect(refused.status == 7 && refused.errors.contains("\(path) lets other users put"), "\(refused)")
        #expect(!mounted.isMounted)
      }
      let check = try mounted.run("check", mounted.store)
      #expect(check.status == 8 && check.output.contains("\(path) lets other users put"), "\(check)")
      let doctor = try mounted.run("doctor", mounted.store)
      #expect(doctor.output.contains("\(path) lets other users put"), "\(doctor)")
      #expect(chmod(path, path == parent ? 0o1777 : 0o700) == 0)
    }
    try mounted.mount()
    #expect(mounted.isMounted)
  }

  /// A store that others can only look into is mounted, and that is said.
  @Test(arguments: [false, true]) func aStoreThatOthersCanReachIsNamed(asNobody: Bool) throws {
    let mounted = try MountedStore(asNobody: asNobody)
    #expect(chmod(mounted.store, 0o755) == 0)
    let said = try mounted.run("mount", mounted.store, mounted.point)
    #expect(said.status == 0 && mounted.isMounted, "\(said)")
    #expect(said.errors.contains("\(mounted.store) lets other users reach the files"), "\(said)")
    #expect(try mounted.run("doctor", mounted.store).output.contains("past all ACLs"))
    #expect(try mounted.unmount().status == 0)
    let check = try mounted.run("check", mounted.store)
    #expect(check.status == 8 && check.output.contains("chmod 700"), "\(check)")
    #expect(try mounted.run("check", "--repair", mounted.store).status == 0)
    #expect(try mounted.run("check", mounted.store).status == 0)
  }
}
