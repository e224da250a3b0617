// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Updates of apps that run, by the commands that a person types.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct RunUpdateTests {
  /// Signs another version of the app; its path.
  private func make(_ version: String, _ fixture: RunFixture, _ name: String = "Notes") throws -> String {
    let place = "store/\(name)-made/\(name).app"
    let text = try #require(fixture.mounted.temporary.text(of: "\(place)/Contents/Info.plist"))
    let keys = ["CFBundleVersion", "CFBundleShortVersionString"]
    var lines = text.components(separatedBy: "\n")
    for index in lines.indices.dropLast() where keys.contains(where: { lines[index].contains("<key>\($0)<") })
    {
      lines[index + 1] = "\t<string>\(version)</string>"
    }
    try fixture.mounted.temporary.write(
      lines.joined(separator: "\n"), to: "\(place)/Contents/Info.plist")
    let path = fixture.mounted.temporary.appending(place)
    try fixture.succeed("sign", path, "--force", "--identity", "tester")
    return path
  }

  /// Starts the app, which runs until its user says that it is to end.
  private func start(_ fixture: RunFixture) throws {
    let begun = try fixture.shell(
      "\"$INSULA\" run --store \"$POINT\" \"$APP\" -- sleep 300 > /dev/null 2>&1 & running 1")
    try #require(begun.status == 0, "\(begun.errors)")
  }

  /// Has the app say which version it is.
  private static let asksForItsVersion =
    "run sh -c 'grep -A1 CFBundleVersion \"$0/Contents/Info.plist\"' \"$BUNDLE\""

  private func version(_ fixture: RunFixture, of app: String = RunFixture.identifier) throws -> String {
    try fixture.mounted.run("apps", "--store", fixture.mounted.store).output
      .split(separator: "\n").first { $0.contains(app) }.map(String.init) ?? ""
  }

  /// Whether the new version is there within some seconds.
  private func takesPlace(
    _ version: String, _ fixture: RunFixture, of app: String = RunFixture.identifier
  ) throws -> Bool {
    try eventually {
      let line = try self.version(fixture, of: app)
      return line.contains(version) && !line.contains("waits")
    }
  }

  @Test(arguments: [false, true]) func updateTakesPlaceWhenTheAppEnds(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let bundle = try make("7.5", fixture)
    try start(fixture)
    let refused = try fixture.mounted.run("update", bundle, "--store", fixture.mounted.store)
    #expect(refused.status == 3 && refused.errors.contains("--when-closed"), "\(refused.errors)")
    let waits = try fixture.mounted.run("update", bundle, "--when-closed", "--store", fixture.mounted.store)
    #expect(waits.status == 0 && waits.output.contains("takes its place when it ends"), "\(waits)")
    #expect(try version(fixture).contains("(7.5 waits)"))
    let info = try fixture.mounted.run("info", RunFixture.identifier, "--store", fixture.mounted.store)
    #expect(info.output.contains("to 7.5, waits since"), "\(info.output)")
    // Others who start it have what runs.
    let inside = try fixture.shell(Self.asksForItsVersion)
    #expect(inside.status == 0 && !inside.output.contains("7.5"), "\(inside)")
    #expect(try version(fixture).contains("(7.5 waits)"), "the first one still runs")
    try fixture.succeed("kill", RunFixture.identifier, "--store", fixture.mounted.store)
    #expect(try takesPlace("7.5", fixture))
    let seen = try fixture.shell("grep -A1 CFBundleVersion $BUNDLE/Contents/Info.plist")
    #expect(seen.output.contains("7.5"), "\(seen)")
    #expect(try fixture.inside("true").status == 0)
    let log = try fixture.mounted.run("log", "--store", fixture.mounted.store)
    #expect(log.output.contains("an update waits until it ends: \(RunFixture.identifier)"), "\(log.output)")
    #expect(log.output.contains("updated \(RunFixture.identifier)"), "\(log.output)")
    #expect(try fixture.mounted.temporary.names(in: "store/state/updates") == [])
    #expect(try fixture.mounted.run("check", fixture.mounted.store).status == 0)
  }

  /// The attack: a user starts an app again and again, so that it never ends.
  @Test func updateTakesPlaceThoughTheAppIsStartedAgainAndAgain() throws {
    let fixture = try RunFixture()
    let bundle = try make("7.5", fixture)
    // They go on while there is such a file.
    let sign = try fixture.mounted.temporary.write("", to: "sign")
    defer { unlink(sign) }
    let begun = try fixture.shell(
      """
      export SIGN="\(sign)"
      for one in 1 2 3 4 5 6 7 8 9 10; do
        timeout 200 sh -c 'while [ -e "$SIGN" ]; do "$INSULA" run --store "$POINT" "$APP" -- sleep 2; done' &
      done > /dev/null 2>&1
      """)
    try #require(begun.status == 0, "\(begun.errors)")
    let running = { try fixture.mounted.run("ps", "--store", fixture.mounted.store).output }
    #expect(try eventually { try running().components(separatedBy: RunFixture.identifier).count > 3 })
    try fixture.succeed("update", bundle, "--when-closed", "--store", fixture.mounted.store)
    #expect(try version(fixture).contains("(7.5 waits)"))
    try fixture.succeed("kill", RunFixture.identifier, "--store", fixture.mounted.store)
    let after = try version(fixture)
    #expect(after.contains("7.5") && !after.contains("waits"), "\(after)")
    // Whoever starts it after that has the new one.
    #expect(try eventually { try running().contains(RunFixture.identifier) })
  }

  @Test(arguments: [false, true]) func itOutlivesTheDaemonAndItsWorker(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let bundle = try make("7.5", fixture)
    try start(fixture)
    try fixture.succeed("update", bundle, "--when-closed", "--store", fixture.mounted.store)
    // Another worker goes on, and the app with it.
    let worker = try #require(try fixture.mounted.daemon())
    #expect(kill(worker, SIGKILL) == 0)
    #expect(eventually { (try? fixture.mounted.daemon()).map { $0 != worker } ?? false })
    #expect(try version(fixture).contains("(7.5 waits)"))
    try fixture.mounted.killDaemon()
    _ = try fixture.mounted.run("unmount", fixture.mounted.point)
    #expect(try version(fixture).contains("(7.5 waits)"), "looking changes nothing")
    try fixture.mounted.mount()
    #expect(try takesPlace("7.5", fixture))
    #expect(try fixture.inside("true").status == 0)
  }

  @Test func nextStartHasTheNewVersion() throws {
    let fixture = try RunFixture()
    let bundle = try make("7.5", fixture)
    try start(fixture)
    try fixture.succeed("update", bundle, "--when-closed", "--store", fixture.mounted.store)
    let result = try fixture.shell(
      """
      "$INSULA" kill --store "$POINT" "$APP"
      \(Self.asksForItsVersion)
      """)
    #expect(result.output.contains("7.5"), "\(result)")
  }

  @Test func itIsCancelledAndGoesWithTheApp() throws {
    let fixture = try RunFixture()
    let bundle = try make("7.5", fixture)
    try start(fixture)
    try fixture.succeed("update", bundle, "--when-closed", "--store", fixture.mounted.store)
    let words = ["update", "--cancel", RunFixture.identifier, "--store"]
    // Everyone's app is nobody's own.
    let refused = try fixture.shell("insula update --cancel $APP")
    #expect(refused.status == 7, "\(refused.errors)")
    let cancelled = try fixture.mounted.run(words + [fixture.mounted.store])
    #expect(cancelled.status == 0 && cancelled.output.contains("was cancelled"), "\(cancelled)")
    let again = try fixture.mounted.run(words + [fixture.mounted.store])
    #expect(again.status == 1 && again.errors.contains("no update of"), "\(again)")
    #expect(try fixture.mounted.temporary.names(in: "store/state/updates") == [])
    try fixture.succeed("kill", RunFixture.identifier, "--store", fixture.mounted.store)
    #expect(try !version(fixture).contains("7.5"))
  }

  /// What is trusted no more by then is given up, and the log says so.
  @Test func whatIsTrustedNoMoreIsGivenUp() throws {
    let fixture = try RunFixture()
    let bundle = try make("7.5", fixture)
    try start(fixture)
    try fixture.succeed("update", bundle, "--when-closed", "--store", fixture.mounted.store)
    for name in try fixture.mounted.temporary.names(in: "store/keys/trust") {
      unlink(fixture.mounted.temporary.appending("store/keys/trust/\(name)"))
    }
    try fixture.succeed("kill", RunFixture.identifier, "--store", fixture.mounted.store)
    #expect(
      try eventually {
        try fixture.mounted.run("log", "--store", fixture.mounted.store).output.contains("it was given up")
      })
    #expect(try !version(fixture).contains("7.5"))
    #expect(try fixture.mounted.temporary.names(in: "store/state/updates") == [])
  }

  /// The attack: an update that can't be put in place is read again whenever any app of anybody ends.
  ///
  /// It waits for a while, or for its own app; others take their places meanwhile.
  @Test func updateThatFailedWaitsForItsOwnApp() throws {
    let fixture = try RunFixture()
    let mounted = fixture.mounted
    try fixture.install("Draw")
    let draw = "org.example.draw"
    let log = { try mounted.run("log", "--store", mounted.store).output }
    try start(fixture)
    let bundle = try make("7.5", fixture)
    try fixture.succeed("update", bundle, "--when-closed", "--store", mounted.store)
    // Nobody knows now whom the store trusts.
    let damaged = try mounted.temporary.write("", to: "store/keys/trust/damaged.pem")
    try fixture.succeed("kill", RunFixture.identifier, "--store", mounted.store)
    #expect(try eventually { try log().contains("it is tried again later") })
    unlink(damaged)
    // The second one takes its place in another turn of the thread for updates.
    for version in ["7.5", "7.6"] {
      let begun = try fixture.shell("insula run \(draw) -- sleep 300 > /dev/null 2>&1 & running 1")
      try #require(begun.status == 0, "\(begun)")
      let bundle = try make(version, fixture, "Draw")
      try fixture.succeed("update", bundle, "--when-closed", "--store", mounted.store)
      // A signal ends it, and that thread alone takes note of that.
      try fixture.succeed("kill", draw, "--signal", "KILL", "--store", mounted.store)
      #expect(try takesPlace(version, fixture, of: draw))
    }
    #expect(try version(fixture).contains("(7.5 waits)"))
    let started = try fixture.shell(Self.asksForItsVersion)
    #expect(started.output.contains("7.5"), "\(started)")
    #expect(try !version(fixture).contains("waits"))
  }
}
