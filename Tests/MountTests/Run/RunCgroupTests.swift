// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Limits that the kernel keeps for all processes of an app together, where this machine lets us have cgroups
/// that limit memory and processes: one in which the user has none but their own is made for each test.
@Suite(.enabled(if: DelegatedCgroup.isPossible, "takes cgroups of version 2 with memory, pids and cpu"))
struct RunCgroupTests {
  /// A script that joins the cgroup, becomes the user and becomes `insula run`, which is then alone there.
  private func script(_ fixture: RunFixture, _ cgroup: DelegatedCgroup, _ words: String) throws -> String {
    try fixture.mounted.temporary.write(
      """
      echo $$ > \(cgroup.path)/cgroup.procs
      exec setpriv --reuid=\(fixture.user.uid) --regid=\(fixture.user.gid) --clear-groups \
        "$INSULA" run --store "$POINT" \(words)
      """, to: "store/run.sh")
  }

  private func run(_ fixture: RunFixture, _ cgroup: DelegatedCgroup, _ words: String) throws -> ProgramResult
  {
    try fixture.shell("sh \(script(fixture, cgroup, words))", as: RunFixture.root)
  }

  @Test func memoryIsThatOfAllProcesses() throws {
    let fixture = try RunFixture()
    let cgroup = try DelegatedCgroup(owner: fixture.user)
    let eat = "kept = [b'x' * (1 << 20) for i in range(N)]; print('all')"
    let app = "--memory 128M $APP -- python3 -c \"\(eat)\""
    let ended = try run(fixture, cgroup, app.replacing("N", with: "200"))
    #expect(ended.status == 137 && !ended.output.contains("all"), "\(ended)")
    #expect(
      ended.errors.contains("the kernel has ended org.example.notes, because it used more than its 128 MiB"),
      "\(ended.errors)")
    #expect(try cgroup.leftovers().isEmpty)
    let log = try fixture.shell("insula log --json")
    #expect(log.output.contains(#""ending":"memory""#) && log.output.contains(#""limit":"memory""#), "\(log)")
    let enough = try run(fixture, cgroup, app.replacing("N", with: "50"))
    #expect(enough.output == "all\n" && enough.errors.isEmpty, "\(enough)")
    // What is only reserved costs nothing, and what several processes have counts together.
    let reserved = try run(
      fixture, cgroup, "--memory 128M $APP -- python3 -c 'import mmap; mmap.mmap(-1, 1 << 30); print(7)'")
    #expect(reserved.output == "7\n", "\(reserved)")
    let several = try run(
      fixture, cgroup,
      "--memory 128M $APP -- sh -c 'for i in 1 2 3; do python3 -c \"import time; "
        + "kept = bytearray(60 << 20); time.sleep(3)\" & done; wait; echo goes on'")
    #expect(several.output == "goes on\n" && several.errors.contains("has ended processes of"), "\(several)")
  }

  @Test func processesAndCPUAreThoseOfTheApp() throws {
    let fixture = try RunFixture()
    let cgroup = try DelegatedCgroup(owner: fixture.user)
    let forks = """
      import os, time
      n = 0
      try:
        while n < 100:
          if os.fork() == 0:
            time.sleep(30)
          n += 1
      except OSError:
        print(n, flush=True)
        os._exit(0)
      """
    let forked = try run(fixture, cgroup, "--processes 6 $APP -- python3 -c \"\(forks)\"")
    #expect(forked.output == "5\n" && forked.errors.contains("wanted more than its 6 processes"), "\(forked)")
    let busy = """
      import time
      start = time.monotonic()
      while time.monotonic() - start < 2: pass
      print(time.process_time())
      """
    let shared = try run(fixture, cgroup, "--cpu 20% $APP -- python3 -c \"\(busy)\"")
    #expect((0.1...1.5).contains(Double(shared.output.dropLast()) ?? 0), "\(shared)")
    #expect(try cgroup.leftovers().isEmpty)
  }

  @Test func nothingStaysWhoeverEndsIt() throws {
    let fixture = try RunFixture()
    let cgroup = try DelegatedCgroup(owner: fixture.user)
    for signal in ["TERM", "HUP", "KILL"] {
      let path = try script(fixture, cgroup, "--memory 128M $APP -- sleep 100")
      let ended = try fixture.shell(
        """
        sh \(path) & until [ -d \(cgroup.path)/insula-app-$! ] || [ $((w+=1)) -gt 2400 ]; do sleep 0.05; done
        running 1; sleep 0.3; insula ps; kill -\(signal) $!; wait; running 0
        """, as: RunFixture.root)
      #expect(ended.output.contains("128 MiB of memory"), "\(signal): \(ended)")
      #expect(try cgroup.leftovers().isEmpty == (signal != "KILL"), "\(signal)")
    }
    // Where systemd does not take all of it away, the kernel lets nobody in before this; then the next one
    // clears what is left.
    let next = try fixture.shell(
      """
      echo -memory > \(cgroup.path)/cgroup.subtree_control
      sh \(script(fixture, cgroup, "--memory 128M $APP -- true"))
      """, as: RunFixture.root)
    #expect(next.status == 0 && next.errors.isEmpty, "\(next)")
    #expect(try cgroup.leftovers().isEmpty)
  }

  @Test func whoIsNotAloneHasTheLimitsOfProcesses() throws {
    let fixture = try RunFixture()
    let cgroup = try DelegatedCgroup(owner: fixture.user)
    let alone = try run(fixture, cgroup, "--memory 128M $APP -- sh -c 'ulimit -v'")
    #expect(alone.output == "unlimited\n", "\(alone)")
    let together = try fixture.shell(
      """
      echo $$ > \(cgroup.path)/cgroup.procs
      insula run --memory 128M --user \(fixture.user.name) $APP -- sh -c 'ulimit -v'
      cat \(cgroup.path)/cgroup.subtree_control; echo $$ > /sys/fs/cgroup/cgroup.procs
      """, as: RunFixture.root)
    #expect(together.output.hasPrefix("131072\n") && !together.output.contains("memory"), "\(together)")
    #expect(try cgroup.leftovers().isEmpty)
  }
}

/// A cgroup that root gives a user, as a service manager would.
private final class DelegatedCgroup {
  let path: String
  private static let root = "/sys/fs/cgroup"

  static var isPossible: Bool {
    let active = FD.text(of: root + "/cgroup.subtree_control", limit: 4096)?.split(separator: " ") ?? []
    return MountedStore.isPossible
      && ["memory", "pids", "cpu"].allSatisfy { word in active.contains { $0.hasPrefix(word) } }
  }

  init(owner: Account) throws {
    path = "\(Self.root)/insula-test-\(getpid())-\(UInt32.random(in: 0 ... .max))"
    guard mkdir(path, 0o755) == 0 else { throw Errno.last }
    for name in ["", "/cgroup.procs", "/cgroup.subtree_control", "/cgroup.threads"] {
      guard chown(path + name, owner.uid, owner.gid) == 0 else { throw Errno.last }
    }
  }

  func leftovers() throws -> [String] {
    let directory = try TemporaryDirectory.open(path)
    return try directory.fd.entries().map { String(decoding: $0.name, as: UTF8.self) }
      .filter { $0.hasPrefix("insula-") }
  }

  deinit {
    for name in (try? leftovers()) ?? [] { rmdir(path + "/" + name) }
    rmdir(path)
  }
}
