// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// When an app does not run, and what does not go while it does.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct RunRefusalTests {
  @Test func refusalsSayWhyAndWhatToDo() throws {
    let fixture = try RunFixture()
    let other = try TemporaryAccount()
    let unknown = try fixture.shell("insula run com.example.none")
    #expect(unknown.status == 1 && unknown.errors.contains("the app com.example.none is not installed here"))
    let homeless = try fixture.shell("insula run $APP", as: other.account)
    #expect(
      homeless.status == 1 && homeless.errors.contains("'insula user add' creates one"), "\(homeless.errors)")
    #expect(try fixture.shell("insula run '../x'").status == 2)
    #expect(try fixture.shell("insula run $APP -- ''").status == 2)
    #expect(
      try fixture.shell("insula run $APP --user nobody-at-all", as: RunFixture.root).errors.contains(
        "no account")
    )
    _ = try fixture.mounted.unmount()
    let unmounted = try fixture.mounted.run("run", RunFixture.identifier, "--store", fixture.mounted.store)
    #expect(unmounted.status == 6 && unmounted.errors.contains("'insula mount"), "\(unmounted.errors)")
    #expect(
      try fixture.mounted.run("ps", "--store", fixture.mounted.store).output == "No apps are running.\n")
  }

  @Test(arguments: [
    "Contents/MacOS/Notes", "Contents/Info.plist", "Contents/_CodeSignature/CodeDirectory",
    "Contents/_CodeSignature/CodeResources", "Contents/_CodeSignature/CodeSignature",
  ])
  func brokenSealIsRefused(part: String) throws {
    let fixture = try RunFixture()
    #expect(try fixture.inside("true").status == 0)
    let path = fixture.mounted.backing("Applications/Notes.app/\(part)")
    let whole = try #require(FileManager.default.contents(atPath: path))
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    try file.seekToEnd()
    try file.write(contentsOf: Data("x".utf8))
    try file.close()
    let refused = try fixture.shell("insula run $APP -- true")
    #expect(refused.status > 8 && refused.errors.contains("Notes.app was refused"), "\(refused.errors)")
    #expect(try fixture.shell("insula ps").output == "No apps are running.\n")
    // What is whole again runs again.
    try whole.write(to: URL(fileURLWithPath: path))
    #expect(try fixture.inside("true").status == 0)
  }

  @Test func senselessEntitlementsAreRefused() throws {
    for rights in [
      "<key>com.apple.security.network.client</key><string>yes</string>",
      "<key>com.apple.security.temporary-exception.files.absolute-path.read-only</key><string>/x</string>",
      "<key>com.apple.security.temporary-exception.files.absolute-path.read-write</key>"
        + "<array><string>/../x</string></array>",
      "<key>com.apple.security.temporary-exception.files.home-relative-path.read-only</key>"
        + "<array><integer>3</integer></array>",
    ] {
      let fixture = try RunFixture(entitlements: rights)
      let result = try fixture.shell("insula run $APP -- true")
      #expect(result.status == 1 && result.errors.contains("can't be used"), "\(rights): \(result.errors)")
    }
  }

  /// Both are missing in a namespace of the test's own.
  @Test func whatIsMissingIsNamed() throws {
    let fixture = try RunFixture()
    let hidden = try Program.run(
      [
        "unshare", "-m", "sh", "-c",
        "mount --bind /dev/null \"$(readlink -f \"$(command -v bwrap)\")\"; exec \"$@\"", "sh",
        Program.insula, "run",
        RunFixture.identifier, "--store", fixture.mounted.point, "--user", fixture.user.name,
      ], environment: ["HOME": "/nonexistent", "XDG_RUNTIME_DIR": ""])
    #expect(hidden.status == 1 && hidden.errors.contains("apt-get install bubblewrap"), "\(hidden.errors)")
    let closed = try Program.run(
      [
        "unshare", "-Ur", "sh", "-c", "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$@\"", "sh",
        Program.insula,
        "run", RunFixture.identifier, "--store", fixture.mounted.point,
      ], environment: ["HOME": "/nonexistent", "XDG_RUNTIME_DIR": ""])
    #expect(closed.status == 1 && closed.errors.contains("user.max_user_namespaces"), "\(closed.errors)")
  }

  @Test(arguments: [false, true])
  func mountStaysWhileAppsRun(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    func start() throws {
      let begun = try fixture.shell(
        "\"$INSULA\" run --store \"$POINT\" \"$APP\" -- sleep 60 > /dev/null 2>&1 & running 1")
      #expect(begun.status == 0, "\(begun.errors)")
    }
    let first = try #require(try fixture.mounted.daemon())
    try start()
    let refused = try fixture.mounted.run("unmount", fixture.mounted.point)
    #expect(refused.status == 3 && refused.errors.contains(RunFixture.identifier), "\(refused.errors)")
    #expect(refused.errors.contains(fixture.user.name) && fixture.mounted.isMounted)
    let ended = try fixture.mounted.run("unmount", fixture.mounted.point, "--lazy")
    #expect(ended.status == 0 && ended.errors.contains("ended \(RunFixture.identifier)"), "\(ended.errors)")
    #expect(try Program.waitForEnd(first))
    #expect(!fixture.mounted.isMounted)
    // Told by a signal, it ends them too, and its log says so.
    try fixture.mounted.mount()
    try start()
    let daemon = try #require(try fixture.mounted.daemon())
    kill(daemon, SIGTERM)
    #expect(try Program.waitForEnd(daemon))
    let log = fixture.mounted.temporary.text(of: "store/state/daemon.log") ?? ""
    #expect(log.contains("\(RunFixture.identifier) of uid \(fixture.user.uid)"), "\(log)")
    #expect(!fixture.mounted.isMounted)
  }

  /// The thread that ends the daemon waits for locks that others hold; one whose number was wrong died of it
  /// in one of eight rounds.
  @Test(arguments: [false, true])
  func unmountAlwaysSaysWhatItEnded(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    for round in 1...8 {
      let daemon = try #require(try fixture.mounted.daemon())
      let begun = try fixture.shell(
        "\"$INSULA\" run --store \"$POINT\" \"$APP\" -- sleep 60 > /dev/null 2>&1 & running 1")
      #expect(begun.status == 0, "\(begun.errors)")
      let ended = try fixture.mounted.run("unmount", fixture.mounted.point, "--lazy")
      #expect(ended.status == 0 && ended.errors.contains("ended \(RunFixture.identifier)"), "round \(round)")
      #expect(try Program.waitForEnd(daemon))
      if round < 8 { try fixture.mounted.mount() }
    }
    let log = fixture.mounted.temporary.text(of: "store/state/daemon.log") ?? ""
    #expect(!log.contains("Fatal error"), "\(log)")
  }

  @Test func appStaysWhatItIsWhileItRuns() throws {
    let fixture = try RunFixture()
    let bundle = fixture.mounted.temporary.appending("store/Notes-made/Notes.app")
    let begun = try fixture.shell(
      "\"$INSULA\" run --store \"$POINT\" \"$APP\" -- sleep 60 > /dev/null 2>&1 & running 1")
    #expect(begun.status == 0, "\(begun.errors)")
    for words in [["uninstall", RunFixture.identifier], ["update", bundle, "--allow-downgrade"]] {
      let refused = try fixture.mounted.run(words + ["--store", fixture.mounted.store])
      #expect(
        refused.status == 3 && refused.errors.contains("'insula kill \(RunFixture.identifier)'"),
        "\(refused.errors)")
    }
    // Others come and go.
    try fixture.install("Other")
    try fixture.succeed("uninstall", "org.example.other", "--store", fixture.mounted.store)
    try fixture.succeed("kill", RunFixture.identifier, "--store", fixture.mounted.store)
    try fixture.succeed("update", bundle, "--allow-downgrade", "--store", fixture.mounted.store)
    try fixture.succeed("uninstall", RunFixture.identifier, "--store", fixture.mounted.store)
    #expect(try fixture.shell("insula run $APP -- true").status == 1)
  }

  /// Whoever works at the moment gets an error, and nobody hangs.
  @Test func daemonThatIsKilledEndsTheView() throws {
    let fixture = try RunFixture()
    let begun = try fixture.shell(
      """
      "$INSULA" run --store "$POINT" "$APP" -- sh -c '
        echo > Documents/ready; while echo > Documents/x; do sleep 0.05; done; exit 5' > /dev/null 2>&1 &
      echo $!; until [ -e $DATA/Documents/ready ] || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      """)
    let pid = try #require(Int32(begun.output.dropLast()))
    try fixture.mounted.killDaemon()
    #expect(try Program.waitForEnd(pid))
    #expect(try fixture.mounted.run("unmount", fixture.mounted.point).status == 0)
    try fixture.mounted.mount()
    #expect(try fixture.inside("true").status == 0)
  }

  private static let babble = Checkout.path("Tests/Fixtures/babble.py")

  /// Neither does it stop the daemon, nor does anything stay of it.
  @Test(arguments: [false, true])
  func senselessRequestsAreAnsweredOrEnded(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let daemon = try #require(try fixture.mounted.daemon())
    #expect(try fixture.inside("true").status == 0)
    let before = try fixture.mounted.descriptors()
    let socket =
      rootless ? "\(fixture.mounted.store)/state/control.sock" : try fixture.mounted.socket()
    for seed in 1...3 {
      let result = try fixture.shell("exec /usr/bin/python3 \(Self.babble) \(socket) \(seed)")
      #expect(
        result.status == 0 && Int(result.output.dropLast()) ?? 0 > 50,
        "seed \(seed): \(result.output)\(result.errors)")
    }
    #expect(try fixture.inside("echo fine").output == "fine\n")
    #expect(try eventually { try fixture.mounted.count("views") == 0 })
    #expect(try eventually { try fixture.mounted.descriptors() <= before + 4 })
    #expect(try fixture.mounted.daemon() == daemon)
  }
}
