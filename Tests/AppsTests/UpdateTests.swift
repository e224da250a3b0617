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
  private let house: AppHouse

  init() throws {
    house = try AppHouse(teams: ["TEAM1", "TEAM2"])
    try house.bundle {
      $0.version = "2"; $0.shortVersion = "1.1"; $0.groups = ["group.old", "group.both"]
    }
    try house.install(for: house.users)
  }

  private var place: String { "\(house.home)/Applications" }
  private var library: String { "\(house.home)/Library" }
  private let data = "Containers/org.example.editor/Data"

  private func update(
    _ name: String = "Editor.app", allowingDowngrade: Bool = false, watch: any TreeWatch = NobodyWatches()
  ) throws -> InstalledApp {
    try house.update(name, for: house.users, allowingDowngrade: allowingDowngrade, watch: watch)
  }

  @Test func newVersionTakesThePlaceOfTheOld() throws {
    try house.temporary.write("mine", to: "store/tree/\(library)/\(data)/Documents/letter")
    let before = try house.registry.apps()
    let source = try house.bundle {
      $0.version = "3"; $0.files = ["Resources/new": "new"]
    }
    let watch = Recorder()
    let app = try update(watch: watch)
    #expect(app.version == "3" && app.path == before.first?.path && app.seal != before.first?.seal)
    #expect(try Program.run(["diff", "-r", source, "\(house.tree)/\(app.path)"]).status == 0)
    #expect(try house.registry.apps() == [app])
    #expect(house.text("\(library)/\(data)/Documents/letter") == "mine")
    #expect(
      watch.all == [
        .replaced(BundlePlace(path: app.path), seal: app.seal, before: try #require(before.first).seal)
      ])
    #expect(try house.staged() == [])
    #expect(try house.findings(deep: true) == [])
  }

  @Test func groupsComeAndGo() throws {
    try house.bundle {
      $0.version = "3"
      $0.groups = ["group.both", "group.new"]
      $0.clouds = ["iCloud.new"]
    }
    _ = try update()
    #expect(try house.names("\(library)/Group Containers") == ["group.both", "group.new"])
    #expect(try house.names("\(library)/Mobile Documents") == ["iCloud~new"])
    #expect(try house.findings() == [])
  }

  @Test func groupThatHasAnotherMemberStays() throws {
    try house.bundle("Viewer.app") {
      $0.identifier = "org.example.viewer"; $0.groups = ["group.old"]
    }
    try house.install("Viewer.app", for: house.users)
    try house.bundle { $0.version = "3" }
    _ = try update()
    #expect(try house.names("\(library)/Group Containers") == ["group.old"])
  }

  @Test func newNameOfTheBundleIsTakenOver() throws {
    try house.bundle("Editor 3.app") { $0.version = "3" }
    let watch = Recorder()
    let before = try #require(try house.registry.apps().first)
    let app = try update("Editor 3.app", watch: watch)
    #expect(app.path == "\(place)/Editor 3.app")
    #expect(try house.names(place) == ["Editor 3.app"])
    #expect(
      watch.all == [
        .appears(BundlePlace(path: app.path), seal: app.seal),
        .goes(BundlePlace(path: before.path), seal: before.seal),
      ])
    let links = try house.names("\(library)/\(data)").filter { $0.hasSuffix(".app") }
    #expect(links == ["Editor 3.app"])
    #expect(house.text("\(library)/\(data)/Editor 3.app/Contents/Info.plist") != nil)
    #expect(try house.staged() == [])
    #expect(try house.findings(deep: true) == [])
  }

  @Test func newNameMayDifferInCaseOnly() throws {
    try house.bundle("EDITOR.app") { $0.version = "3" }
    #expect(try update("EDITOR.app").path == "\(place)/EDITOR.app")
    #expect(try house.names(place) == ["EDITOR.app"])
  }

  @Test func bundleThatIsGoneIsPutBack() throws {
    let old = try TemporaryDirectory.open("\(house.tree)/\(place)")
    try "Editor.app".withName { (name) throws(Errno) in try old.fd.removeTree(name) }
    #expect(try house.findings().count == 1)
    try house.bundle { $0.version = "3" }
    _ = try update()
    #expect(try house.findings(deep: true) == [])
  }

  @Test(arguments: [
    ("2", "1.1", "same"), ("2.0", "1.1.0", "same"), ("1.9", "9", "older"), ("2", "1.0.9", "older"),
    ("2b1", "1.1", "older"), ("2.0.1", "", "later"), ("2", "1.1.1", "later"), ("10", "1.1", "later"),
  ])
  func onlyLaterVersionsAreTaken(version: String, shortVersion: String, answer: String) throws {
    try house.bundle {
      $0.version = version; $0.shortVersion = shortVersion
    }
    let before = try house.snapshot()
    let found =
      switch appFailure({ _ = try update() }) {
      case .sameVersion: "same"
      case .olderVersion: "older"
      case nil: "later"
      case let failure?: "\(failure)"
      }
    #expect(found == answer)
    if answer != "later" {
      #expect(try house.snapshot() == before)
      #expect(try update(allowingDowngrade: true).version == version)
    }
    #expect(try house.staged() == [])
    #expect(try house.findings(deep: true) == [])
  }

  @Test func otherAppIsNoUpdate() throws {
    let before = try house.snapshot()
    try house.bundle {
      $0.version = "3"; $0.team = "TEAM2"
    }
    let team = AppFailure.otherTeam(identifier: "org.example.editor", installed: "TEAM1", new: "TEAM2")
    #expect(appFailure { _ = try update() } == team)
    #expect(appFailure { _ = try update(allowingDowngrade: true) } == team)
    try house.bundle {
      $0.version = "3"; $0.identifier = "org.example.viewer"
    }
    #expect(
      appFailure { _ = try update() }
        == .otherIdentifier(installed: "org.example.editor", new: "org.example.viewer"))
    try house.bundle("Viewer.app") {
      $0.version = "3"; $0.identifier = "org.example.viewer"
    }
    #expect(
      appFailure { _ = try update("Viewer.app") }
        == .notInstalled(identifier: "org.example.viewer", domain: "/\(place)"))
    try house.bundle { $0.version = "3" }
    #expect(
      appFailure { _ = try house.update() }
        == .notInstalled(identifier: "org.example.editor", domain: "/Applications"))
    try house.bundle("Other.app") { $0.version = "3" }
    mkdir("\(house.tree)/\(place)/Other.app", 0o755)
    #expect(
      appFailure { _ = try update("Other.app") } == .inTheWay(path: "/\(place)/Other.app", what: "a folder"))
    rmdir("\(house.tree)/\(place)/Other.app")
    // The times of the directory that was made and removed are new.
    #expect(try house.snapshot(place + "/Editor.app") != "" && before.contains("Editor.app"))
    #expect(try house.findings(deep: true) == [])
  }

  @Test func refusedChangeLeavesTheOldVersion() throws {
    let before = try house.registry.apps()
    try house.bundle { $0.version = "3" }
    #expect(appFailure { _ = try update(watch: Recorder(failure: .EBUSY)) } != nil)
    #expect(try house.registry.apps() == before)
    #expect(try house.registry.intents() == [])
    #expect(try house.staged() == [])
    #expect(try house.findings(deep: true) == [])
    _ = try update()
  }
}
