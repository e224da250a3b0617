// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing

@Suite struct UninstallTests {
  private let fixture: AppFixture
  private var library: String { "\(fixture.home)/Library" }

  init() throws {
    fixture = try AppFixture()
    try fixture.bundle {
      $0.groups = ["group.one", "group.two"]; $0.clouds = ["iCloud.mine"]
    }
  }

  @Test func nothingButTheCloudIsLeft() throws {
    let app = try fixture.install(for: fixture.users)
    let observer = Recorder()
    #expect(try fixture.uninstall(of: fixture.users, observer: observer) == app)
    #expect(observer.all == [.goes(BundlePlace(path: app.path), seal: app.seal)])
    #expect(try fixture.names("\(fixture.home)/Applications") == [])
    #expect(try fixture.names("\(library)/Containers") == [])
    #expect(try fixture.names("\(library)/Group Containers") == [])
    #expect(try fixture.names("\(library)/Mobile Documents") == ["iCloud~mine"])
    #expect(try fixture.registry.apps() == [] && fixture.registry.intents() == [])
    #expect(try fixture.staged() == [])
    #expect(try fixture.findings() == [])
    #expect(
      appFailure { try fixture.uninstall(of: fixture.users) }
        == .notInstalled(identifier: "org.example.editor", domain: "/\(fixture.users.path)"))
  }

  @Test(.enabled(if: Program.isRoot, "only root can make a file that can't be removed"))
  func containerThatCantBeRemovedKeepsNothingElse() throws {
    try fixture.install(for: fixture.users)
    let held = "\(fixture.tree)/\(library)/Containers/org.example.editor/Data/Documents/held"
    #expect(FileManager.default.createFile(atPath: held, contents: nil))
    #expect(chown(held, fixture.account.uid, fixture.account.gid) == 0)
    try #require(Program.run(["chattr", "+i", held]).status == 0)
    defer {
      for name in (try? fixture.staged()) ?? [] {
        _ = try? Program.run(["chattr", "-R", "-i", "\(fixture.store.path)/state/staging/\(name)"])
      }
      _ = try? Program.run(["chattr", "-R", "-i", "\(fixture.tree)/\(library)/Containers"])
    }
    try fixture.uninstall(of: fixture.users)
    #expect(try fixture.names("\(library)/Containers") == [])
    let left = try fixture.installer().deleteRemoved(nil, of: nil, by: fixture.owner).left
    #expect(left.map(\.reason) == ["the backing filesystem refuses to remove it"])
    #expect(try fixture.names("\(library)/Group Containers") == [])
    // Nor is it a reason not to use the store.
    try fixture.installer().recover()
    try fixture.bundle("Other.app") { $0.identifier = "org.example.other" }
    try fixture.install("Other.app")
  }

  /// While a home is away, whoever has its owner's number may be somebody else.
  @Test func whatWaitsForItsHomeIsNotDeletedByTime() throws {
    try fixture.install(for: fixture.users)
    try fixture.uninstall(of: fixture.users)
    let count = try fixture.registry.removedContainers().count
    try #require(count > 0)
    let (home, away) = ("\(fixture.tree)/\(fixture.home)", "\(fixture.tree)/Users/.away")
    try #require(rename(home, away) == 0)
    let later = try fixture.installer(ahead: 100 * 24 * 60 * 60)
    #expect(try later.deleteOldRemoved(.usual).containers.isEmpty)
    #expect(try later.removed(of: fixture.account.uid, by: fixture.owner).containers.isEmpty)
    try #require(rename(away, home) == 0)
    #expect(try later.removed(of: fixture.account.uid, by: fixture.owner).containers.count == count)
    #expect(try later.deleteOldRemoved(.usual).containers.count == count)
  }

  /// What a user puts in the place of their apps keeps nobody else from changing theirs.
  @Test(arguments: ["file", "link", "nothing"]) func recoveryGoesPastWhatIsInTheWay(what: String) throws {
    try fixture.install(for: fixture.users)
    let app = try #require(try fixture.registry.apps().first)
    try fixture.uninstall(of: fixture.users)
    fixture.registry.leave(try fixture.registry.begin(.install(app)))
    let directory = "\(fixture.tree)/\(fixture.users.path)"
    #expect(rename(directory, directory + "-aside") == 0)
    switch what {
    case "file": #expect(FileManager.default.createFile(atPath: directory, contents: nil))
    case "link": #expect(symlink(directory + "-aside", directory) == 0)
    default: break
    }
    // A command about another place leaves it to whoever opens the store.
    try fixture.bundle("Other.app") { $0.identifier = "org.example.other" }
    try fixture.install("Other.app")
    #expect(try fixture.registry.intents().count == 1)
    try fixture.installer().recover()
    #expect(try fixture.registry.intents() == [])
    #expect(try fixture.registry.apps().map(\.identifier.text) == ["org.example.other"])
  }

  /// Whoever moves the directory of their apps away has no app any more, and can be removed.
  @Test func appIsGoneWhoseDirectoryIs() throws {
    try fixture.install(for: fixture.users)
    let directory = "\(fixture.tree)/\(fixture.users.path)"
    #expect(rename(directory, directory + "-aside") == 0)
    try fixture.uninstall(of: fixture.users)
    #expect(try fixture.registry.apps() == [] && fixture.registry.intents() == [])
  }

  @Test func dataThatIsKeptIsThereForTheNext() throws {
    try fixture.install(for: fixture.users)
    let letter = "\(library)/Containers/org.example.editor/Data/Documents/letter"
    try fixture.temporary.write("mine", to: "store/tree/\(letter)")
    try fixture.uninstall(of: fixture.users, keepingData: true)
    #expect(fixture.text(letter) == "mine")
    #expect(try fixture.findings() == [])
    try fixture.install(for: fixture.users)
    #expect(fixture.text(letter) == "mine")
  }

  /// An update of everyone's app brings the containers of its users up to date, but uses none that is kept.
  @Test func keptDataStaysKeptThroughAnUpdate() throws {
    try fixture.install(for: fixture.users)
    let letter = "\(library)/Containers/org.example.editor/Data/Documents/letter"
    try fixture.temporary.write("mine", to: "store/tree/\(letter)")
    try fixture.uninstall(of: fixture.users, keepingData: true)
    try fixture.install()
    try fixture.bundle { $0.version = "2" }
    try fixture.update()
    try fixture.uninstall()
    #expect(fixture.text(letter) == "mine")
    // Another app may be everyone's; the data is used again only when its user starts it.
    try fixture.bundle { $0.version = "1" }
    let app = try fixture.install()
    let containers = try Containers(fixture.store, fixture.registry)
    _ = try containers.make(for: app, home: fixture.account.name)
    try fixture.uninstall()
    #expect(fixture.text(letter) == nil)
  }

  @Test func whatOthersStillHaveStays() throws {
    try fixture.install(for: fixture.users)
    try fixture.install(for: .everyone)
    try fixture.bundle("Viewer.app") {
      $0.identifier = "org.example.viewer"; $0.groups = ["group.two"]
    }
    try fixture.install("Viewer.app", for: fixture.users)
    try fixture.uninstall(of: fixture.users)
    // The machine's is still there for that user, and is what the container's link leads to now.
    let container = "\(library)/Containers/org.example.editor/Data"
    #expect(fixture.text("\(container)/Editor.app/Contents/Info.plist") != nil)
    #expect(try fixture.names("\(library)/Group Containers") == ["group.one", "group.two"])
    try fixture.uninstall(of: .everyone)
    #expect(try fixture.names("\(library)/Containers") == ["org.example.viewer"])
    #expect(try fixture.names("\(library)/Group Containers") == ["group.two"])
    #expect(try fixture.findings() == [])
  }

  @Test func bundleThatIsGoneIsNoHindrance() throws {
    let app = try fixture.install()
    let directory = try TemporaryDirectory.open(fixture.tree + "/Applications")
    try "Editor.app".withName { (name) throws(Errno) in try directory.fd.removeTree(name) }
    #expect(try fixture.uninstall() == app)
    #expect(try fixture.findings() == [])
  }

  @Test func refusedChangeLeavesTheApp() throws {
    let app = try fixture.install()
    let failure = appFailure { try fixture.uninstall(observer: Recorder(failure: .EBUSY)) }
    #expect(
      failure == .failed(doing: "remove", path: "\(fixture.tree)/Applications/Editor.app", errno: .EBUSY))
    #expect(try fixture.registry.apps() == [app])
    #expect(try fixture.findings(deep: true) == [])
    try fixture.uninstall()
  }
}
