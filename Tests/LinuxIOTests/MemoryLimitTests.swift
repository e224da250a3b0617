// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// How much memory there is for a process in a control group.
struct MemoryLimitTests {
  private static let version2 = ["memory.max", "memory.high"]

  @Test func pathsAreThoseOfTheController() {
    let hybrid = """
      12:cpu,cpuacct:/a
      7:memory:/docker/one
      3:memoryless:/no
      1:name=systemd:/init.scope
      0::/system.slice/insula.service
      """
    #expect(MemoryLimit.path(hybrid, controller: nil) == ["system.slice", "insula.service"])
    #expect(MemoryLimit.path(hybrid, controller: "memory") == ["docker", "one"])
    #expect(MemoryLimit.path(hybrid, controller: "pids") == [])
    #expect(MemoryLimit.path("0::/", controller: nil) == [])
    // Outside of our namespace.
    #expect(MemoryLimit.path("0::/../other", controller: nil) == [])
    #expect(MemoryLimit.path("nonsense\n\n0:\n", controller: nil) == [])
    // A name may have a colon.
    #expect(MemoryLimit.path("0::/a:b/c", controller: nil) == ["a:b", "c"])
  }

  @Test func leastOfAllAncestorsCounts() throws {
    let temporary = try TemporaryDirectory()
    let root = try FD.cwd.openFollowing(temporary.path, pathOnly | O_DIRECTORY)
    func least(_ path: [Substring]) -> Int? {
      MemoryLimit.least(Self.version2, in: root.fd, along: path)
    }
    #expect(least([]) == nil && least(["missing"]) == nil)
    try temporary.makeDirectory("outer")
    try temporary.makeDirectory("outer/inner")
    try temporary.write("max\n", to: "outer/memory.max")
    try temporary.write("max\n", to: "outer/memory.high")
    #expect(least(["outer", "inner"]) == nil)
    try temporary.write("268435456\n", to: "outer/memory.max")
    #expect(least(["outer", "inner"]) == 268_435_456 && least(["outer"]) == 268_435_456)
    try temporary.write("134217728\n", to: "outer/inner/memory.high")
    #expect(least(["outer", "inner"]) == 134_217_728 && least(["outer"]) == 268_435_456)
    // The root of a container has its own.
    try temporary.write("67108864\n", to: "memory.max")
    #expect(least(["outer", "inner"]) == 67_108_864 && least(["not", "there"]) == 67_108_864)
    // What is no limit counts for nothing, and no link is followed.
    for text in ["0\n", "-5\n", "", "99999999999999999999\n", "much\n"] {
      try temporary.write(text, to: "outer/inner/memory.max")
      #expect(least(["outer", "inner"]) == 67_108_864)
    }
    try temporary.makeDirectory("elsewhere")
    try temporary.write("4096\n", to: "elsewhere/memory.max")
    #expect(symlink("elsewhere", temporary.appending("link")) == 0)
    #expect(least(["link"]) == 67_108_864 && least(["elsewhere"]) == 4096)
  }

  /// Version 1 has one file, and a number for "no limit" that is larger than every machine.
  @Test func firstVersionIsReadToo() throws {
    let temporary = try TemporaryDirectory()
    let root = try FD.cwd.openFollowing(temporary.path, pathOnly | O_DIRECTORY)
    try temporary.makeDirectory("docker")
    try temporary.makeDirectory("docker/one")
    try temporary.write("9223372036854771712\n", to: "memory.limit_in_bytes")
    try temporary.write("9223372036854771712\n", to: "docker/one/memory.limit_in_bytes")
    func least() -> Int? {
      MemoryLimit.least(["memory.limit_in_bytes"], in: root.fd, along: ["docker", "one"])
    }
    #expect(least() == 9_223_372_036_854_771_712)
    try temporary.write("536870912\n", to: "docker/memory.limit_in_bytes")
    #expect(least() == 536_870_912)
    try temporary.write("268435456\n", to: "docker/one/memory.limit_in_bytes")
    #expect(least() == 268_435_456)
  }

  /// In a control group of this machine, of whichever version it has: a process in a group within a limited
  /// one has the limit of that.
  @Test func limitOfARealGroupCounts() throws {
    let script = """
      own() { sed -n "$1" /proc/self/cgroup; }
      if path=$(own 's/^[0-9]*:\\([^:]*,\\)*memory\\(,[^:]*\\)*:\\(.*\\)$/\\3/p') && [ -n "$path" ]; then
        group=/sys/fs/cgroup/memory$path file=memory.limit_in_bytes
      else
        group=/sys/fs/cgroup$(own 's/^0:://p') file=memory.max
      fi
      outer=$group/insula-limit-$$
      mkdir "$outer" "$outer/inner" 2>/dev/null && echo 268435456 2>/dev/null >"$outer/$file" || {
        rmdir "$outer/inner" "$outer" 2>/dev/null; echo none; exit 0
      }
      sh -c 'echo 0 >"$0/cgroup.procs" && exec sleep 60' "$outer/inner" </dev/null >/dev/null 2>&1 & child=$!
      echo "$outer $child"
      """
    let made = try Program.run(["sh", "-c", script])
    let words = made.output.split(whereSeparator: \.isWhitespace)
    guard words.count == 2, let child = Int32(words[1]) else {
      return print("skipped: no control group with a limit of memory can be made here: \(made)")
    }
    let outer = String(words[0])
    defer {
      kill(child, SIGKILL)
      _ = eventually { rmdir(outer + "/inner") == 0 || errno == ENOENT }
      rmdir(outer)
    }
    #expect(eventually { MemoryLimit.of("\(child)") == 268_435_456 }, "\(MemoryLimit.of("\(child)"))")
    #expect(MemoryLimit.of("self") > 268_435_456)
  }

  @Test func ofThisProcessIsWithinTheMachines() {
    let machine = sysconf(Int32(_SC_PHYS_PAGES)) * sysconf(Int32(_SC_PAGESIZE))
    #expect(MemoryLimit.ofThisProcess > 0 && MemoryLimit.ofThisProcess <= machine)
  }

  /// What all users' requests may take follows it.
  @Test func budgetIsASixteenth() {
    func pool(_ memory: Int) -> Int { Budget.Limits(descriptors: 64, memory: memory)[.memory] }
    #expect(pool(4 << 30) == 256 << 20)
    #expect(pool(512 << 20) == 32 << 20)
    #expect(pool(64 << 20) == 16 << 20 && pool(0) == 16 << 20)
    #expect(pool(.max) == 1 << 30)
  }
}
