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
  private let house: AppHouse
  private var library: String { "\(house.home)/Library" }

  init() throws {
    house = try AppHouse()
    try house.bundle {
      $0.groups = ["group.one", "group.two"]; $0.clouds = ["iCloud.mine"]
    }
  }

  @Test func nothingButTheCloudIsLeft() throws {
    let app = try house.install(for: house.users)
    let watch = Recorder()
    #expect(try house.uninstall(of: house.users, watch: watch) == app)
    #expect(watch.all == [.goes(BundlePlace(path: app.path), seal: app.seal)])
    #expect(try house.names("\(house.home)/Applications") == [])
    #expect(try house.names("\(library)/Containers") == [])
    #expect(try house.names("\(library)/Group Containers") == [])
    #expect(try house.names("\(library)/Mobile Documents") == ["iCloud~mine"])
    #expect(try house.registry.apps() == [] && house.registry.intents() == [])
    #expect(try house.staged() == [])
    #expect(try house.findings() == [])
    #expect(
      appFailure { try house.uninstall(of: house.users) }
        == .notInstalled(identifier: "org.example.editor", domain: "/\(house.users.path)"))
  }

  @Test(.enabled(if: Program.isRoot, "only root can make a file that can't be removed"))
  func containerThatCantBeRemovedKeepsNothingElse() throws {
    try house.install(for: house.users)
    let held = "\(house.tree)/\(library)/Containers/org.example.editor/Data/Documents/held"
    #expect(FileManager.default.createFile(atPath: held, contents: nil))
    #expect(chown(held, house.account.uid, house.account.gid) == 0)
    try #require(Program.run(["chattr", "+i", held]).status == 0)
    defer {
      for name in (try? house.staged()) ?? [] {
        _ = try? Program.run(["chattr", "-R", "-i", "\(house.store.path)/state/staging/\(name)"])
      }
      _ = try? Program.run(["chattr", "-R", "-i", "\(house.tree)/\(library)/Containers"])
    }
    let left = try house.installer().uninstall(
      #require(AppIdentifier("org.example.editor")), of: house.users, asking: house.owner
    ).left
    #expect(left.map(\.reason) == ["the filesystem below refuses to remove it"])
    #expect(try house.names("\(library)/Group Containers") == [])
    // Nor is it a reason not to use the store.
    try house.installer().recover()
    try house.bundle("Other.app") { $0.identifier = "org.example.other" }
    try house.install("Other.app")
  }

  @Test func dataThatIsKeptIsThereForTheNext() throws {
    try house.install(for: house.users)
    let letter = "\(library)/Containers/org.example.editor/Data/Documents/letter"
    try house.temporary.write("mine", to: "store/tree/\(letter)")
    try house.uninstall(of: house.users, keepingData: true)
    #expect(house.text(letter) == "mine")
    #expect(try house.findings() == [])
    try house.install(for: house.users)
    #expect(house.text(letter) == "mine")
  }

  @Test func whatOthersStillHaveStays() throws {
    try house.install(for: house.users)
    try house.install(for: .everyone)
    try house.bundle("Viewer.app") {
      $0.identifier = "org.example.viewer"; $0.groups = ["group.two"]
    }
    try house.install("Viewer.app", for: house.users)
    try house.uninstall(of: house.users)
    // The machine's is still there for that user, and is what the container's link leads to now.
    let container = "\(library)/Containers/org.example.editor/Data"
    #expect(house.text("\(container)/Editor.app/Contents/Info.plist") != nil)
    #expect(try house.names("\(library)/Group Containers") == ["group.one", "group.two"])
    try house.uninstall(of: .everyone)
    #expect(try house.names("\(library)/Containers") == ["org.example.viewer"])
    #expect(try house.names("\(library)/Group Containers") == ["group.two"])
    #expect(try house.findings() == [])
  }

  @Test func bundleThatIsGoneIsNoHindrance() throws {
    let app = try house.install()
    let directory = try TemporaryDirectory.open(house.tree + "/Applications")
    try "Editor.app".withName { (name) throws(Errno) in try directory.fd.removeTree(name) }
    #expect(try house.uninstall() == app)
    #expect(try house.findings() == [])
  }

  @Test func refusedChangeLeavesTheApp() throws {
    let app = try house.install()
    let failure = appFailure { try house.uninstall(watch: Recorder(failure: .EBUSY)) }
    #expect(failure == .failed(doing: "remove", path: "\(house.tree)/Applications/Editor.app", errno: .EBUSY))
    #expect(try house.registry.apps() == [app])
    #expect(try house.findings(deep: true) == [])
    try house.uninstall()
  }
}
