// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Apps of programs that are there.
@Suite struct NewAppFromTests {
  private let shell: Shell

  init() throws {
    shell = try Shell()
    #expect(shell.run("identity", "new", "Anna").code == .ok)
    #expect(shell.run("identity", "export", "Anna", "--certificate", "root.pem").code == .ok)
    #expect(shell.run("trust", "add", "root.pem").code == .ok)
  }

  private func path(_ name: String) -> String { shell.temporary.appending(name) }

  /// Makes an app, signs and verifies it, and gives what was said.
  @discardableResult
  private func make(_ name: String, _ words: String...) throws -> Shell.Result {
    let made = shell.run(["new-app", name] + words)
    try #require(made.code == .ok, "\(made.errors)")
    let signed = shell.run("sign", "\(name).app", "--entitlements", "\(name).entitlements")
    #expect(signed.code == .ok, "\(signed.errors)")
    let verified = shell.run("verify", "\(name).app")
    #expect(verified.code == .ok, "\(verified.errors)")
    return made
  }

  private func start(_ name: String, _ words: String..., flat: Bool = false) throws -> ProgramResult {
    let program = path("\(name).app/" + (flat ? name : "Contents/MacOS/\(name)"))
    return try Program.run([program] + words, environment: ["HOME": shell.temporary.path], in: "/")
  }

  private func refused(_ words: String...) throws -> String {
    let before = try shell.temporary.names()
    let result = shell.run(["new-app"] + words)
    #expect(result.code == .failed && result.output.isEmpty, "\(result)")
    #expect(try shell.temporary.names() == before)
    return result.errors
  }

  private func script(_ text: String, at name: String) throws {
    try shell.temporary.write(text, to: name)
    chmod(path(name), 0o755)
  }

  // MARK: Files

  @Test(arguments: [false, true])
  func anInstalledProgramIsItself(isFlat: Bool) throws {
    let made = try isFlat ? make("Shell", "--from", "bash", "--flat") : make("Shell", "--from", "bash")
    #expect(made.output.contains("Created Shell.app (org.example.shell, of /"))
    #expect(try start("Shell", "-c", "echo $((6 * 7))", flat: isFlat).output == "42\n")
    #expect(
      try shell.temporary.names(in: isFlat ? "Shell.app" : "Shell.app/Contents").contains("Libraries")
        == false)
    // No link and no rights of others come along.
    var status = FileStatus()
    #expect(lstat(path("Shell.app/" + (isFlat ? "Shell" : "Contents/MacOS/Shell")), &status) == 0)
    #expect(status.isRegular && status.permissions == 0o755)
  }

  @Test func setuidIsLeftOut() throws {
    try script("#!/bin/sh\necho ran\n", at: "tool")
    chmod(path("tool"), 0o6755)
    let made = try make("Tool", "--from", "./tool")
    #expect(made.errors.contains("setuid"))
    var status = FileStatus()
    #expect(lstat(path("Tool.app/Contents/MacOS/Tool"), &status) == 0 && status.permissions == 0o755)
    #expect(try start("Tool").output == "ran\n")
  }

  @Test func scriptsAreProgramsToo() throws {
    try script("#!/bin/sh\necho \"got $1\"\n", at: "tool")
    try make("Tool", "--from", "./tool")
    #expect(try start("Tool", "a b").output == "got a b\n")
    // What does not say how it is run: its name does, or the person.
    try shell.temporary.write("import sys\nprint('python', sys.argv[1:])\n", to: "it's.py")
    try make("Snake", "--from", "it's.py")
    #expect(try start("Snake", "x y").output == "python ['x y']\n")
    try shell.temporary.write("echo shell\n", to: "plain")
    #expect(try refused("Plain", "--from", "plain").contains("--template python"))
    try make("Plain", "--from", "plain", "--template", "shell")
    #expect(try start("Plain").output == "shell\n")
    try script("#!/opt/nothing/run\n", at: "odd")
    #expect(try refused("Odd", "--from", "./odd").contains("/opt/nothing/run, which apps don't see"))
  }

  /// A library that only the program knows of comes along, with those that it needs; the C library does not.
  @Test func librariesFromElsewhereComeAlong() throws {
    try shell.temporary.makeDirectory("lib")
    try shell.temporary.makeDirectory("bin")
    try shell.temporary.write("int deep(void) { return 40; }\n", to: "deep.c")
    try shell.temporary.write("int deep(void); int answer(void) { return deep() + 2; }\n", to: "answer.c")
    try shell.temporary.write(
      "#include <stdio.h>\nint answer(void);\nint main(void) { printf(\"%d\\n\", answer()); return 0; }\n",
      to: "main.c")
    let built = try Program.run(
      [
        "sh", "-ec",
        """
        cc -shared -fPIC -o lib/libdeep.so.1 -Wl,-soname,libdeep.so.1 deep.c
        cc -shared -fPIC -o lib/libanswer.so.1 -Wl,-soname,libanswer.so.1 -Wl,-rpath,'$ORIGIN' answer.c \\
          lib/libdeep.so.1
        cc -o bin/answer -Wl,-rpath,'$ORIGIN/../lib' main.c lib/libanswer.so.1 -Wl,-rpath-link,lib
        """,
      ], in: shell.temporary.path)
    try #require(built.status == 0, "\(built.errors)")
    try make("Answer", "--from", "bin/answer")
    #expect(
      try shell.temporary.names(in: "Answer.app/Contents/Resources/Libraries") == [
        "libanswer.so.1", "libdeep.so.1",
      ])
    // As a directory, they stay where they are.
    try make("Whole", "--from", ".", "--executable", "bin/answer")
    #expect(try shell.temporary.names(in: "Whole.app/Contents/Resources") == ["Program"])
    #expect(access(path("Whole.app/Contents/Resources/Program/Whole.app"), F_OK) != 0)
    for name in ["lib", "bin"] { #expect(rename(path(name), path("moved-" + name)) == 0) }
    #expect(try start("Answer").output == "42\n")
    #expect(try start("Whole").output == "42\n")

    #expect(unlink(path("moved-lib/libdeep.so.1")) == 0)
    for name in ["lib", "bin"] { #expect(rename(path("moved-" + name), path(name)) == 0) }
    #expect(
      try refused("Gone", "--from", "bin/answer").contains("'libdeep.so.1', which is not installed here"))
    #expect(rename(path("lib/libanswer.so.1"), path("lib/libdeep.so.1")) == 0)
    try make("All", "--from", "/usr/bin/env", "--libraries", "all")
    #expect(try start("All", "echo", "ran").output == "ran\n")
  }

  @Test func whatIsNoProgramIsRefused() throws {
    try shell.temporary.write("\u{7f}ELF and nothing more", to: "broken")
    #expect(try refused("App", "--from", "broken").contains("its header is cut short"))
    try shell.temporary.write("", to: "empty")
    #expect(try refused("App", "--from", "empty").contains("neither a program nor a script"))
    #expect(
      try refused("App", "--from", "no-such-program").contains("neither a program in PATH nor a file here"))
    #expect(try refused("App", "--from", "./none").contains("can't find ./none"))
    mkfifo(path("fifo"), 0o600)
    #expect(try refused("App", "--from", "fifo").contains("neither a program nor a directory"))
    // A program that names its own loader is not run to find out more.
    try script("#!/bin/sh\n", at: "loader")
    let built = try Program.run(
      [
        "sh", "-c",
        "echo 'int main(void){return 0;}' | cc -x c - -o evil -Wl,-dynamic-linker,\(path("loader"))",
      ],
      in: shell.temporary.path)
    try #require(built.status == 0, "\(built.errors)")
    #expect(try refused("App", "--from", "./evil").contains("apps don't see its loader"))
  }

  @Test(arguments: [
    ["--executable", "x"], ["--libraries", "all"], ["--template", "perl"],
    ["--from", "sh", "--libraries", "none"],
    ["--from", ""], ["--entitlement", "a b"], ["--entitlement", ""], ["--from", "sh", "--executable", "x"],
    ["--from", ".", "--executable", "../x"], ["--from", ".", "--executable", "/x"],
  ])
  func wordsThatMakeNoSense(words: [String]) throws {
    #expect(shell.run(["new-app", "App"] + words).code == .usage)
    #expect(try !shell.temporary.names().contains("App.app"))
  }

  @Test func entitlementsAreThoseThatWereAskedFor() throws {
    try make("Fetch", "--from", "sh", "--entitlement", "network.client", "--entitlement", "com.example.own")
    let text = shell.temporary.text(of: "Fetch.entitlements") ?? ""
    for key in ["com.apple.security.app-sandbox", "com.apple.security.network.client", "com.example.own"] {
      #expect(text.contains("<key>\(key)</key>"))
    }
    #expect(!text.contains("application-groups"))
  }

  // MARK: Directories

  /// What a directory has in it that must not get into an app that is given away.
  @Test func whatLeadsOutIsLeftOut() throws {
    try shell.temporary.makeDirectory("tool")
    try shell.temporary.makeDirectory("tool/inner")
    try script("#!/bin/sh\necho \"$(cat \"${0%/*}/words\")\"\n", at: "tool/run")
    try shell.temporary.write("words", to: "tool/inner/words")
    try shell.temporary.write("secret", to: "secret")
    chmod(path("secret"), 0o600)
    for (name, target) in [
      ("words", "inner/words"), ("absolute", path("secret")), ("up", "../secret"), ("broken", "nothing"),
      ("through", "up"), ("deep", "inner/../../secret"), ("itself", "itself"), ("shell", "/bin/sh"),
      ("to-shell", "shell"),
    ] { symlink(target, path("tool/" + name)) }
    mkfifo(path("tool/fifo"), 0o600)
    try shell.temporary.write("set", to: "tool/set")
    chmod(path("tool/set"), 0o4755)
    let made = try make("Tool", "--from", "tool")
    let place = "Tool.app/Contents/Resources/Program"
    #expect(try shell.temporary.names(in: place) == ["inner", "run", "set", "shell", "to-shell", "words"])
    #expect(try start("Tool").output == "words\n")
    for name in ["absolute", "up", "broken", "through", "deep", "itself", "fifo"] {
      #expect(made.errors.contains("left out \(path("tool"))/\(name): "), "\(name): \(made.errors)")
    }
    #expect(
      made.errors.contains("tool/shell leads to /usr/bin/") && made.errors.contains("tool/set runs with"))
    var status = FileStatus()
    #expect(lstat(path(place + "/shell"), &status) == 0 && status.isRegular)
    #expect(lstat(path(place + "/set"), &status) == 0 && status.permissions == 0o755)
  }

  @Test(.enabled(if: Program.isRoot, "becoming an ordinary user needs root"))
  func whatCantBeReadIsLeftOut() throws {
    let temporary = try TemporaryDirectory(mode: 0o777)
    try temporary.makeDirectory("tool")
    try temporary.makeDirectory("tool/closed", mode: 0o700)
    try temporary.write("#!/bin/sh\necho ran\n", to: "tool/run")
    chmod(temporary.appending("tool/run"), 0o755)
    try temporary.write("secret", to: "tool/secret")
    chmod(temporary.appending("tool/secret"), 0o600)
    let result = try Program.runAsNobody(
      [Program.insula, "new-app", "Tool", temporary.path, "--from", temporary.appending("tool")],
      environment: ["HOME": temporary.path, "XDG_CONFIG_HOME": ""])
    #expect(
      result.status == 0 && result.errors.contains("tool/secret: you can't read it"), "\(result.errors)")
    #expect(result.errors.contains("tool/closed: you can't read it"))
    #expect(try temporary.names(in: "Tool.app/Contents/Resources/Program") == ["run"])
  }

  @Test func whatIsStartedMustBeKnownAndThere() throws {
    try shell.temporary.makeDirectory("tool")
    try shell.temporary.write("x", to: "tool/file")
    #expect(try refused("Tool", "--from", "./tool").contains("'--executable' says so"))
    #expect(try refused("Tool", "--from", "./tool", "--executable", "none").contains("No such file"))
    try shell.temporary.write("#!/bin/sh\n", to: "other")
    symlink("../other", path("tool/out"))
    #expect(try refused("Tool", "--from", "./tool", "--executable", "out").contains("a link that leads out"))
    #expect(try refused("Tool", "--from", "./tool", "--executable", "file").contains("--template"))
    // A Python that does not come along would be missed when it is started.
    try shell.temporary.makeDirectory("tool/bin")
    try shell.temporary.write("home = /nowhere\n", to: "tool/pyvenv.cfg")
    symlink("../../other", path("tool/bin/python3"))
    try shell.temporary.write("", to: "tool/main.py")
    #expect(try refused("Tool", "--from", "./tool").contains("bin/python3 is not in the app"))
  }

  @Test func virtualEnvironmentsWork() throws {
    let python = "/usr/bin/python3"
    try #require(access(python, X_OK) == 0, "\(python) is required")
    let made = try Program.run([python, "-m", "venv", "--without-pip", path("tool/venv")])
    try #require(made.status == 0, "\(made.output)\(made.errors)")
    try shell.temporary.write("import sys\nprint(sys.prefix)\n", to: "tool/main.py")
    try make("Tool", "--from", "./tool")
    // The one that it was copied from is not asked.
    #expect(rename(path("tool"), path("moved")) == 0)
    let result = try start("Tool")
    #expect(result.output == path("Tool.app/Contents/Resources/Program/venv") + "\n", "\(result.errors)")
    #expect(rename(path("moved"), path("tool")) == 0)
    // A script of the environment names its Python by the whole path.
    try script(
      "#!\(path("tool/venv/bin/python3"))\nimport sys\nprint('own', sys.prefix)\n", at: "tool/venv/bin/own")
    try make("Own", "--from", "./tool/venv", "--executable", "bin/own")
    #expect(rename(path("tool"), path("moved")) == 0)
    #expect(try start("Own").output == "own \(path("Own.app/Contents/Resources/Program"))\n")
  }

  // MARK: Templates

  @Test func templatesWork() throws {
    try shell.temporary.makeDirectory("Documents")
    for template in ["python", "shell"] {
      try make(template, "--template", template)
      let first = try start(template)
      #expect(first.status == 0 && first.output.contains("Hello from \(template)."), "\(first.errors)")
    }
    #expect(shell.temporary.text(of: "Documents/starts.txt")?.split(separator: "\n").count == 2)
    try make("Flat", "--template", "python", "--flat")
    #expect(try start("Flat", flat: true).output.contains("Hello from Flat."))
    let package = shell.run("new-app", "My Tool", "--template", "swift")
    #expect(package.code == .ok && package.output.contains("insula new-app 'My Tool' --from ./'My Tool'"))
    #expect(try shell.temporary.names(in: "My Tool/Sources/MyTool") == ["main.swift"])
    #expect(try refused("My Tool", "--template", "swift").contains("already exists"))
    #expect(try refused("Tool", "--from", "./My Tool").contains("was not built yet"))
    // What a build leaves; a real one takes a minute.
    try shell.temporary.makeDirectory("My Tool/.build")
    try shell.temporary.makeDirectory("My Tool/.build/release")
    try shell.temporary.makeDirectory("My Tool/.build/release/My_Tool.resources")
    try shell.temporary.write("words", to: "My Tool/.build/release/My_Tool.resources/words")
    let copied = try Program.run(["cp", "-L", "/usr/bin/env", path("My Tool/.build/release/MyTool")])
    #expect(copied.status == 0)
    try make("Tool", "--from", "./My Tool")
    #expect(try start("Tool", "echo", "ran").output == "ran\n")
    #expect(
      try shell.temporary.names(in: "Tool.app/Contents/Resources/Program") == ["MyTool", "My_Tool.resources"])
  }
}
