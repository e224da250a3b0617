// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// Limits of apps, as the kernel keeps them for processes; ``RunCgroupTests`` has those of cgroups.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct RunLimitTests {
  /// Takes what it can of something, one after the other, and prints how much it got, and why not more.
  private static let glutton = """
    import os, sys, time
    kept, what = [], sys.argv[1]
    try:
        while len(kept) < 3000:
            if what == 'memory': kept.append(bytearray(1 << 20))
            elif what == 'shared':
                import mmap
                kept.append(mmap.mmap(-1, 1 << 20))
            elif what == 'files': kept.append(open('/dev/null'))
            elif what == 'shm':
                with open('/dev/shm/file', 'ab') as file: file.write(bytes(1 << 20))
                kept.append(1)
            else:
                pid = os.fork()
                if pid == 0:
                    time.sleep(60)
                    os._exit(0)
                kept.append(pid)
    except (OSError, MemoryError) as error:
        print(len(kept), type(error).__name__, getattr(error, 'errno', None))
    else:
        print(len(kept), 'all')
    """

  private func glutton(_ fixture: RunFixture, _ what: String, _ options: String) throws -> ProgramResult {
    try fixture.shell(
      "insula run \(options) $APP -- python3 -c \"$(cat <<'END'\n\(Self.glutton)\nEND\n)\" \(what)")
  }

  private func count(_ result: ProgramResult) -> Int {
    Int(result.output.split(separator: " ").first ?? "") ?? -1
  }

  @Test(arguments: [false, true])
  func nobodyGetsMoreThanTheLimit(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let limits = "--memory 128M --processes 7 --files 50"
    for what in ["memory", "shared"] {
      let memory = try glutton(fixture, what, limits)
      #expect((50...127).contains(count(memory)), "\(what): \(memory.output)\(memory.errors)")
    }
    let files = try glutton(fixture, "files", limits)
    #expect(files.output.hasSuffix("OSError 24\n") && (40...48).contains(count(files)), "\(files.output)")
    let processes = try glutton(fixture, "processes", limits)
    // The first one is one of them.
    #expect(processes.output == "6 BlockingIOError 11\n", "\(processes.output)\(processes.errors)")
    let shm = try glutton(fixture, "shm", limits)
    #expect(shm.output.hasSuffix("OSError 28\n") && (120...128).contains(count(shm)), "\(shm.output)")
    // Without limits there is more.
    for what in ["memory", "shared", "shm"] {
      #expect(count(try glutton(fixture, what, "--files 50")) > 1000)
    }
    #expect(count(try glutton(fixture, "processes", "--memory 512M")) > 100)
  }

  /// What the user runs elsewhere is not counted, and not held up.
  @Test func otherProcessesOfTheUserDontCount() throws {
    let fixture = try RunFixture()
    let result = try fixture.shell(
      """
      for i in 1 2 3 4 5 6 7 8 9 10; do sleep 100 & others="$others $!"; done
      seen=$(mktemp)
      insula run $APP -- sh -c 'while [ ! -e Documents/end ] && [ $((w+=1)) -lt 12000 ]; do
        echo; sleep 0.01; done' > "$seen" &
      app=$!; until [ -s "$seen" ] || [ $((w+=1)) -gt 2400 ]; do sleep 0.05; done
      insula run --processes 4 $APP -- sh -c 'for i in 1 2 3 4 5 6; do sleep 3 & done; wait; echo more'
      before=$(wc -l < "$seen")
      until [ $(wc -l < "$seen") -gt $((before + 10)) ] || [ $((w+=1)) -gt 2400 ]; do sleep 0.05; done
      insula run --processes 4 $APP -- sh -c 'sleep 0.1 & sleep 0.1 & sleep 0.1 & wait; echo four'
      touch "$DATA/Documents/end"; wait $app; echo $?; kill $others; rm "$seen"
      """)
    let lines = result.output.split(separator: "\n").map(String.init)
    #expect(!lines.contains("more") && lines.contains("four") && lines.last == "0", "\(result)")
    #expect(result.errors.contains("fork"), "\(result.errors)")
  }

  @Test func appCantRaiseItsLimits() throws {
    let fixture = try RunFixture()
    let script = """
      import ctypes, os, resource
      libc = ctypes.CDLL(None, use_errno=True)
      names = ['RLIMIT_AS', 'RLIMIT_NPROC', 'RLIMIT_NOFILE']
      print([resource.getrlimit(getattr(resource, name)) for name in names])
      for name in names:
          number = getattr(resource, name)
          soft, hard = resource.getrlimit(number)
          for more in [(hard + 1, hard + 1), (soft, hard + 1), (-1, -1)]:
              try:
                  resource.setrlimit(number, more)
                  print('raised', name, more)
              except (PermissionError, ValueError): pass
          for pid in [1, os.getppid()]:
              try:
                  resource.prlimit(pid, number, (-1, -1))
                  if resource.prlimit(pid, number) == (-1, -1) and os.getppid() != 1: print('raised of', pid)
              except (PermissionError, ValueError): pass
      for flags in [0x10000000, 0x02000000]:
          if libc.unshare(flags) == 0: print('namespace', hex(flags))
      for path in ['/sys/fs/cgroup', '/sys/fs/cgroup/cgroup.procs', '/proc/1/limits', '/proc/self/limits']:
          try:
              open(path, 'w').write('Max processes 100 100')
              print('written', path)
          except OSError: pass
      print(sorted(os.listdir('/')).count('sys'))
      """
    let result = try fixture.shell(
      "insula run --memory 256M --processes 9 --files 60 $APP -- python3 -c "
        + "\"$(cat <<'END'\n\(script)\nEND\n)\"")
    let bytes = 256 << 20
    #expect(
      result.output == "[(\(bytes), \(bytes)), (10, 10), (60, 60)]\n0\n", "\(result.output)\(result.errors)")
  }

  @Test func bundleHasLimitsAndWhoRunsItHasTheLastWord() throws {
    let fixture = try RunFixture()
    try fixture.install(
      "Bounded",
      info: "<key>InsulaLimits</key><dict><key>Memory</key><string>256M</string>"
        + "<key>OpenFiles</key><integer>64</integer><key>CPU</key><string>50%</string></dict>")
    let show = "Bounded -- sh -c 'ulimit -v; ulimit -n'"
    let own = try fixture.shell("insula run \(show)")
    #expect(own.output == "262144\n64\n", "\(own.errors)")
    #expect(own.errors.contains("can't limit the CPU share of org.example.bounded"), "\(own.errors)")
    let chosen = try fixture.shell("insula run --memory none --files 128 --cpu none \(show)")
    #expect(chosen.output == "unlimited\n128\n" && chosen.errors.isEmpty, "\(chosen)")
    let someone = try fixture.shell(
      "insula run --memory none --files 128 --cpu=none --user \(fixture.user.name) \(show)",
      as: RunFixture.root)
    #expect(someone.output == "unlimited\n128\n", "\(someone)")
    let refused = try fixture.shell("insula run --cpu 20% \(show)")
    #expect(
      refused.status == 1 && refused.output.isEmpty && refused.errors.contains("leave out --cpu"),
      "\(refused)")
    // Nobody gets more by it than they have.
    #expect(try fixture.shell("ulimit -n 50; insula run --cpu none \(show)").output == "262144\n50\n")
  }

  @Test func usageAndLimitsAreListed() throws {
    let fixture = try RunFixture()
    let work = "import time\nkept = bytearray(40 << 20)\nwhile time.process_time() < 0.3: pass\n"
    let result = try fixture.shell(
      """
      insula run --memory 256M --processes 9 $APP -- python3 -c "$WORK
      open('Documents/ready', 'w')
      time.sleep(60)" & first=$!
      insula run $APP -- sh -c 'sleep 60 & wait' & second=$!
      until [ -e "$DATA/Documents/ready" ] || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      running 2; sleep 0.3
      insula ps; insula ps --json; kill $first $second; wait
      """.replacing("$WORK", with: work))
    let lines = result.output.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
    let columns = ["IDENTIFIER", "USER", "PID", "MEMORY", "CPU", "PROCESSES", "REQUESTS", "LIMITS"]
    #expect(lines[0].starts(with: columns))
    let limited = try #require(lines.first { $0.contains("256") }, "\(result)")
    #expect((Int(limited[3]) ?? 0) > 40 && limited[4] == "MB" && limited[5] >= "0:00.20", "\(limited)")
    #expect(result.output.contains("256 MiB of memory, 9 processes"), "\(result.output)")
    let free = try #require(lines.dropFirst().first { $0.contains("-") }, "\(result)")
    #expect(free[6] == "2" && limited[6] == "1", "\(result.output)")
    #expect(
      result.output.includes("\"memory\" : 268435456") && result.output.includes("\"openFiles\"") == false)
  }

  /// The message of whoever ends is all that there is without a cgroup.
  @Test func signalAfterALimitIsTold() throws {
    let fixture = try RunFixture()
    let ended = try fixture.shell("insula run --memory 64M $APP -- sh -c 'kill -ABRT $$'")
    #expect(ended.status == 134 && ended.errors.contains("may have 64 MiB of memory each"), "\(ended)")
    #expect(try fixture.shell("run sh -c 'kill -ABRT $$'").errors.isEmpty)
    #expect(try fixture.shell("insula run --memory 64M $APP -- sh -c 'exit 3'").errors.isEmpty)
  }
}
