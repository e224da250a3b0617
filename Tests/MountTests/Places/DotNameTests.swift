// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What Unix programs keep in their home under names with a dot, in the containers of apps.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .serialized)
struct DotNameTests {
  private static let flat = "org.example.flat"

  /// A shell line that runs as an app of a phone's shape.
  private static func flat(_ line: String) -> String { "APP=\(flat) run sh -c '\(line)'" }

  private func containers(_ fixture: RunFixture) -> String {
    String(fixture.container.dropLast(RunFixture.identifier.count))
  }

  private func has(_ program: String) -> Bool {
    let isThere = ["/usr/bin/", "/bin/"].contains {
      FileManager.default.isExecutableFile(atPath: $0 + program)
    }
    if !isThere { print("SKIPPED: \(program) is not installed, so what it keeps in its home was not tried") }
    return isThere
  }

  /// Makes another version of an app that is installed, of either shape, and updates it.
  private func update(_ fixture: RunFixture, _ name: String, options: [String] = []) throws {
    let directory = fixture.mounted.temporary.appending("store/\(UUID().uuidString)")
    #expect(mkdir(directory, 0o777) == 0 && chmod(directory, 0o777) == 0)
    for words in [
      ["new-app", name, directory] + options, ["sign", "\(directory)/\(name).app", "--identity", "tester"],
      ["update", "\(directory)/\(name).app", "--allow-downgrade", "--store", fixture.mounted.store],
    ] {
      let result = try fixture.mounted.run(words)
      try #require(result.status == 0, "\(words): \(result.errors)")
    }
  }

  @Test(arguments: [false, true], ["", "nopassthrough,nogrpid"])
  func programsKeepWhatTheyNeedInTheirHome(rootless: Bool, options: String) throws {
    let fixture = try RunFixture(rootless: rootless)
    if !options.isEmpty {
      #expect(try fixture.mounted.unmount().status == 0)
      try fixture.mounted.mount(options: options)
    }
    try fixture.install("Flat", options: ["--flat"])
    var names = [".config", ".edited", ".linked", ".pipe", ".profile"]
    var script = """
      set -e; cd; echo a >.profile; mkdir -p .config/deep/er; echo b >.config/deep/er/file
      ln -s .profile .linked; mkfifo .pipe
      echo old >.edited; sed s/old/new/ .edited >.new; mv .new .edited; cat .edited
      mv .config/deep .deep; mv .deep .config/deep; cat .config/deep/er/file; test -w .
      """
    if has("vim") {
      names.append(".viminfo")
      script +=
        "\nvim -N -u NONE -i .viminfo -es -c wviminfo! -c qa! Documents/note.txt; grep -q Viminfo .viminfo"
    }
    if has("bash") {
      names.append(".bash_history")
      script +=
        "\nHISTFILE=~/.bash_history bash -c 'set -o history; history -s hello; history -w'; cat .bash_history"
    }
    if has("git") {
      names.append(".gitconfig")
      script += "\ngit config --global user.name Ada; git config --global user.name"
    }
    let worked = try fixture.inside(script)
    #expect(worked.status == 0 && worked.output.hasPrefix("new\nb\n"), "\(worked.output)\(worked.errors)")
    let listed = try fixture.shell("ls -A \"$DATA\" | grep '^[.]'; stat -c '%U %G' \"$DATA/.profile\"")
    let owner = try fixture.shell("stat -c '%U %G' \"$DATA\"").output
    #expect(listed.output == names.sorted().joined(separator: "\n") + "\n" + owner, "\(listed.output)")
    // Names without a dot are not the app's, nor are those that describe what things are.
    for line in [
      "echo >x", "mkdir x", "mv .profile profile", "echo >.com.apple.x", "rmdir tmp", "rm Notes.app",
      "sed -i s/a/b/ .profile",
    ] {
      let refused = try fixture.inside("cd; \(line)")
      #expect(
        (refused.isRefusal || line.hasPrefix("sed") && refused.ending == Ending(4))
          && refused.errors.contains("Operation not permitted"),
        "\(line): \(refused)")
    }
    // An app of a phone's shape has what it begins with.
    for line in ["echo >.x", "mkdir .config", "ln -s tmp .x", "mv tmp .x", "touch tmp/x && ln tmp/x .x"] {
      let refused = try fixture.shell(Self.flat("cd; \(line)"))
      #expect(
        refused.isRefusal && refused.errors.contains("Operation not permitted"),
        "\(line): \(refused)")
    }
    let gone = try fixture.inside("cd; rm -r .[a-z]*; ls -A")
    #expect(gone.output == "Documents\nLibrary\nNotes.app\ntmp\n", "\(gone.output)\(gone.errors)")
    #expect(try fixture.mounted.run("check", fixture.mounted.store).status == 0)
  }

  /// The app decides, and what it is decides from the moment on that it is changed.
  @Test(arguments: [false, true]) func shapeOfTheAppDecides(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let home = containers(fixture) + "org.example.editor/Data"
    try fixture.install("Editor")
    func inApp(_ line: String) throws -> ProgramResult {
      try fixture.shell("APP=org.example.editor run sh -c 'cd; \(line)'")
    }
    let made = try inApp("echo a >.rc; mkdir .d; echo b >.d/file; ln -s x .link")
    #expect(made.status == 0, "\(made.errors)")
    // Whoever stands in the directory meanwhile has no other rules.
    let outside = try fixture.shell("cd \(home); echo >.outside && rm .outside")
    #expect(outside.status == 0, "\(outside.errors)")
    try update(fixture, "Editor", options: ["--flat"])
    for line in ["echo >.new", "mkdir .new", "mv .rc .new", "ln .rc .new", "mv Documents .new"] {
      for result in [try inApp(line), try fixture.shell("cd \(home); \(line)")] {
        #expect(result.isRefusal && result.errors.contains("not permitted"), "\(line): \(result)")
      }
    }
    let kept = try inApp("cat .rc .d/file; echo c >>.rc; echo d >.d/more; cat .rc; ls -A .d; rm .link")
    #expect(kept.output == "a\nb\na\nc\nfile\nmore\n", "\(kept.output)\(kept.errors)")
    try update(fixture, "Editor")
    let again = try inApp("mv .rc .new; mv .new .rc; ls -A")
    #expect(again.status == 0, "\(again.errors)")
    // What is kept of an app that is gone belongs to no shape.
    try fixture.succeed("uninstall", "org.example.editor", "--keep-data", "--store", fixture.mounted.store)
    let after = try fixture.shell("cd \(home); cat .rc && rm -r .d && ! echo >.new")
    #expect(
      after.output == "a\nc\n" && after.errors.contains("not permitted"), "\(after.output)\(after.errors)")
    try fixture.install("Editor2")
  }

  /// What a worker knew of such names, the next one knows.
  @Test(arguments: [false, true]) func namesOutliveTheDaemon(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let tmp = "Users/\(fixture.user.name)/Library/Containers/\(RunFixture.identifier)/Data/tmp"
    let (mounted, user) = (fixture.mounted, fixture.user)
    let killer = Thread {
      _ = eventually { FileManager.default.fileExists(atPath: mounted.backing(tmp + "/ready")) }
      if let daemon = try? mounted.daemon() { kill(daemon, SIGKILL) }
      let become = ["setpriv", "--reuid=\(user.uid)", "--regid=\(user.gid)", "--clear-groups"]
      _ = try? Program.run(become + ["timeout", "60", "mkdir", mounted.path(tmp + "/go")])
    }
    killer.start()
    let result = try fixture.inside(
      """
      cd; mkdir .config; cd .config; exec 3>../.rc; echo a >&3; echo x >../tmp/ready
      n=0; until [ -e ../tmp/go ] || [ $n = 300 ]; do sleep 0.1; n=$((n+1)); done
      echo b >&3; echo c >../.new; mv ../.new ../.newer; echo d >file; cat ../.rc ../.newer file
      echo e >../x || echo refused
      """)
    #expect(result.output == "a\nb\nc\nd\nrefused\n", "\(result.output)\(result.errors)")
    #expect(try fixture.mounted.count("restarts") == 1)
  }

  @Test(arguments: [false, true]) func exportsAndImportsCarryThem(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    try fixture.install("Flat", options: ["--flat"])
    let package = fixture.mounted.temporary.appending("store/Notes.xcappdata")
    let made = try fixture.inside(
      "cd; echo a >.rc; mkdir .d; echo b >.d/f; ln -s .rc .link; ln .rc .same; mkfifo .pipe")
    #expect(made.status == 0, "\(made.errors)")
    #expect(chmod(fixture.mounted.temporary.appending("store"), 0o777) == 0)
    let exported = try fixture.shell(
      "insula export $APP \(package); ls -A \(package)/AppData | grep -v com.apple")
    #expect(exported.errors.contains(".pipe"), "\(exported.errors)")
    #expect(
      exported.output.contains(".d\n.link\n.rc\n.same\nDocuments\nLibrary\ntmp\n"), "\(exported.output)")
    let refused = try fixture.shell("insula import $APP \(package)")
    #expect(refused.ending == .usage, "\(refused)")
    _ = try fixture.inside("cd; rm -r .rc .d .same; ln -sf y .link; echo other >.other")
    let there = try fixture.shell("insula import \(package)")
    #expect(there.status == 1 && there.errors.contains("already has data"), "\(there.errors)")
    let replaced = try fixture.shell("insula import \(package) --replace")
    #expect(replaced.status == 0, "\(replaced.errors)")
    let found = try fixture.inside(
      "cd; cat .rc .d/f; readlink .link Notes.app; test .rc -ef .same; echo >.new; ls -A | grep '^[.]'")
    #expect(
      found.output.hasPrefix("a\nb\n.rc\n") && found.output.hasSuffix(".d\n.link\n.new\n.rc\n.same\n"),
      "\(found.output)\(found.errors)")
    // Into an app of a phone's shape they come too, as an update to that shape leaves them.
    let other = try fixture.shell("insula import \(package) --to \(Self.flat)")
    #expect(other.status == 0, "\(other.errors)")
    let flat = try fixture.shell(Self.flat("cd; cat .rc; echo >.new; rm -r .d .rc; ls -A"))
    #expect(
      flat.output == "a\n.link\n.same\nDocuments\nFlat.app\nLibrary\ntmp\n"
        && flat.errors.contains("not permitted"), "\(flat.output)\(flat.errors)")
    // What no container has is in no package.
    for line in [
      "echo >\(package)/AppData/x", "rm \(package)/AppData/x; echo >\(package)/AppData/.com.apple.x",
    ] {
      let strange = try fixture.shell("\(line); insula import \(package) --replace")
      #expect(strange.ending == .failed && strange.errors.contains("a container has no"), "\(strange)")
    }
    let gone = try fixture.shell("insula export $APP \(package)2; exit 0")
    #expect(gone.status == 0)
    try fixture.succeed("uninstall", RunFixture.identifier, "--store", fixture.mounted.store)
    #expect(
      !FileManager.default.fileExists(
        atPath: fixture.mounted.backing(
          "Users/\(fixture.user.name)/Library/Containers/\(RunFixture.identifier)")))
  }
}
