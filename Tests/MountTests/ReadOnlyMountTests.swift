// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What commands say of a store that is mounted read-only, and what works there all the same.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct ReadOnlyMountTests {
  @Test(arguments: [false, true]) func whatCannotBeChangedIsSaid(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    try fixture.install("Other")
    let file = fixture.mounted.path("Users/\(fixture.user.name)/Documents/letter")
    let package = fixture.mounted.temporary.appending("out/Notes.xcappdata")
    try fixture.mounted.temporary.makeDirectory("out", mode: 0o777)
    let before = try fixture.shell(
      """
      echo dear > \(file); insula grant $APP \(file) && run sh -c 'echo x > Documents/mine; echo y > .rc' &&
        insula export $APP \(package)
      """)
    try #require(before.status == 0, "\(before)")
    #expect(try fixture.mounted.unmount().status == 0)
    try fixture.mounted.mount(options: "ro")
    // A user's own store makes containers for its only user when the app is installed.
    let start = rootless ? [] : ["run org.example.other -- true"]
    for command in start + [
      "grant $APP \(file) --read-write", "revoke $APP --all", "deliver $APP \(file)",
      "import \(package) --replace", "uninstall $APP",
      "update --cancel $APP",
    ] {
      let result = try fixture.shell("insula \(command)")
      #expect(result.status == 1, "\(command): \(result)")
      #expect(
        result.errors.contains("mounted read-only; mount ") && result.errors.contains("read-write first"),
        "\(command): \(result)")
      #expect(!result.errors.contains("-o ro"), "\(result)")
    }
    // What reads goes on, and so do apps that have what they need.
    let running = try fixture.shell(
      """
      insula grants; run sh -c 'cat Documents/mine .rc; echo z > .new' ; run sleep 100 2>/dev/null & running 1
      insula kill $APP; wait; insula log --denied >/dev/null
      rm -r \(package); insula export $APP \(package)
      """)
    #expect(
      running.output.contains("\(file)\n") && running.output.contains("x\ny\n")
        && running.output.contains("Exported"), "\(running)")
    #expect(running.errors.contains("Read-only file system"), "\(running)")
    #expect(try fixture.mounted.run("check", fixture.mounted.store).status == 0)
  }

  @Test func homesAreNotMadeThere() throws {
    let fixture = try RunFixture()
    let other = try TemporaryAccount()
    #expect(try fixture.mounted.unmount().status == 0)
    try fixture.mounted.mount(options: "ro")
    for words in [["add", other.account.name], ["remove", fixture.user.name, "--delete-home"]] {
      let result = try fixture.mounted.run(["user"] + words + ["--store", fixture.mounted.store])
      #expect(
        result.status == 1
          && result.errors == "insula: the store is mounted read-only; mount it read-write "
            + "first\n",
        "\(words): \(result)")
    }
  }
}
