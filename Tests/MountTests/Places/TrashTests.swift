// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What `gio trash` and desktops do with files of the tree.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .serialized)
struct TrashTests {
  /// Throws away a file of a user's home; `home` is what the user has as home.
  private func script(_ program: String, home: String, in tree: String, _ name: String) -> String {
    """
    set -e; export HOME=\(home) GIO_USE_VFS=local; unset XDG_DATA_HOME; umask 022
    cd \(tree)/Users/\(name)/Documents; echo text >"a file"; mkdir -p dir/deep; echo b >dir/deep/b
    \(program) "$PWD/a file"; \(program) "$PWD/dir"; ! ls "a file"; ! ls dir
    """
  }

  private static let programs = ["gio trash", "trash-put"]

  @Test(arguments: [false, true], programs)
  func filesOfAHomeCanBeThrownAway(rootless: Bool, program: String) throws {
    let command = String(program.prefix { $0 != " " })
    guard FileManager.default.isExecutableFile(atPath: "/usr/bin/" + command) else {
      return print("SKIPPED: \(command) is not installed, so nothing was thrown away by it")
    }
    let fixture = try RunFixture(rootless: rootless)
    let (point, user) = (fixture.mounted.point, fixture.user)
    let outside = try fixture.mounted.temporary.makeDirectory("outside", mode: 0o777)
    // With a home that is elsewhere, things go to the top of the mount; with one in the tree, to that.
    for (home, trash) in [
      (outside, "\(point)/.Trash/\(user.uid)"),
      ("\(point)/Users/\(user.name)", "\(point)/Users/\(user.name)/.local/share/Trash"),
    ] {
      let thrown = try fixture.shell(script(program, home: home, in: point, user.name))
      #expect(thrown.status == 0, "\(home): \(thrown.output)\(thrown.errors)")
      let found = try fixture.shell(
        "cat '\(trash)/files/a file' \(trash)/files/dir/deep/b; cat '\(trash)/info/a file.trashinfo'; "
          + "stat -c '%a %u' \(trash)/files")
      #expect(found.output.hasPrefix("text\nb\n"), "\(home): \(found.output)\(found.errors)")
      #expect(found.output.contains("Documents/a%20file") && found.output.hasSuffix("700 \(user.uid)\n"))
      if home == outside {
        #expect(found.output.contains("Path=Users/\(user.name)/"), "\(found.output)")
      }
    }
    #expect(try fixture.mounted.run("check", fixture.mounted.store).status == 0)
    // An app sees nothing of it, and what it throws away goes to its own.
    let inside = try fixture.inside(
      "export GIO_USE_VFS=local; ls -A \(point); ls \(point)/.Trash; ls \(point)/Users/\(user.name)/.Trash; "
        + "cd Documents; echo mine >mine; \(program) $PWD/mine; cat ~/Library/Application*/Trash/files/mine")
    #expect(!inside.output.contains("Trash") && inside.output.hasSuffix("mine\n"), "\(inside.output)")
    #expect(
      inside.errors.split(separator: "\n").count { $0.contains("No such file") } == 2, "\(inside.errors)")
  }

  @Test func nobodyGetsAtAnothersTrash() throws {
    let mounted = try MountedStore.mounted()
    let accounts = [try TemporaryAccount(), try TemporaryAccount()]
    let (anna, bert) = (accounts[0].account, accounts[1].account)
    defer { withExtendedLifetime(accounts) {} }
    let trash = mounted.path(".Trash")
    func run(_ line: String, as user: Account) throws -> ProgramResult {
      let become = ["setpriv", "--reuid=\(user.uid)", "--regid=\(user.gid)", "--clear-groups"]
      return try Program.run(become + ["timeout", "60", "sh", "-c", "cd \(trash) && \(line)"])
    }
    let made = try run("mkdir -m 700 \(anna.uid) && echo secret >\(anna.uid)/x", as: anna)
    #expect(made.status == 0, "\(made.errors)")
    for (line, words) in [
      ("ls", "Permission denied"), ("cat \(anna.uid)/x", "Permission denied"),
      ("mv \(anna.uid) \(bert.uid)", "not permitted"), ("rmdir \(anna.uid)", "not permitted"),
      ("mkdir other", "not permitted"), ("echo >\(bert.uid)", "not permitted"),
      ("ln -s / \(bert.uid)", "not permitted"), ("mkfifo \(bert.uid)", "not permitted"),
      ("chmod 777 .", "not permitted"),
    ] {
      let result = try run(line, as: bert)
      #expect(
        result.isRefusal && result.errors.contains(words), "\(line): \(result)")
    }
    // Nobody is kept from their own by who comes first.
    let squat = try run("mkdir \(bert.uid)", as: anna)
    #expect(squat.ending == .failed && squat.errors.contains("not permitted"), "\(squat)")
    #expect(try run("mkdir -m 700 \(bert.uid) && rmdir \(bert.uid)", as: bert).status == 0)
    for line in ["mv .Trash x", "rmdir .Trash", "mkdir .Trash-\(anna.uid)"] {
      let result = try Program.run(["sh", "-c", "cd \(mounted.point) && \(line)"])
      #expect(result.errors.contains("Read-only file system"), "\(line): \(result.errors)")
    }
  }

  @Test func storeOfAnEarlierVersionGetsOne() throws {
    let mounted = try MountedStore()
    #expect(rmdir(mounted.backing(".Trash")) == 0)
    try mounted.mount(options: "ro")
    #expect(!FileManager.default.fileExists(atPath: mounted.path(".Trash")))
    #expect(try mounted.unmount().status == 0)
    try mounted.mount()
    let shown = try Program.run(["stat", "-c", "%a %u", mounted.path(".Trash")])
    #expect(shown.output == "1733 0\n", "\(shown.output)\(shown.errors)")
    #expect(try mounted.run("check", mounted.store).status == 0)
  }
}
