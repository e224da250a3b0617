// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What users decide where it can't be noted: an app could fill the disk to keep what it has.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct ConsentNotedTests {
  /// Whoever runs the app while its user takes back what it had: it says when it has read, and when it can't
  /// any more.
  private static let reader = """
    cd "$HOME_OF_USER"; exec 3< Music/Music/song; cat Music/Music/song; touch "$HOME/Documents/has-read"
    n=0; while cat Music/Music/song > /dev/null 2>&1; do
      n=$((n + 1)); [ $n -lt 200 ] || { echo still; exit 9; }; sleep 0.05; done
    head -c 1 <&3; cat Pictures/All.photoslibrary/1 Music/Music/song
    """

  @Test(arguments: ["again", "another", "app", "unmount"])
  func takingBackHoldsWhereItCanNotBeNoted(next: String) throws {
    let fixture = try ConsentFixture()
    let mounted = fixture.fixture.mounted
    let journal = mounted.store + "/state/insula.db-journal"
    let documents = "\(fixture.home)/Library/Containers/\(ConsentFixture.player)/Data/Documents"
    #expect(try fixture.shell("decide allow media-library; decide allow photos").status == 0)
    // Its container is noted, too.
    #expect(try fixture.inside("true").status == 0)
    let full = try Program.run(["chattr", "+i", journal])
    try #require(full.status == 0, "\(full)")
    defer { _ = try? Program.run(["chattr", "-i", journal]) }
    let result = try fixture.shell(
      """
      out=$(mktemp)
      inside \(ConsentFixture.player) '\(Self.reader)' > $out 2>&1 &
      timeout 60 sh -c "until [ -e '\(documents)/has-read' ]; do sleep 0.05; done"
      "$INSULA" consent deny \(ConsentFixture.player) --store "$POINT" || echo "status $?"
      wait; cat $out
      """)
    #expect(result.errors.contains("can't be recorded") && result.output.contains("status 1"), "\(result)")
    #expect(result.output.contains("song\n") && !result.output.contains("still"), "\(result)")
    #expect(!result.output.contains("photo\n"), "one that fails leaves none of the others: \(result)")
    #expect(try fixture.state(of: "media-library") == "denied")
    // What allows something is not done where it can't be noted.
    let allowed = try fixture.shell("decide allow media-library")
    #expect(!allowed.output.contains("authorized"), "\(allowed)")
    #expect(try fixture.state(of: "media-library") == "denied")
    #expect(try Program.run(["chattr", "-i", journal]).status == 0)
    switch next {
    case "again": #expect(try fixture.shell("decide deny photos").output == "denied\n")
    case "another": #expect(try fixture.shell("decide allow contacts").output == "authorized\n")
    case "app": try fixture.fixture.install("Second")
    default: try fixture.fixture.succeed("unmount", mounted.point)
    }
    if next != "unmount" {
      try mounted.killDaemon()
      try unmount(mounted.point, lazily: true)
    }
    try mounted.mount()
    #expect(try fixture.state(of: "media-library") == "denied")
    #expect(try fixture.state(of: "photos") == "denied")
  }

  /// The process that could not record it is replaced, and nobody decides anything again.
  @Test(
    .enabled(if: KernelRelease.own >= KernelRelease(6, 9), "no process is replaced"),
    arguments: [false, true], [false, true])
  func takingBackOutlivesTheProcess(isRestart: Bool, rootless: Bool) throws {
    let fixture = try ConsentFixture(rootless: rootless)
    let mounted = fixture.fixture.mounted
    let journal = mounted.store + "/state/insula.db-journal"
    let services = ["media-library", "photos", "contacts"]
    for service in services {
      #expect(try fixture.shell("decide allow \(service)").output == "authorized\n")
    }
    // Its container is noted, too.
    #expect(try fixture.inside("true").status == 0)
    try #require(try Program.run(["chattr", "+i", journal]).status == 0)
    defer { _ = try? Program.run(["chattr", "-i", journal]) }
    #expect(try fixture.shell("decide deny media-library").output.contains("recorded"))
    #expect(try fixture.shell("decide reset photos").output.contains("recorded"))
    func states() throws -> [String] { try services.map { try fixture.state(of: $0) } }
    for _ in 0..<2 {
      try mounted.replaceWorker(byRestart: isRestart)
      #expect(try states() == ["denied", "not-determined", "authorized"])
    }
    let app = try fixture.inside("cat \"$HOME_OF_USER/Music/Music/song\"")
    #expect(app.ending == .failed && app.output.isEmpty, "\(app)")
    #expect(try Program.run(["chattr", "-i", journal]).status == 0)
    // What is decided from then on counts, also for the next process.
    #expect(try fixture.shell("decide allow photos").output == "authorized\n")
    try mounted.replaceWorker(byRestart: isRestart)
    #expect(try states() == ["denied", "authorized", "authorized"])
    // It is on the disk by now.
    try mounted.killDaemon()
    try unmount(mounted.point, lazily: true)
    try mounted.mount()
    #expect(try states() == ["denied", "authorized", "authorized"])
  }

  /// Takes back what was allowed while that can't be recorded; from then on it can be.
  private func denyUnrecorded(_ fixture: ConsentFixture) throws {
    let journal = fixture.fixture.mounted.store + "/state/insula.db-journal"
    #expect(try fixture.shell("decide allow media-library").output == "authorized\n")
    try #require(try Program.run(["chattr", "+i", journal]).status == 0)
    defer { _ = try? Program.run(["chattr", "-i", journal]) }
    #expect(try fixture.shell("decide deny media-library").output.contains("recorded"))
    #expect(try Program.run(["chattr", "-i", journal]).status == 0)
  }

  /// A restart that finds room again records it first.
  @Test(.enabled(if: KernelRelease.own >= KernelRelease(6, 9), "no process is replaced"))
  func restartRecordsWhatIsOwed() throws {
    let fixture = try ConsentFixture()
    let mounted = fixture.fixture.mounted
    try denyUnrecorded(fixture)
    try mounted.replaceWorker(byRestart: true)
    try mounted.killDaemon()
    try unmount(mounted.point, lazily: true)
    try mounted.mount()
    #expect(try fixture.state(of: "media-library") == "denied")
  }

  /// It has gone with its app.
  @Test func whatIsOwedGoesWithTheApp() throws {
    let fixture = try ConsentFixture()
    let mounted = fixture.fixture.mounted
    try denyUnrecorded(fixture)
    try fixture.fixture.succeed("uninstall", ConsentFixture.player, "--store", mounted.store)
    let bundle = mounted.temporary.appending("store/Player-made/Player.app")
    try fixture.fixture.succeed("install", bundle, "--store", mounted.store)
    #expect(try fixture.state(of: "media-library") == "not-determined")
  }
}
