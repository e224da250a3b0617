// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Completion as a person sees it: a shell at a terminal, and the tabulator key.
@Suite struct ShellCompletionTests {
  private let shell: Shell

  init() throws { shell = try Shell() }

  private static func isThere(_ name: String) -> Bool { (try? Program.run(["which", name]).status) == 0 }

  @Test(arguments: ["bash", "zsh", "fish"])
  func scriptIsAProgramOfItsShell(name: String) throws {
    let result = shell.run("completion", name)
    #expect(result.code == .ok && result.output.contains("insula completions \(name) --words"))
    let script = try shell.temporary.write(result.output, to: "script")
    // Those that are not installed are not asked.
    guard Self.isThere(name) else { return }
    let check = try Program.run([name, "-n", script])
    #expect(check.status == 0, "\(check.errors)")
  }

  @Test(arguments: ["bash", "zsh", "fish"])
  func tabulatorCompletes(name: String) throws {
    guard Self.isThere(name), Self.isThere("python3") else { return }
    let store = try CompletionTests.storeWithApps(in: shell.temporary)
    let home = try shell.temporary.makeDirectory("home")
    let directory = URL(fileURLWithPath: Program.insula).deletingLastPathComponent().path
    let environment = [
      "HOME": home, "PATH": "\(directory):/usr/bin:/bin", "XDG_CONFIG_HOME": "", "XDG_DATA_HOME": "",
      "XDG_RUNTIME_DIR": "", "TERM": "xterm", "LC_ALL": "C.UTF-8",
    ]
    #expect(
      try Program.run([Program.insula, "identity", "new", "Anna"], environment: environment).status == 0)
    let script = try shell.temporary.write(shell.run("completions", name).output, to: "script")
    let steps =
      [
        ("insula stat", "<status>"), ("insula user rem", "<user><remove>"), ("insula -v app", "<-v><apps>"),
        ("insula apps --js", "<apps><--json>"), ("insula help exit", "<help><exit-codes>"),
        ("insula mount -o noatime,nosu", "<mount><-o><noatime,nosuid>"),
        ("insula kill x --signal HU", "<kill><x><--signal><HUP>"),
        ("insula kill x --signal=HU", "<kill><x><--signal=HUP>"), ("insula path x inb", "<path><x><inbox>"),
        ("insula path x gro", "<path><x><group:>"),
        ("insula info --store \(store) com.example.ed", "<info><--store><\(store)><com.example.editor>"),
        ("insula info --store \(store) My", "<info><--store><\(store)><My Editor>"),
        ("insula info --store=\(store) com.example.ed", "<info><--store=\(store)><com.example.editor>"),
        ("insula sign --identity An", "<sign><--identity><Anna>"),
        ("insula user add nobod", "<user><add><nobody>"),
        ("insula check \(store)/sta", "<check><\(store)/state/>"),
        ("insula apps --store \(store)/sta", "<apps><--store><\(store)/state/>"),
        ("insula acl \(store)/store.pl", "<acl><\(store)/store.plist>"),
        ("insula config mount", "<config><mount.options>"),
        // Whatever is listed here, nothing of it is carried out.
        ("insula info --store \(store) ", nil), ("insula info --store \(store) $", nil),
        ("insula info --store \(store) `", nil),
      ] as [(String, String?)]
    let fixture = Repository.root + "/Tests/Fixtures/complete-at-a-terminal.py"
    let words = steps.flatMap { [$0.0, $0.1 ?? ""] }
    let folder = try shell.temporary.makeDirectory("here")
    let result = try Program.run(
      ["python3", fixture, name, script] + words, environment: environment, in: folder)
    #expect(result.status == 0, "\(result.output)\n\(result.errors)")
    #expect(try shell.temporary.names(in: "here").isEmpty)
  }

  /// Whoever types must not wait for a daemon that does not answer.
  @Test(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
  func aDaemonThatHangsDelaysNobody() throws {
    let mounted = try MountedStore.mounted()
    let pid = Int32(try mounted.count("pid"))
    #expect(kill(pid, SIGSTOP) == 0)
    let start = DispatchTime.now().uptimeNanoseconds
    let asked = Result {
      try mounted.run("completions", "bash", "--words", "path", "--store", mounted.store, "")
    }
    #expect(DispatchTime.now().uptimeNanoseconds - start < 5_000_000_000)
    #expect(kill(pid, SIGCONT) == 0)
    #expect(try mounted.unmount().status == 0)
    let result = try asked.get()
    // What is known is there all the same.
    #expect(result.status == 0 && result.output.contains("caches\n") && result.errors.isEmpty)
  }
}
