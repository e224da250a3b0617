// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// `insula run` in a namespace of processes, as a container has one.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct RunPlaceTests {
  /// Runs a script as root in such a namespace; its words are those that run the app.
  private func contained(_ script: String, _ fixture: RunFixture, _ words: String...) throws -> ProgramResult
  {
    let run = [Program.insula, "run", "--store", fixture.mounted.point, "--user", fixture.user.name]
    return try Program.run(
      ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", script, "sh"] + run
        + [RunFixture.identifier, "--"] + words,
      environment: ["HOME": "/nonexistent", "XDG_RUNTIME_DIR": ""])
  }

  /// The first numbers are those of processes that have ended.
  @Test func runsAmongFewProcesses() throws {
    let fixture = try RunFixture()
    let result = try contained(
      "/bin/true; /bin/true; /bin/true; [ -e /proc/2 ] && exit 99; \"$@\"; exit $?", fixture, "sh", "-c",
      "echo $HOME; ls -d /proc/[0-9]* | wc -l; exit 7")
    let lines = result.output.split(separator: "\n").map(String.init)
    #expect(result.status == 7 && lines.first == fixture.container + "/Data", "\(result.errors)")
    // bubblewrap's own, the shell, and what it runs.
    #expect(lines.last.flatMap { Int($0) }.map { (3...4).contains($0) } == true, "\(result.output)")
  }

  @Test func coveredProcIsNamed() throws {
    let fixture = try RunFixture()
    let result = try contained("mount -t tmpfs none /proc/fs && \"$@\"; exit $?", fixture, "true")
    #expect(
      result.status == 1 && result.errors.contains("can't mount /proc for the app")
        && result.errors.contains("systempaths=unconfined"), "\(result.errors)")
  }
}
