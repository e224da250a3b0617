// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// `insula restart`: the installed program takes the place of the running one under load.
@Suite(.enabled(if: MountedStore.isPossible && KernelRelease.own >= KernelRelease(6, 9)))
struct RestartTests {
  private static let manager = Checkout.path("Tests/Fixtures/service-manager.py")

  /// A program of this mount's own, which can be replaced.
  private func install(_ mounted: MountedStore) throws -> String {
    try mounted.temporary.makeDirectory("bin", mode: 0o755)
    let program = mounted.temporary.appending("bin/insula")
    try FileManager.default.copyItem(atPath: Program.insula, toPath: program)
    return program
  }

  /// Puts other contents in a program's place, as a package manager does.
  private func replace(_ program: String, by body: (String) throws -> Void) throws {
    let new = program + ".new"
    try body(new)
    #expect(chmod(new, 0o755) == 0)
    #expect(rename(new, program) == 0)
  }

  private func run(_ words: [String], of mounted: MountedStore, _ program: String) throws -> ProgramResult {
    let environment = [
      "HOME": mounted.temporary.appending("home"), "XDG_RUNTIME_DIR": "", "XDG_DATA_HOME": "",
    ]
    guard let owner = mounted.owner else {
      return try Program.run([program] + words, environment: environment)
    }
    let become = ["setpriv", "--reuid=\(owner.uid)", "--regid=\(owner.gid)", "--clear-groups"]
    return try Program.run(become + [program] + words, environment: environment)
  }

  /// What a process runs.
  private func program(of pid: Int32) throws -> ino_t {
    var status = FileStatus()
    try #require(stat("/proc/\(pid)/exe", &status) == 0)
    return status.st_ino
  }

  private static let client = """
    import fcntl, os, sys
    os.chdir(sys.argv[1])
    kept = open("kept", "w+")
    gone = open("gone", "w+"); gone.write("nameless"); gone.flush(); os.unlink("gone")
    lock = open("lock", "w"); fcntl.lockf(lock, fcntl.LOCK_EX)
    open("ready", "w").close()
    count = 0
    while not os.path.exists("end"):
        kept.write("x"); kept.flush(); count += 1
        with open("new", "w") as file: file.write(str(count))
        os.rename("new", "last")
        assert open("last").read() == str(count)
        os.mkdir("directory"); os.rmdir("directory")
        gone.seek(0); assert gone.read() == "nameless"
    kept.seek(0); assert kept.read() == "x" * count
    """

  @Test(arguments: [[], ["nopassthrough"], ["nohandles"], ["rootless"]])
  func installedProgramTakesOver(options: [String]) throws {
    let mounted = try MountedStore(asNobody: options == ["rootless"])
    let program = try install(mounted)
    let words = options.filter { $0 != "rootless" }.flatMap { ["-o", $0] }
    let mount = try run(["mount", mounted.store, mounted.point] + words, of: mounted, program)
    #expect(mount.status == 0, "\(mount)")
    let keeper = try #require(try mounted.keeper())
    let place = mounted.path("Users/Shared/client")
    try FileManager.default.createDirectory(
      atPath: mounted.backing("Users/Shared/client"), withIntermediateDirectories: false)
    #expect(chmod(mounted.backing("Users/Shared/client"), 0o777) == 0)
    let become = mounted.owner == nil ? "" : "setpriv --reuid=65534 --regid=65534 --clear-groups"
    let restarts = """
      client=$1 place=$2 program=$3 store=$4 backing=$5
      \(become) /usr/bin/python3 -c "$client" "$place" & python=$!
      for try in $(seq 500); do [ -e "$backing/ready" ] && break; sleep 0.02; done
      [ -e "$backing/ready" ] || exit 10
      for round in 1 2 3; do
        cp "$program" "$program.new" && mv "$program.new" "$program" || exit 11
        \(become) "$program" restart "$store" || exit 12
      done
      \(become) touch "$place/end"
      wait $python
      """
    let result = try Program.run(
      [
        "bash", "-c", restarts, "sh", Self.client, place, program, mounted.store,
        mounted.backing("Users/Shared/client"),
      ],
      environment: ["XDG_RUNTIME_DIR": ""])
    #expect(result.status == 0, "\(result.output)\(result.errors)")
    #expect(result.output.contains("is served by insula"))
    let daemon = try #require(try mounted.daemon())
    var installed = FileStatus()
    #expect(stat(program, &installed) == 0)
    #expect(try self.program(of: daemon) == installed.st_ino)
    #expect(try self.program(of: keeper) == installed.st_ino)
    #expect(try mounted.keeper() == keeper)
    #expect(try mounted.count("restarts") == 3)
    #expect(try mounted.unmount().status == 0)
    #expect(try Program.waitForEnd(keeper))
  }

  /// What is installed may be damaged, of another kind, or gone.
  @Test func whatCanNotTakeOverIsNotStarted() throws {
    let mounted = try MountedStore()
    let program = try install(mounted)
    let good = mounted.temporary.appending("good")
    try FileManager.default.copyItem(atPath: program, toPath: good)
    #expect(try run(["mount", mounted.store, mounted.point], of: mounted, program).status == 0)
    let before = try mounted.daemon()
    let unfit = [
      "#!/bin/sh\nexit 1\n", "#!/bin/sh\nkill -SEGV $$\n", "no program at all",
      "#!/bin/sh\n[ \"$2\" != --can-take-over ] || exit 3\n",
    ]
    for contents in unfit {
      try replace(program) { try contents.write(toFile: $0, atomically: false, encoding: .utf8) }
      let result = try run(["restart", mounted.store], of: mounted, good)
      #expect(result.status == 1)
      #expect(
        result.errors.contains("can't take over from the running one, which goes on"), "\(result.errors)")
    }
    #expect(unlink(program) == 0)
    #expect(try run(["restart", mounted.store], of: mounted, good).status == 1)
    // What an open would wait for.
    #expect(mkfifo(program, 0o755) == 0)
    let waited = try run(["restart", mounted.store], of: mounted, good)
    #expect(waited.status == 1)
    #expect(waited.errors.contains("can't take over from the running one"), "\(waited.errors)")
    #expect(try mounted.daemon() == before)
    #expect(try mounted.count("restarts") == 0)
    // A program that keeps other things says so itself.
    let asked = try run(["mount", "--can-take-over", "12345"], of: mounted, good)
    #expect(asked.status == 1)
    #expect(asked.errors.contains("keeps other things of a mount"))
    try replace(program) { try FileManager.default.copyItem(atPath: good, toPath: $0) }
    #expect(try run(["restart", mounted.store], of: mounted, program).status == 0)
    #expect(try mounted.unmount().status == 0)
  }

  @Test func onlyItsOwnerRestartsADaemon() throws {
    let mounted = try MountedStore.mounted()
    let result = try Program.runAsNobody(
      [Program.insula, "restart", mounted.point], environment: ["XDG_RUNTIME_DIR": ""])
    #expect(result.status == 7)
    #expect(result.errors.contains("only root and the daemon's owner may do this"), "\(result.errors)")
    #expect(try mounted.count("restarts") == 0)
    #expect(try mounted.unmount().status == 0)
    let unmounted = try mounted.run("restart", mounted.store)
    #expect(unmounted.status == 6)
  }

  @Test func endOfTheKeeperIsTold() throws {
    let mounted = try MountedStore.mounted()
    let keeper = try #require(try mounted.keeper())
    #expect(try mounted.count("keeper") == Int(keeper))
    #expect(kill(keeper, SIGKILL) == 0)
    #expect(try Program.waitForEnd(keeper))
    #expect(try mounted.count("keeper") == 0)
    #expect(FileManager.default.createFile(atPath: mounted.path("Users/Shared/file"), contents: Data()))
    let log = mounted.store + "/state/daemon.log"
    #expect(eventually { FD.text(of: log, limit: 1 << 16)?.contains("would not outlive") == true })
    let result = try mounted.run("restart", mounted.store)
    #expect(result.status == 1)
    #expect(result.errors.contains("unmount the store and mount it again"), "\(result.errors)")
    #expect(try mounted.unmount().status == 0)
  }

  @Test func statusTellsOfTheEnd() throws {
    let mounted = try MountedStore.mounted(options: "restarts=0")
    let daemon = try #require(try mounted.daemon())
    #expect(kill(daemon, SIGKILL) == 0)
    #expect(eventually { !mounted.isMounted })
    let told = try mounted.run("status", mounted.store)
    #expect(told.status == 6)
    #expect(told.output.contains("has died once in 10 s, the last time by signal 9"), "\(told.output)")
    try mounted.mount()
    #expect(try mounted.unmount().status == 0)
    #expect(try !mounted.run("status", mounted.store).output.contains("has died"))
  }

  /// A service manager that keeps descriptors lets the mount outlive its keeper.
  @Test(arguments: [[], ["nopassthrough"], ["nohandles"]])
  func serviceManagerKeepsDescriptors(options: [String]) throws {
    let mounted = try MountedStore()
    let result = try Program.run(
      [
        "python3", Self.manager, Program.insula, mounted.store,
        mounted.point, "3",
      ] + options)
    #expect(result.status == 0, "\(result.output)\(result.errors)")
    #expect(result.output.contains("ok"))
    #expect(!mounted.isMounted)
  }
}
