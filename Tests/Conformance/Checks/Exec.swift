// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

extension Trial {
  /// Runs a program and gives its exit status, or 200 and the errno of an execve that failed.
  fileprivate func run(_ path: String) throws -> Int32 {
    let pid = try ok(clx_fork())
    if pid == 0 {
      execve(path, [strdup(path), nil], [nil])
      _exit(200 &+ errno)
    }
    var status: Int32 = 0
    try ok(waitpid(pid, &status, 0))
    return clx_exit_status(status)
  }

  /// A copy of true(1) that may be run.
  fileprivate func program(_ path: String, mode: mode_t = 0o755) throws {
    guard let source = tool("true") else { throw Skip(reason: "there is no program true") }
    let bytes = try contents(source)
    let fd = try open(path, O_WRONLY | O_CREAT | O_EXCL, mode)
    try equal(try ok(write(fd, bytes, bytes.count)), bytes.count, "bytes written")
    try ok(close(fd))
  }
}

func execution(_ check: inout Checks) {
  check("exec.a-binary") { t in
    try t.program("prog")
    try t.equal(try t.run("./prog"), 0, "status")
  }
  check("exec.a-script") { t in
    try t.make("script", "#!/bin/sh\nexit 7\n", mode: 0o755)
    try t.equal(try t.run("./script"), 7, "status")
  }
  check("exec.a-script-whose-interpreter-is-here-too") { t in
    guard let shell = tool("sh") else { throw Skip(reason: "there is no program sh") }
    _ = try t.sh("cp \(shell) interpreter")
    _ = try t.sh("printf '#!%s/interpreter\\nexit 9\\n' \"$PWD\" > script && chmod 755 script")
    try t.equal(try t.run("./script"), 9, "status")
  }
  check("exec.without-the-bit-is-EACCES") { t in
    try t.program("prog", mode: 0o644)
    try t.equal(try t.run("./prog"), 200 + EACCES, "status")
    try t.ok(chmod("prog", 0o755))
    try t.equal(try t.run("./prog"), 0, "status after chmod")
    try t.ok(chmod("prog", 0o644))
    try t.equal(try t.run("./prog"), 200 + EACCES, "status after chmod back")
  }
  check("exec.of-a-directory-is-EACCES-and-of-nothing-ENOENT") { t in
    try t.dir("dir")
    try t.equal(try t.run("./dir"), 200 + EACCES, "status")
    try t.equal(try t.run("./missing"), 200 + ENOENT, "status")
  }
  check("exec.of-text-without-an-interpreter-is-ENOEXEC") { t in
    try t.make("file", "no program\n", mode: 0o755)
    try t.equal(try t.run("./file"), 200 + ENOEXEC, "status")
  }
  check("exec.needs-execute-but-not-read", .user) { t in
    try t.program("prog")
    try t.ok(chmod("prog", 0o111))
    try t.fails(EACCES, clx_open("prog", O_RDONLY, 0))
    try t.equal(try t.run("./prog"), 0, "status")
  }
  check("exec.by-others-needs-their-bit", .several) { t in
    try t.as(t.user) {
      try t.program("prog")
      try t.ok(chmod("prog", 0o754))
    }
    try t.as(t.user) { try t.equal(try t.run("./prog"), 0, "status") }
    try t.as(t.peer) { try t.equal(try t.run("./prog"), 200 + EACCES, "status of a stranger") }
    try t.as(t.peer.joining(t.user.gid)) { try t.equal(try t.run("./prog"), 0, "status of a member") }
  }
  check("exec.writing-a-running-binary-is-ETXTBSY", tools: ["sleep"]) { t in
    guard let source = tool("sleep") else { return }
    _ = try t.sh("cp \(source) prog")
    let pid = try t.ok(clx_fork())
    if pid == 0 {
      execve("./prog", [strdup("sleep"), strdup("20"), nil], [nil])
      _exit(1)
    }
    // Until the child has left this program behind, its /proc/PID/exe is still ours.
    var target = [CChar](repeating: 0, count: 4096)
    for _ in 0..<2000 {
      let length = readlink("/proc/\(pid)/exe", &target, 4096)
      let path = String(decoding: target.prefix(max(0, length)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
      if path.hasSuffix("/prog") { break }
      usleep(1000)
    }
    defer {
      kill(pid, SIGKILL)
      waitpid(pid, nil, 0)
    }
    try t.fails(ETXTBSY, clx_open("prog", O_WRONLY, 0))
    try t.fails(ETXTBSY, clx_open("prog", O_RDWR | O_TRUNC, 0))
    try t.fails(ETXTBSY, truncate("prog", 0))
    try t.ok(clx_open("prog", O_RDONLY, 0))
    try t.ok(unlink("prog"))
  }
  check("exec.a-binary-open-for-writing-is-ETXTBSY") { t in
    try t.program("prog")
    let fd = try t.open("prog", O_WRONLY)
    try t.equal(try t.run("./prog"), 200 + ETXTBSY, "status")
    try t.ok(close(fd))
    try t.equal(try t.run("./prog"), 0, "status after close")
  }
  check("exec.a-program-replaced-by-rename") { t in
    try t.make("prog", "#!/bin/sh\nexit 1\n", mode: 0o755)
    try t.equal(try t.run("./prog"), 1, "status")
    try t.make("next", "#!/bin/sh\nexit 2\n", mode: 0o755)
    try t.ok(rename("next", "prog"))
    try t.equal(try t.run("./prog"), 2, "status")
  }
  check("exec.just-written-and-run-many-times") { t in
    for round in 1...20 as ClosedRange<Int32> {
      try t.make("prog\(round)", "#!/bin/sh\nexit \(round)\n", mode: 0o755)
      try t.equal(try t.run("./prog\(round)"), round, "status")
    }
  }
  check("exec.suid-takes-effect-unless-mounted-nosuid", .several, tools: ["id"]) { t in
    var info = statvfs()
    try t.ok(statvfs(".", &info))
    guard info.f_flag & UInt(ST_NOSUID) == 0 else { throw t.lacking("mounted nosuid") }
    guard let source = tool("id") else { return }
    _ = try t.sh("cp \(source) prog")
    try t.ok(chown("prog", t.user.uid, t.user.gid))
    try t.ok(chmod("prog", 0o4755))
    try t.as(t.peer) { try t.equal(try t.sh("./prog -u"), "\(t.user.uid)\n", "effective id") }
  }
  check("exec.fexecve-of-a-descriptor") { t in
    try t.program("prog")
    let fd = try t.open("prog", O_RDONLY)
    let pid = try t.ok(clx_fork())
    if pid == 0 {
      fexecve(fd, [strdup("prog"), nil], [nil])
      _exit(200 &+ errno)
    }
    var status: Int32 = 0
    try t.ok(waitpid(pid, &status, 0))
    try t.equal(clx_exit_status(status), 0, "status")
  }
}
