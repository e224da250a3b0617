// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A store on a filesystem that two machines have. (`make leases` also has machines that go away.)
@Suite(.enabled(if: SFTPMount.isPossible, "needs root, /dev/fuse, sshfs and openssh-sftp-server"))
struct LeaseMountTests {
  private let first: SFTPMount
  private let second: SFTPMount
  private let mounted: MountedStore

  init() throws {
    first = try SFTPMount()
    second = try SFTPMount(of: first.behind)
    mounted = try MountedStore(owner: nil, store: first.point + "/store")
    try mounted.temporary.makeDirectory("other", mode: 0o755)
  }

  /// Runs a script on a machine that is another one to all processes of this one.
  private func onAnotherMachine(_ script: String) throws -> ProgramResult {
    let boot = try mounted.temporary.write("00000000-1111-2222-3333-444444444444\n", to: "boot")
    return try Program.run(
      [
        "timeout", "-k", "5", "150", "unshare", "-m", "-u", "sh", "-c",
        "mount --bind '\(boot)' /proc/sys/kernel/random/boot_id; hostname other-machine; \(script)",
      ],
      environment: [
        "HOME": "/nonexistent", "INSULA": Program.insula, "STORE": second.point + "/store",
        "POINT": mounted.temporary.appending("other"),
      ])
  }

  @Test func oneMachineHasTheStoreAtATime() throws {
    try mounted.mount()
    #expect(try !mounted.flag("passthrough"), "the kernel would not stop")
    let written = try Program.run(["sh", "-c", "echo 1 > \(mounted.path("Users/Shared/f"))"])
    #expect(written.status == 0, "\(written.errors)")
    let refused = try onAnotherMachine("$INSULA mount $STORE $POINT; echo $?")
    let host = hostName() ?? ""
    #expect(
      refused.output == "3\n" && refused.errors.contains("is in use on \(host); unmount it there first"),
      "\(refused)")
    let told = try onAnotherMachine("$INSULA status $STORE; $INSULA doctor $STORE")
    #expect(told.output.contains("is in use on \(host), or was"), "\(told)")
    #expect(told.output.contains("other machines: may have this filesystem too"), "\(told)")
    // A worker that dies leaves the lease to the next one.
    kill(pid_t(try mounted.count("pid")), SIGKILL)
    #expect(try eventually { try mounted.count("restarts") == 1 })
    let read = try Program.run(["cat", mounted.path("Users/Shared/f")])
    #expect(read.output == "1\n", "\(read)")
    // After an unmount it is another's at once, and so back again.
    #expect(try mounted.unmount().status == 0)
    let taken = try onAnotherMachine(
      """
      $INSULA mount $STORE $POINT && cat $POINT/Users/Shared/f && echo 2 >> $POINT/Users/Shared/f
      $INSULA unmount $POINT && $INSULA check $STORE
      """)
    #expect(taken.status == 0 && taken.output.hasPrefix("1\n"), "\(taken)")
    try mounted.mount()
    #expect(try Program.run(["cat", mounted.path("Users/Shared/f")]).output == "1\n2\n")
  }

  /// Commands that change a store which nobody serves have the lease while they do.
  @Test func commandsTakeItToo() throws {
    let added = try mounted.run("user", "add", "nobody", "--store", mounted.store)
    #expect(added.status == 0, "\(added)")
    let leases = try FileManager.default.contentsOfDirectory(atPath: first.behind + "/store/state/lease")
    // Once to forget what a former user of that number has decided, and once to make the home.
    #expect(Set(leases) == ["00000000000000000001", "00000000000000000002"])
    let other = try onAnotherMachine("$INSULA check --repair $STORE; echo $?")
    #expect(other.output.hasSuffix("0\n"), "\(other)")
  }
}
