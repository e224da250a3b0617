// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

@Suite struct ContainersTests {
  private let fixture: TestFixture
  private let containers: Containers
  private let app: InstalledApp
  private var container: String { fixture.home + "/Library/Containers/com.example.editor" }

  init() throws {
    fixture = try TestFixture()
    containers = try fixture.containers()
    app = try InstalledApp.example(groups: ["group.com.example"], clouds: ["iCloud.com.example.editor"])
  }

  private func names(_ path: String) throws -> [String] {
    let directory = try TemporaryDirectory.open(path)
    return try directory.fd.entries().map { String(decoding: $0.name, as: UTF8.self) }.sorted()
  }

  private func status(_ path: String) throws -> FileStatus {
    var status = stat()
    guard lstat(path, &status) == 0 else { throw Errno.last }
    return FileStatus(status)
  }

  private func target(_ path: String) -> String? {
    try? FileManager.default.destinationOfSymbolicLink(atPath: path)
  }

  private func make() throws -> [ContainerRecord] {
    try containers.make(for: app, home: fixture.account.name)
  }

  @Test func containerHasItsDirectoriesAndIsItsOwners() throws {
    let made = try make()
    #expect(made.map(\.kind) == [.data, .group, .cloud])
    #expect(
      try fixture.registry.containers().sorted { $0.uuid < $1.uuid } == made.sorted { $0.uuid < $1.uuid })
    #expect(try names(container) == [ContainerLayout.metadataName, "Data"])
    #expect(try names(container + "/Data") == ["Documents", "Editor.app", "Library", "tmp"])
    #expect(try names(container + "/Data/Library") == ["Application Support", "Caches", "Preferences"])
    let library = fixture.home + "/Library"
    #expect(try names(library + "/Group Containers/group.com.example") == [ContainerLayout.metadataName])
    #expect(try names(library + "/Mobile Documents/iCloud~com~example~editor") == ["Documents"])
    let find = ["find", library, "!", "-name", ".localized", "-printf", "%y %m %U %G\n"]
    let all = try Program.run(find).output
    let expected = ["d 700", "f 600", "l 777"].map { "\($0) \(fixture.account.uid) \(fixture.account.gid)" }
    #expect(Set(all.split(separator: "\n").map(String.init)) == Set(expected))
  }

  @Test func metadataHasTheKeysOfApples() throws {
    let made = try make()
    for (path, record, contentClass) in [
      (container, made[0], 2),
      (fixture.home + "/Library/Group Containers/group.com.example", made[1], 7),
    ] {
      let data = try Data(contentsOf: URL(fileURLWithPath: "\(path)/\(ContainerLayout.metadataName)"))
      let list = try #require(
        PropertyListSerialization.propertyList(from: data, format: nil) as? [String: Any])
      #expect(list["MCMMetadataIdentifier"] as? String == record.identifier.text)
      #expect(list["MCMMetadataContentClass"] as? Int == contentClass)
      #expect(list["MCMMetadataUUID"] as? String == record.uuid)
      #expect(UUID(uuidString: record.uuid)?.uuidString == record.uuid)
      #expect(list["MCMMetadataVersion"] as? Int == 6 && list["MCMMetadataSchemaVersion"] as? Int == 1)
      #expect(list["MCMMetadataActiveDPClass"] as? Int == 0)
      #expect((list["MCMMetadataInfo"] as? [String: Int])?.keys.count == 1)
      let user = try #require(list["MCMMetadataUserIdentity"] as? [String: Any])
      #expect(user["posixUID"] as? UInt32 == fixture.account.uid)
      #expect(user["posixGID"] as? UInt32 == fixture.account.gid && user["version"] as? Int == 2)
    }
  }

  @Test func linkLeadsToTheBundleWhereverTheTreeIs() throws {
    _ = try make()
    let link = container + "/Data/Editor.app"
    #expect(target(link) == "../../../../../../Applications/Editor.app")
    try fixture.made.temporary.makeDirectory("store/tree/Applications/Editor.app")
    #expect(
      realpath(link, nil).map { String(cString: $0) }?.hasSuffix("/tree/Applications/Editor.app") == true)
    let own = try InstalledApp.example(
      "com.example.own", user: fixture.account.uid, name: "Own")
    var moved = own
    moved.path = "Users/\(fixture.account.name)/Applications/Own.app"
    _ = try containers.make(for: moved, home: fixture.account.name)
    let ownLink = fixture.home + "/Library/Containers/com.example.own/Data/Own.app"
    #expect(target(ownLink) == "../../../../Applications/Own.app")
  }

  @Test func makingItAgainChangesNothing() throws {
    let first = try make()
    try Data("mine".utf8).write(to: URL(fileURLWithPath: container + "/Data/Documents/file"))
    let before = try Program.run(["find", fixture.home, "-printf", "%p %i %m %T@ %C@\n"]).output
    #expect(try make() == first)
    #expect(try Program.run(["find", fixture.home, "-printf", "%p %i %m %T@ %C@\n"]).output == before)
  }

  @Test func whatIsMissingIsMadeAgain() throws {
    let first = try make()
    for path in ["/Data/tmp", "/Data/Library/Caches"] {
      #expect(try names(container + path) == [CacheDirectoryTag.name])
      try FileManager.default.removeItem(atPath: container + path)
    }
    #expect(unlink(container + "/Data/Editor.app") == 0)
    #expect(unlink("\(container)/\(ContainerLayout.metadataName)") == 0)
    #expect(try make() == first)
    #expect(try names(container) == [ContainerLayout.metadataName, "Data"])
    #expect(try names(container + "/Data") == ["Documents", "Editor.app", "Library", "tmp"])
    #expect(try names(container + "/Data/Library") == ["Application Support", "Caches", "Preferences"])
    #expect(try status(container + "/Data/tmp").st_uid == fixture.account.uid)
  }

  @Test func linkFollowsTheBundleThatGotAnotherName() throws {
    _ = try make()
    var app = app
    app.path = "Applications/Utilities/Writer.app"
    _ = try containers.make(for: app, home: fixture.account.name)
    #expect(try names(container + "/Data") == ["Documents", "Library", "Writer.app", "tmp"])
    #expect(target(container + "/Data/Writer.app") == "../../../../../../Applications/Utilities/Writer.app")
  }

  @Test func whatStandsInTheWayIsNotTouched() throws {
    let library = fixture.home + "/Library"
    let outside = try fixture.made.temporary.makeDirectory("outside", mode: 0o711)
    // A link would lead out of the home.
    #expect(symlink(outside, library + "/Containers") == 0)
    #expect(
      storeError { _ = try make() }
        == .noContainer(path: library + "/Containers", what: "it is not a directory"))
    #expect(unlink(library + "/Containers") == 0)
    #expect(mkdir(library + "/Containers", 0o700) == 0)
    if Program.isRoot {
      #expect(
        storeError { _ = try make() }
          == .noContainer(path: library + "/Containers", what: "it belongs to uid 0, not to 65534"))
      #expect(chown(library + "/Containers", fixture.account.uid, fixture.account.gid) == 0)
    }
    #expect(symlink(outside, container) == 0)
    #expect(
      storeError { _ = try make() } == .noContainer(path: container, what: "it is not a directory"))
    #expect(unlink(container) == 0)
    _ = try make()
    #expect(rmdir(container + "/Data/Documents") == 0)
    #expect(symlink(outside, container + "/Data/Documents") == 0)
    #expect(
      storeError { _ = try make() }
        == .noContainer(path: container + "/Data/Documents", what: "it is not a directory"))
    #expect(try names(outside).isEmpty)
    #expect(try status(outside).permissions == 0o711 && status(outside).st_uid == ProcessID.user)
  }

  @Test func homeThatIsNotThere() {
    for name in ["no-such", "../x", "Shared", ""] {
      #expect(storeError { _ = try containers.make(for: app, home: name) } != nil, "\(name)")
    }
    #expect(
      storeError { _ = try containers.make(for: app, home: "no-such") }
        == .noHome(path: fixture.path + "/tree/Users/no-such"))
    #expect((try? fixture.registry.containers())?.isEmpty == true)
  }

  @Test func removalTakesTheAppsOwnAndLeavesTheCloud() throws {
    try fixture.registry.add(app)
    _ = try make()
    let outside = try fixture.made.temporary.write("kept", to: "outside")
    #expect(symlink(outside, container + "/Data/Documents/link") == 0)
    #expect(mkdir(container + "/Data/Documents/deep", 0) == 0)
    for name in ["link", "deep"] {
      #expect(lchown(container + "/Data/Documents/" + name, fixture.account.uid, fixture.account.gid) == 0)
    }
    _ = try fixture.registry.remove(app.identifier, of: nil, keepingData: false)
    #expect(try containers.removeMarked().records.map(\.kind) == [.data, .group])
    #expect(try names(fixture.home + "/Library/Containers").isEmpty)
    #expect(try names(fixture.home + "/Library/Group Containers").isEmpty)
    #expect(try names(fixture.home + "/Library/Mobile Documents") == ["iCloud~com~example~editor"])
    #expect(try fixture.registry.containers().map(\.kind) == [.cloud])
    #expect(fixture.made.temporary.text(of: "outside") == "kept")
    #expect(try names(fixture.path + "/state/staging").isEmpty)
  }

  @Test func keptDataIsTheNextInstallationsAndMarkedDataIsNot() throws {
    try fixture.registry.add(app)
    let first = try make()
    let file = container + "/Data/Documents/file"
    try Data("mine".utf8).write(to: URL(fileURLWithPath: file))
    #expect(chown(file, fixture.account.uid, fixture.account.gid) == 0)
    _ = try fixture.registry.remove(app.identifier, of: nil, keepingData: true)
    #expect(try containers.removeMarked().records.isEmpty)
    try fixture.registry.add(app)
    #expect(try make() == first)
    #expect(FileManager.default.fileExists(atPath: file))
    // Stopped before what was marked for removal could be removed, and installed again.
    _ = try fixture.registry.remove(app.identifier, of: nil, keepingData: false)
    try fixture.registry.add(app)
    let second = try make()
    #expect(second[0].uuid != first[0].uuid && !second[0].isMarkedForRemoval)
    #expect(!FileManager.default.fileExists(atPath: file))
    #expect(try names(container + "/Data") == ["Documents", "Editor.app", "Library", "tmp"])
  }

  /// Root may have moved the home away for some time; whoever removes it says so.
  @Test func containerOfAHomeThatIsGoneWaitsUntilTheHomeIsForgotten() throws {
    try fixture.registry.add(app)
    _ = try make()
    try Homes(tree: fixture.store.tree, path: "/p", mode: fixture.store.description.mode).remove(
      fixture.account.name)
    _ = try fixture.registry.remove(app.identifier, of: nil, keepingData: false)
    #expect(try containers.removeMarked().records.isEmpty)
    #expect(try fixture.registry.containers(isMarkedForRemoval: true).count == 2)
    try fixture.store.forget(home: fixture.account.name, of: fixture.account.uid, in: fixture.registry)
    #expect(try fixture.registry.containers().isEmpty)
  }
}
