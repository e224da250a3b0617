// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Store
internal import TestSupport
internal import Testing

@Suite struct UpdateTests {
  private let fixture: AppFixture

  init() throws {
    fixture = try AppFixture(teams: ["TEAM1", "TEAM2"])
    try fixture.bundle {
      $0.version = "2"; $0.shortVersion = "1.1"; $0.groups = ["group.old", "group.both"]
    }
    try fixture.install(for: fixture.users)
  }

  private var place: String { "\(fixture.home)/Applications" }
  private var library: String { "\(fixture.home)/Library" }
  private let data = "Containers/org.example.editor/Data"

  private func update(
    _ name: String = "Editor.app", allowingDowngrade: Bool = false,
    observer: any TreeObserver = NoTreeObserver()
  ) throws -> InstalledApp {
    try fixture.update(name, for: fixture.users, allowingDowngrade: allowingDowngrade, observer: observer)
  }

  @Test func newVersionTakesThePlaceOfTheOld() throws {
    try fixture.temporary.write("mine", to: "store/tree/\(library)/\(data)/Documents/letter")
    let before = try fixture.registry.apps()
    let source = try fixture.bundle {
      $0.version = "3"; $0.files = ["Resources/new": "new"]
    }
    let observer = Recorder()
    let app = try update(observer: observer)
    #expect(app.version == "3" && app.path == before.first?.path && app.seal != before.first?.seal)
    #expect(try Program.run(["diff", "-r", source, "\(fixture.tree)/\(app.path)"]).status == 0)
    #expect(try fixture.registry.apps() == [app])
    #expect(fixture.text("\(library)/\(data)/Documents/letter") == "mine")
    #expect(
      observer.all == [
        .replaced(BundlePlace(path: app.path), seal: app.seal, before: try #require(before.first).seal)
      ])
    #expect(try fixture.staged() == [])
    #expect(try fixture.findings(deep: true) == [])
  }

  @Test func groupsComeAndGo() throws {
    try fixture.bundle {
      $0.version = "3"
      $0.groups = ["group.both", "group.new"]
      $0.clouds = ["iCloud.new"]
    }
    _ = try update()
    #expect(try fixture.names("\(library)/Group Containers") == ["group.both", "group.new"])
    #expect(try fixture.names("\(library)/Mobile Documents") == ["iCloud~new"])
    #expect(try fixture.findings() == [])
  }

  @Test func groupThatHasAnotherMemberStays() throws {
    try fixture.bundle("Viewer.app") {
      $0.identifier = "org.example.viewer"; $0.groups = ["group.old"]
    }
    try fixture.install("Viewer.app", for: fixture.users)
    try fixture.bundle { $0.version = "3" }
    _ = try update()
    #expect(try fixture.names("\(library)/Group Containers") == ["group.old"])
  }

  @Test func newNameOfTheBundleIsTakenOver() throws {
    try fixture.bundle("Editor 3.app") { $0.version = "3" }
    let observer = Recorder()
    let before = try #require(try fixture.registry.apps().first)
    let app = try update("Editor 3.app", observer: observer)
    #expect(app.path == "\(place)/Editor 3.app")
    #expect(try fixture.names(place) == ["Editor 3.app"])
    #expect(
      observer.all == [
        .appears(BundlePlace(path: app.path), seal: app.seal),
        .goes(BundlePlace(path: before.path), seal: before.seal),
      ])
    let links = try fixture.names("\(library)/\(data)").filter { $0.hasSuffix(".app") }
    #expect(links == ["Editor 3.app"])
    #expect(fixture.text("\(library)/\(data)/Editor 3.app/Contents/Info.plist") != nil)
    #expect(try fixture.staged() == [])
    #expect(try fixture.findings(deep: true) == [])
  }

  @Test func newNameMayDifferInCaseOnly() throws {
    try fixture.bundle("EDITOR.app") { $0.version = "3" }
    #expect(try update("EDITOR.app").path == "\(place)/EDITOR.app")
    #expect(try fixture.names(place) == ["EDITOR.app"])
  }

  @Test func bundleThatIsGoneIsPutBack() throws {
    let old = try TemporaryDirectory.open("\(fixture.tree)/\(place)")
    try "Editor.app".withName { (name) throws(Errno) in try old.fd.removeTree(name) }
    #expect(try fixture.findings().count == 1)
    try fixture.bundle { $0.version = "3" }
    _ = try update()
    #expect(try fixture.findings(deep: true) == [])
  }

  @Test(arguments: [
    ("2", "1.1", "same"), ("2.0", "1.1.0", "same"), ("1.9", "9", "older"), ("2", "1.0.9", "older"),
    ("2b1", "1.1", "older"), ("2.0.1", "", "later"), ("2", "1.1.1", "later"), ("10", "1.1", "later"),
  ])
  func onlyLaterVersionsAreTaken(version: String, shortVersion: String, answer: String) throws {
    try fixture.bundle {
      $0.version = version; $0.shortVersion = shortVersion
    }
    let before = try fixture.snapshot()
    let found =
      switch appFailure({ _ = try update() }) {
      case .sameVersion: "same"
      case .olderVersion: "older"
      case nil: "later"
      case let failure?: "\(failure)"
      }
    #expect(found == answer)
    if answer != "later" {
      #expect(try fixture.snapshot() == before)
      #expect(try update(allowingDowngrade: true).version == version)
    }
    #expect(try fixture.staged() == [])
    #expect(try fixture.findings(deep: true) == [])
  }

  @Test func otherAppIsNoUpdate() throws {
    let before = try fixture.snapshot()
    try fixture.bundle {
      $0.version = "3"; $0.team = "TEAM2"
    }
    let team = AppFailure.otherTeam(identifier: "org.example.editor", installed: "TEAM1", new: "TEAM2")
    #expect(appFailure { _ = try update() } == team)
    #expect(appFailure { _ = try update(allowingDowngrade: true) } == team)
    try fixture.bundle {
      $0.version = "3"; $0.identifier = "org.example.viewer"
    }
    #expect(
      appFailure { _ = try update() }
        == .otherIdentifier(installed: "org.example.editor", new: "org.example.viewer"))
    // Names of containers, and rows of the registry, are spelled as it was installed.
    for name in ["Editor.app", "Spelled.app"] {
      try fixture.bundle(name) {
        $0.version = "3"; $0.identifier = "org.example.Editor"
      }
      #expect(
        appFailure { _ = try update(name) }
          == .otherIdentifier(installed: "org.example.editor", new: "org.example.Editor"))
    }
    try fixture.bundle("Viewer.app") {
      $0.version = "3"; $0.identifier = "org.example.viewer"
    }
    #expect(
      appFailure { _ = try update("Viewer.app") }
        == .notInstalled(identifier: "org.example.viewer", domain: "/\(place)"))
    try fixture.bundle { $0.version = "3" }
    #expect(
      appFailure { _ = try fixture.update() }
        == .notInstalled(identifier: "org.example.editor", domain: "/Applications"))
    try fixture.bundle("Other.app") { $0.version = "3" }
    mkdir("\(fixture.tree)/\(place)/Other.app", 0o755)
    #expect(
      appFailure { _ = try update("Other.app") } == .inTheWay(path: "/\(place)/Other.app", what: "a folder"))
    rmdir("\(fixture.tree)/\(place)/Other.app")
    // The times of the directory that was made and removed are new.
    #expect(try fixture.snapshot(place + "/Editor.app") != "" && before.contains("Editor.app"))
    #expect(try fixture.findings(deep: true) == [])
  }

  @Test func refusedChangeLeavesTheOldVersion() throws {
    let before = try fixture.registry.apps()
    try fixture.bundle { $0.version = "3" }
    #expect(appFailure { _ = try update(observer: Recorder(failure: .EBUSY)) } != nil)
    #expect(try fixture.registry.apps() == before)
    #expect(try fixture.registry.intents() == [])
    #expect(try fixture.staged() == [])
    #expect(try fixture.findings(deep: true) == [])
    _ = try update()
  }
}
