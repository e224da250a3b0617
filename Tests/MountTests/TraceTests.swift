// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// `insula trace` counts what a command and its children request, and nobody else's.
@Suite(.enabled(if: MountedStore.isPossible && KernelRelease.own >= KernelRelease(6, 5)))
struct TraceTests {
  private func mounted(rootless: Bool = false) throws -> MountedStore {
    let mounted = try MountedStore(asNobody: rootless)
    try mounted.mount()
    try FileManager.default.createDirectory(
      atPath: mounted.backing("Users/Shared/work"), withIntermediateDirectories: false)
    #expect(chmod(mounted.backing("Users/Shared/work"), 0o777) == 0)
    return mounted
  }

  /// Traces a shell's commands in the work directory; the counts by kind.
  private func trace(
    _ commands: String, in mounted: MountedStore, before: [String] = []
  ) throws -> (result: ProgramResult, own: [String: Int]) {
    let place = mounted.path("Users/Shared/work")
    let result = try mounted.run(
      ["trace", "--json", "--store", mounted.point, "--", "sh", "-c", "cd \(place); \(commands)"],
      before: before)
    let report = try? JSONSerialization.jsonObject(with: Data(result.errors.utf8)) as? [String: Any]
    let own = report?["own"] as? [String: [String: Any]] ?? [:]
    return (result, own.compactMapValues { $0["count"] as? Int })
  }

  @Test(arguments: [false, true])
  func onlyTheTreeIsCounted(rootless: Bool) throws {
    let mounted = try mounted(rootless: rootless)
    let others = Process()
    others.executableURL = URL(fileURLWithPath: "/bin/sh")
    let user = mounted.owner.map { "setpriv --reuid=\($0.uid) --regid=\($0.gid) --clear-groups" } ?? ""
    let loop = "cd '\(mounted.path("Users/Shared/work"))'; while :; do mkdir other; rmdir other; done"
    others.arguments = ["-c", "exec \(user) sh -c \"\(loop)\""]
    others.standardError = FileHandle.nullDevice
    try Program.withSignalsUnblocked { try others.run() }
    defer {
      kill(others.processIdentifier, SIGKILL)
      others.waitUntilExit()
    }
    // A child, and one that has lost its parent.
    let traced = try trace(
      "mkdir a; (mkdir b); (sh -c 'sleep 0.2; mkdir c' &); "
        + "until [ -d c ] || [ $((w+=1)) -gt 2400 ]; do sleep 0.05; done; rmdir a",
      in: mounted)
    #expect(traced.result.status == 0, "\(traced.result.errors)")
    #expect(traced.own["MKDIR"] == 3 && traced.own["RMDIR"] == 1, "\(traced.own)")
  }

  /// Others may write to the directory of the report: a link there, or a file of somebody else's, is left as
  /// it is.
  @Test(arguments: [false, true]) func reportGoesToAFileOfOnesOwn(rootless: Bool) throws {
    let mounted = try mounted(rootless: rootless)
    let owner = mounted.owner?.uid ?? 0
    let place = try mounted.temporary.makeDirectory("reports", mode: 0o777)
    func trace(to path: String) throws -> ProgramResult {
      try mounted.run("trace", "-o", path, "--store", mounted.point, "--", "true")
    }
    for name in ["target", "own", "linked", "others"] {
      try mounted.temporary.write(
        "as it was, and longer than any report could be made to look\n", to: "reports/\(name)")
      #expect(chown(place + "/" + name, name == "others" ? 1 : owner, 0) == 0)
    }
    #expect(chmod(place + "/others", 0o666) == 0)
    #expect(symlink("target", place + "/link") == 0 && link(place + "/linked", place + "/second") == 0)
    #expect(symlink("new", place + "/dangling") == 0 && mkfifo(place + "/pipe", 0o666) == 0)
    #expect(chmod(place + "/pipe", 0o666) == 0 && chown(place + "/pipe", 1, 0) == 0)
    for (name, words) in [
      ("link", "it is a symbolic link"), ("dangling", "it is a symbolic link"), ("linked", "hard links"),
      ("others", "a file of somebody else's"), ("pipe", "a pipe of somebody else's"),
    ] {
      let result = try trace(to: place + "/" + name)
      #expect(result.status == 1 && result.errors.contains(words), "\(name): \(result)")
    }
    let directory = try trace(to: place)
    #expect(directory.status == 1 && directory.errors.contains("it is a directory"), "\(directory)")
    for name in ["target", "linked", "others"] {
      #expect(mounted.temporary.text(of: "reports/\(name)")?.hasPrefix("as it was") == true, "\(name)")
    }
    #expect(access(place + "/new", F_OK) != 0)
    for name in ["own", "fresh"] {
      let result = try trace(to: place + "/" + name)
      #expect(result.status == 0 && result.output.isEmpty && result.errors.isEmpty, "\(result)")
      let text = try #require(mounted.temporary.text(of: "reports/\(name)"))
      #expect(text.contains("in all") && !text.contains("as it was"))
    }
  }

  /// Whoever made a link in the middle of a path would decide where a file goes: also `identity export`, and
  /// `new-app`.
  @Test(arguments: [false, true]) func nothingIsMadeBehindAnothersLink(rootless: Bool) throws {
    let mounted = try mounted(rootless: rootless)
    let owner = mounted.owner?.uid ?? 0
    let target = try mounted.temporary.makeDirectory("target")
    try mounted.temporary.write("as it was\n", to: "target/precious")
    for path in [target, target + "/precious"] { #expect(chown(path, owner, 0) == 0) }
    let made = try mounted.run("identity", "new", "tester")
    try #require(made.status == 0, "\(made)")
    func commands(_ place: String) -> [[String]] {
      [
        ["trace", "-o", "\(place)/counts", "--store", mounted.point, "--", "true"],
        ["trace", "-o", "\(place)/precious", "--store", mounted.point, "--", "true"],
        ["identity", "export", "tester", "--certificate", "\(place)/root.pem"], ["new-app", "Note", place],
      ]
    }
    for uid in [54_321, 54_322] as [uid_t] {
      let place = try mounted.temporary.makeDirectory("\(uid)")
      #expect(symlink(target, place + "/out") == 0 && lchown(place + "/out", uid, uid) == 0)
      #expect(chown(place, uid, uid) == 0)
      for words in commands(place + "/out") {
        let refused = try mounted.run(words)
        #expect(refused.status == 1 && refused.errors.contains("link of another user's"), "\(refused)")
      }
    }
    #expect(mounted.temporary.text(of: "target/precious") == "as it was\n")
    #expect(try FileManager.default.contentsOfDirectory(atPath: target) == ["precious"])
    // One's own link, and one of root's, lead where they lead.
    let own = mounted.temporary.appending("own")
    #expect(symlink(target, own) == 0 && lchown(own, owner, 0) == 0)
    let root = mounted.temporary.appending("roots")
    #expect(symlink(own, root) == 0)
    for words in commands(root) {
      let result = try mounted.run(words)
      #expect(result.status == 0, "\(result)")
    }
    #expect(mounted.temporary.text(of: "target/precious")?.contains("in all") == true)
  }

  /// Root's key signs nothing, and root's files go nowhere, to which another user's link leads.
  @Test(arguments: [false, true]) func nothingIsChangedBehindAnothersLink(rootless: Bool) throws {
    let mounted = try mounted(rootless: rootless)
    let owner = mounted.owner?.uid ?? 0
    if rootless {
      try #require(try mounted.run("user", "add", "nobody", "--store", mounted.store).status == 0)
    }
    let target = try mounted.temporary.makeDirectory("target")
    #expect(chown(target, owner, 0) == 0)
    try #require(try mounted.run("identity", "new", "tester").status == 0)
    try #require(try mounted.run("new-app", "Note", target).status == 0)
    for name in ["apps", "system"] {
      let made = try mounted.temporary.makeDirectory("target/\(name)")
      #expect(chown(made, owner, 0) == 0)
    }
    func all() throws -> String { try Program.run(["find", target, "-printf", "%p %T@ %C@\\n"]).output }
    let before = try all()
    #expect(before.contains("Note.app/Contents/Info.plist"))
    func commands(_ place: String) -> [[String]] {
      [
        ["sign", "\(place)/Note.app"], ["system", "sign", "\(place)/system"], ["index", "\(place)/apps"],
        ["volume", "create", "vault", "--encrypted", "--in", "\(place)/new/vault", "--store", mounted.point],
        ["backup", "export", "\(place)/copy", "--store", mounted.point],
      ]
    }
    for uid in [54_321, 54_322] as [uid_t] {
      let place = try mounted.temporary.makeDirectory("\(uid)")
      #expect(symlink(target, place + "/out") == 0 && lchown(place + "/out", uid, uid) == 0)
      #expect(chown(place, uid, uid) == 0)
      // Root has no home of its own there.
      for words in commands(place + "/out") where rootless || words[0] != "backup" {
        let refused = try mounted.run(words)
        #expect(refused.status == 1 && refused.errors.contains("link of another user's"), "\(refused)")
      }
    }
    #expect(try all() == before)
    let own = mounted.temporary.appending("own")
    #expect(symlink(target, own) == 0 && lchown(own, owner, 0) == 0)
    for words in commands(own).prefix(3) {
      let result = try mounted.run(words)
      #expect(result.status == 0, "\(result)")
    }
    #expect(FileManager.default.fileExists(atPath: target + "/Note.app/Contents/_CodeSignature"))
  }

  /// What other programs take for a file to write to is one here, too.
  @Test(arguments: [false, true]) func reportGoesToDevicesAndPipes(rootless: Bool) throws {
    let mounted = try mounted(rootless: rootless)
    func trace(to path: String) throws -> ProgramResult {
      try mounted.run("trace", "-o", path, "--store", mounted.point, "--", "true")
    }
    let nowhere = try trace(to: "/dev/null")
    #expect(nowhere.status == 0 && nowhere.output.isEmpty && nowhere.errors.isEmpty, "\(nowhere)")
    for path in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
      let result = try trace(to: path)
      #expect(result.status == 0 && result.output.contains("in all") && result.errors.isEmpty, "\(result)")
    }
    let errors = try trace(to: "/dev/stderr")
    #expect(errors.status == 0 && errors.errors.contains("in all") && errors.output.isEmpty, "\(errors)")
    let closed = try trace(to: "/dev/fd/99")
    #expect(closed.status == 1 && closed.errors.contains("Bad file descriptor"), "\(closed)")
    let pipe = mounted.temporary.appending("pipe")
    #expect(mkfifo(pipe, 0o600) == 0 && chown(pipe, mounted.owner?.uid ?? 0, 0) == 0)
    let script = "timeout 60 cat \"$0\" & \"$@\"; wait $!"
    let read = try mounted.run(
      ["trace", "-o", pipe, "--store", mounted.point, "--", "true"], before: ["sh", "-c", script, pipe])
    #expect(read.status == 0 && read.output.contains("in all"), "\(read)")
  }

  @Test func statusIsTheCommands() throws {
    let mounted = try mounted()
    #expect(try trace("exit 3", in: mounted).result.status == 3)
    #expect(try trace("kill -TERM $$", in: mounted).result.status == 128 + SIGTERM)
    let missing = try mounted.run("trace", "--store", mounted.point, "/nonexistent/command")
    #expect(missing.status == 127 && missing.errors.contains("/nonexistent/command"), "\(missing.errors)")
    let elsewhere = try mounted.run("trace", "--store", "/nonexistent", "true")
    #expect(elsewhere.status == 6 && elsewhere.errors.contains("no insula store"), "\(elsewhere.errors)")
  }

  @Test func tableGoesToTheFile() throws {
    let mounted = try mounted()
    let file = mounted.temporary.appending("counts")
    let result = try mounted.run(
      "trace", "-o", file, "--store", mounted.point, "--", "mkdir", mounted.path("Users/Shared/work/x"))
    #expect(result.status == 0 && result.errors.isEmpty && result.output.isEmpty, "\(result)")
    let table = try #require(mounted.temporary.text(of: "counts"))
    #expect(table.contains("MKDIR") && table.contains("in all"), "\(table)")
    let refused = try mounted.run(
      "trace", "-o", "/nonexistent/counts", "--store", mounted.point, "--", "mkdir",
      mounted.path("Users/Shared/work/y"))
    #expect(refused.ending == .failed && refused.errors.contains("/nonexistent/counts"), "\(refused)")
    #expect(!FileManager.default.fileExists(atPath: mounted.path("Users/Shared/work/y")))
  }

  /// Whoever is killed while it traces takes no place for good, and nothing is counted any more for those.
  @Test func fewTraceAtATime() throws {
    let mounted = try mounted()
    func start(_ number: Int) throws -> Process {
      let process = Process()
      process.executableURL = URL(fileURLWithPath: Program.insula)
      process.arguments = [
        "trace", "--store", mounted.point, "--", "sh", "-c",
        "touch \(mounted.path("Users/Shared/work/\(number)")); read line",
      ]
      process.standardInput = Pipe()
      process.standardError = FileHandle.nullDevice
      try Program.withSignalsUnblocked { try process.run() }
      return process
    }
    let many = try (0..<2).map(start)
    // They end when there is nothing more to read for them.
    defer { for process in many { try? (process.standardInput as? Pipe)?.fileHandleForWriting.close() } }
    for number in 0..<2 {
      let begun = mounted.backing("Users/Shared/work/\(number)")
      #expect(eventually { FileManager.default.fileExists(atPath: begun) })
    }
    let refused = try trace("true", in: mounted).result
    #expect(
      refused.status == 1 && refused.errors.contains("too many processes are traced"), "\(refused.errors)")
    kill(many[0].processIdentifier, SIGKILL)
    var own: [String: Int] = [:]
    let begins = try eventually {
      let traced = try trace("mkdir again", in: mounted)
      own = traced.own
      return traced.result.status == 0
    }
    #expect(begins && own["MKDIR"] == 1, "\(own)")
  }

  @Test(.enabled(if: KernelRelease.own >= KernelRelease(6, 9), "no worker can be replaced"))
  func lostCountsAreSaid() throws {
    let mounted = try mounted()
    let daemon = try #require(try mounted.daemon())
    let start = monotonicNanoseconds()
    let traced = try trace("kill -KILL \(daemon); mkdir a; sleep 0.5", in: mounted)
    #expect(monotonicNanoseconds() - start < 8_000_000_000)
    #expect(traced.result.status == 1 && traced.result.errors.contains("what it counted is lost"))
    #expect(FileManager.default.fileExists(atPath: mounted.path("Users/Shared/work/a")))
  }

  /// Numbers of processes come round; nobody learns by that what others request.
  @Test(.enabled(if: Program.isRoot, "choosing a process's number needs root"))
  func numbersThatComeRoundTellNothing() throws {
    let mounted = try mounted()
    let script = Checkout.path("Tests/Fixtures/reused_pids.py")
    let result = try Program.run([
      "/usr/bin/python3", script, try mounted.socket(), mounted.path("Users/Shared/work"),
    ])
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.output.contains("this process is not traced"), "\(result.output)")
    let told = result.output.split(separator: "\n").last?.split(separator: " ").compactMap { Int($0) }.first
    // The child's own look at the name, and at the directories on the way.
    #expect((1...10).contains(told ?? -1), "\(result.output)")
  }
}
