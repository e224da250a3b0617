// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What the next worker makes of requests that it finds, and of a mount that is gone.
@Suite(.enabled(if: MountedStore.isPossible, "needs root and /dev/fuse"))
struct ResentRequestTests {
  private static let isSurvivable = KernelRelease.own >= KernelRelease(6, 9)

  /// The keeper is stopped meanwhile, so that the request waits for the next worker.
  private static let script = """
    import os, signal, sys, time
    place, user, group, keeper, worker, call = sys.argv[1], *map(int, sys.argv[2:6]), sys.argv[6]
    (ready, go), (go_on, told) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([]); os.setgid(group); os.setuid(user)
        os.chdir(place)
        file = os.open("file", os.O_RDWR)
        calls = {
            "fallocate": lambda: os.posix_fallocate(file, 0, 20000),
            "tmpfile": lambda: os.open("directory", os.O_TMPFILE | os.O_RDWR, 0o600),
            "create": lambda: os.open("directory/new", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600),
            "mkdir": lambda: os.mkdir("directory/new"),
            "copy": lambda: os.copy_file_range(file, file, 5, 0, 10),
        }
        os.stat("directory")
        os.write(go, b"x"); os.read(go_on, 1)
        try: calls[call]()
        except OSError as error: print(call, error, file=sys.stderr); os._exit(1)
        os._exit(0)
    os.read(ready, 1)
    os.kill(keeper, signal.SIGSTOP)
    try:
        os.kill(worker, signal.SIGKILL)
        os.write(told, b"x")
        time.sleep(0.3)
    finally:
        os.kill(keeper, signal.SIGCONT)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """

  @Test(arguments: ["fallocate", "tmpfile", "create", "mkdir", "copy"], [[], ["nopassthrough"]])
  func whoHasARightByAnACLAloneHasItInAPauseToo(call: String, options: [String]) throws {
    guard Self.isSurvivable else { return print("skipped: before Linux 6.9 no daemon is replaced") }
    let temporary = try TemporaryAccount()
    defer { withExtendedLifetime(temporary) {} }
    let account = temporary.account
    let mounted = try MountedStore()
    try mounted.mount(options: options.isEmpty ? nil : options.joined(separator: ","))
    let place = mounted.path("Users/Shared/place")
    let setUp = """
      cd "$(dirname "$2")" && umask 077 && mkdir place && chmod 755 place && cd place
      echo some text > file && mkdir directory
      "$1" acl +a "user:$3 allow read,write,append,readattr,readextattr" file
      "$1" acl +a "user:$3 allow list,search,add_file,add_subdirectory,readattr" directory
      """
    let made = try Program.run(["sh", "-ec", setUp, "sh", Program.insula, place, account.name])
    try #require(made.status == 0, "\(made.errors)")
    let keeper = try #require(try mounted.keeper())
    let worker = try #require(try mounted.daemon())
    let result = try Program.run(
      ["timeout", "60", "python3", "-c", Self.script, place]
        + [Int32(account.uid), Int32(account.gid), keeper, worker].map { "\($0)" } + [call])
    #expect(result.status == 0, "\(result.output)\(result.errors)")
    #expect(try mounted.unmount().status == 0)
  }

  /// Then there is nothing to serve on, and nothing to complain about.
  @Test func aDeathWhileTheMountGoesIsItsEnd() throws {
    guard Self.isSurvivable else { return print("skipped: before Linux 6.9 no daemon is replaced") }
    let mounted = try MountedStore()
    for round in 0..<15 {
      try mounted.mount(options: "restarts=100")
      let keeper = try #require(try mounted.keeper())
      let worker = try #require(try mounted.daemon())
      if round < 3 {
        // The next worker finds a connection that has ended.
        kill(keeper, SIGSTOP)
        kill(worker, SIGKILL)
        #expect(umount2(mounted.point, Int32(MNT_DETACH)) == 0)
        kill(keeper, SIGCONT)
      } else {
        #expect(umount2(mounted.point, 0) == 0)
        usleep(UInt32(round * 150))
        kill(worker, SIGKILL)
      }
      #expect(try Program.waitForEnd(keeper))
    }
    let state = mounted.store + "/state"
    #expect(access(state + "/gave-up", F_OK) != 0)
    let log = FD.text(of: state + "/daemon.log", limit: 1 << 20) ?? ""
    #expect(!log.contains("can't serve on"), "\(log)")
  }
}
