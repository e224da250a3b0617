// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing

/// While data are copied for an app, another team's app of its identifier takes its place.
@Suite struct MeantContainerTests {
  private let fixture: AppFixture
  private let editor = AppIdentifier("org.example.editor")

  init() throws {
    fixture = try AppFixture()
    try fixture.addIdentity("stranger", team: "TEAM9")
    for (name, signer) in [("Editor.app", nil), ("Strange.app", "stranger")] {
      try fixture.bundle(name) {
        $0.signer = signer; $0.groups = ["group.one"]
      }
    }
    try fixture.install("Editor.app", for: fixture.users, by: fixture.owner)
  }

  private func place(_ kind: ContainerKind) -> String {
    "\(fixture.home)/Library/"
      + (kind == .data ? "Containers/org.example.editor" : "Group Containers/group.one")
  }

  /// A container, for the app that is there now.
  private func open(_ kind: ContainerKind = .data) throws -> AppContainer {
    let app = try AppQueries(fixture.store, fixture.registry).app(#require(editor), for: fixture.account.uid)
    return try AppContainer(
      place(kind), in: fixture.store.tree, at: fixture.tree, access: .store(Metadata(isSystem: true)),
      kind: kind, team: BackupTeam(of: app))
  }

  private func exchangeApps() throws {
    try fixture.uninstall(of: fixture.users, by: fixture.owner)
    try fixture.install("Strange.app", for: fixture.users, by: fixture.owner)
  }

  private func expectRefused(_ body: () throws -> Void) {
    guard case .store(.containerOfOther) = appFailure(body) else {
      Issue.record("another team's app got what was meant for the one before")
      return
    }
  }

  private func entries(_ place: String) throws -> [String] {
    let directory = try TemporaryDirectory.open("\(fixture.tree)/\(place)")
    return try directory.fd.entries().map { String(decoding: $0.name, as: UTF8.self) }.sorted()
  }

  @Test(arguments: [ContainerKind.data, .group])
  func dataAreForTheAppThatWasMeant(kind: ContainerKind) throws {
    let replacer = DataReplacer(
      fixture.store, fixture.registry, containers: try Containers(fixture.store, fixture.registry),
      observer: NoTreeObserver())
    let secret = place(kind) + (kind == .data ? "/Data/Documents/secret" : "/secret")
    func importData(meanwhile: () throws -> Void) throws {
      try open(kind).replaceData(replacing: true) { new in
        try meanwhile()
        try replacer.replace(new, by: fixture.owner)
      } fill: { (data) throws(DataFailure) in
        try explaining("fill", "the copy") { () throws(Errno) in
          var directory = try data.duplicated()
          if kind == .data {
            try data.makeDirectory("Documents", mode: 0o700)
            directory = try data.openDirectory("Documents")
            try directory.fd.changeOwner(uid: fixture.account.uid, gid: fixture.account.gid)
          }
          let file = try directory.fd.open("secret", O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
          try file.fd.writeAll(Array("secret".utf8))
        }
      }
    }
    try importData {}
    #expect(fixture.text(secret) == "secret")
    expectRefused { try importData(meanwhile: exchangeApps) }
    #expect(fixture.text(secret) == nil)
    let (above, name) = place(kind).splitAtName
    #expect(try entries(above) == [name], "the copy is left")
    // Whoever means the one that is there gets its data there.
    try importData {}
    #expect(fixture.text(secret) == "secret")
  }

  /// What seems to be left of an import that was stopped, which somebody else may have named so.
  @Test(arguments: [0o700, 0o770] as [UInt32], [nil, 65_533] as [UInt32?])
  func nameProvesNotWhatWasLeft(mode: UInt32, owner: UInt32?) throws {
    let (above, _) = place(.data).splitAtName
    let containers = try TemporaryDirectory.open("\(fixture.tree)/\(above)")
    let left = "\(fixture.tree)/\(above)/\(Workshop.importPrefix)2000000000-x"
    try #require(mkdir(left, 0o700) == 0 && mkdir(left + "/thesis", 0o700) == 0)
    try #require(mkdir(left + "2", 0o700) == 0)
    for path in [left, left + "/thesis", left + "2"] {
      try #require(chown(path, owner ?? fixture.account.uid, fixture.account.gid) == 0)
    }
    try containers.fd.changeMode(mode)
    let container = try open()
    try container.clear(container.workshop(Workshop.importPrefix))
    let isLeft = mode == 0o700 && owner == nil
    #expect(access(left + "/thesis", F_OK) == (isLeft ? -1 : 0))
    #expect(access(left + "2", F_OK) == -1)
  }

  /// What a daemon does, and who comes between.
  private struct Meddler: TreeObserver {
    var running: AppIdentifier?
    var meddle: @Sendable () -> Void = {}

    func changing(_ change: TreeChange, _ body: () throws(Errno) -> Void) throws(Errno) {
      meddle()
      try body()
    }

    func whileClosed(
      _ app: AppIdentifier, of user: UInt32, _ body: () throws(Errno) -> Void
    ) throws(Errno) {
      if app == running { throw .EBUSY }
      try body()
    }
  }

  private func replace(_ kind: ContainerKind, _ observer: Meddler) throws {
    let replacer = DataReplacer(
      fixture.store, fixture.registry, containers: try Containers(fixture.store, fixture.registry),
      observer: observer)
    try open(kind).replaceData(replacing: true) { new in
      try replacer.replace(new, by: fixture.owner)
    } fill: { _ throws(DataFailure) in
    }
  }

  /// An app would go on with what it has read of its data, and lose what it saves.
  @Test(arguments: [ContainerKind.data, .group]) func dataOfAnAppThatRunsStay(kind: ContainerKind) throws {
    let (above, name) = place(kind).splitAtName
    let file = place(kind) + (kind == .data ? "/Data/Documents/text" : "/text")
    try fixture.write("text", to: "store/tree/\(file)")
    guard case .running("org.example.editor", _) = appFailure({ try replace(kind, Meddler(running: editor)) })
    else {
      Issue.record("the data were replaced")
      return
    }
    #expect(try fixture.text(file) == "text" && entries(above) == [name])
    try replace(kind, Meddler())
    #expect(fixture.text(file) == nil)
    #expect(try fixture.registry.removedContainers().filter { !$0.isBeingDeleted }.count == 1)
  }

  /// A program of the user's saves something in an empty container while it is replaced.
  @Test func whatComesMeanwhileIsKept() throws {
    let late = "\(fixture.tree)/\(place(.data))/Data/Documents/late"
    try replace(.data, Meddler())
    #expect(try fixture.registry.removedContainers().isEmpty, "nothing was in it")
    try replace(.data, Meddler(meddle: { _ = creat(late, 0o600) }))
    let removed = try fixture.registry.removedContainers()
    #expect(removed.count == 1 && removed.first?.isBeingDeleted == false, "\(removed)")
  }

  @Test func documentsAreForTheAppThatWasMeant() throws {
    let deliverer = Deliverer(
      fixture.store, fixture.registry, containers: try Containers(fixture.store, fixture.registry),
      observer: NoTreeObserver())
    try fixture.write("private", to: "Letter")
    let temporary = try fixture.temporary.open()
    func deliver(meanwhile: () throws -> Void) throws -> String {
      let letter = try temporary.fd.child("Letter")
      let container = try open()
      let copy = try container.prepareDelivery(of: letter.fd, named: "Letter")
      do {
        try meanwhile()
        return try deliverer.deliver(copy.delivery, by: fixture.owner)
      } catch {
        container.discard(copy)
        throw error
      }
    }
    #expect(fixture.text(try deliver {}) == "private")
    expectRefused { _ = try deliver(meanwhile: exchangeApps) }
    #expect(fixture.status(place(.data) + "/Data/Documents/Inbox/Letter") == nil)
    #expect(fixture.text(try deliver {}) == "private")
  }

  /// A directory that is filled by names, as what goes to iCloud is, is the one that was looked at.
  @Test func directoryIsFilledIfItIsTheOneThatWasMeant() throws {
    let temporary = fixture.temporary
    for place in ["source/a", "source/b", "target/a", "target/b"] {
      try fixture.write("old", to: "\(place)/old")
    }
    for place in ["a", "b"] { try fixture.write("new", to: "source/\(place)/new") }
    let meant = temporary.appending("target/a")
    let held = try TemporaryDirectory.open(meant)
    let was = try held.fd.status()
    #expect(rename(meant, meant + "-other") == 0)
    try fixture.write("old", to: "target/a/old")
    let restorer = PlaceRestorer(
      .package, keepingOwners: false, progress: { _ in },
      isMeant: { names, directory in
        !names.elementsEqual([Array("a".utf8)]) || (try? directory.status().isSameObject(as: was)) == true
      }, step: { $0.count == 1 ? .fill : .replace })
    let source = try TemporaryDirectory.open(temporary.appending("source"))
    let target = try TemporaryDirectory.open(temporary.appending("target"))
    restorer.restore(source.fd, to: target.fd, isRehearsal: false)
    #expect(restorer.failures.map(\.path) == ["a"])
    #expect(temporary.text(of: "target/a/new") == nil)
    #expect(temporary.text(of: "target/b/new") == "new")
  }
}
