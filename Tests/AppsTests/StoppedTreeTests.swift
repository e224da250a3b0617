// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing

/// What is left when a program is killed while it replaces the system domain, or moves an app's data.
@Suite(.enabled(if: Program.isRoot)) struct StoppedTreeTests {
  private let fixture: AppFixture
  private var store: String { fixture.temporary.appending("store") }

  init() throws { fixture = try AppFixture(isShared: true) }

  private func state() throws -> [String] {
    (try? fixture.temporary.names(in: "store/state/system")) ?? []
  }

  /// All is as one of the versions has it, and can be gone back from.
  private func expectWhole(_ faces: [String?], before: [String: String], _ at: String) throws {
    let face = fixture.face
    #expect(faces.contains(face), "at \(at)")
    #expect(try fixture.damage() == [], "before, at \(at)")
    try fixture.domain().recover()
    #expect(fixture.face == face, "what is seen stays, at \(at)")
    #expect(try fixture.findings() == [] && fixture.domain().findings() == [], "at \(at)")
    #expect(try fixture.domain().versions().next == nil && state() == ["previous"], "at \(at)")
    let previous = fixture.temporary.text(of: "store/state/system/previous/Library/Fonts/Face")
    #expect(previous == face.flatMap { before[$0] }, "the version before is the right one, at \(at)")
  }

  @Test func systemIsTheOldOneOrTheNew() throws {
    let paths = try ["1", "2", "3"].map { try fixture.system($0, ["Library/\($0)/file": $0]) }
    _ = try fixture.update(paths[0])
    var seen: Set<String?> = []
    try StoppedWork(words: ["update-system", store, paths[2]]).forEachStop {
      if fixture.face != "face 2\n" {
        if fixture.face == "face 3\n" { _ = try fixture.update(paths[0]) }
        _ = try fixture.update(paths[1])
      }
    } check: { at in
      seen.insert(fixture.face)
      try expectWhole(
        ["face 2\n", "face 3\n"], before: ["face 2\n": "face 1\n", "face 3\n": "face 2\n"], at)
      // A killed update leaves a copy until the next one.
      #expect(try fixture.staged().count <= 1, "at \(at)")
    }
    #expect(seen == ["face 2\n", "face 3\n"])
  }

  @Test func rollbackIsDoneOrNot() throws {
    _ = try fixture.update(fixture.system("1"))
    _ = try fixture.update(fixture.system("2"))
    try StoppedWork(words: ["rollback-system", store]).forEachStop(points: 100) {
      if fixture.face != "face 2\n" { try fixture.domain().rollback() }
    } check: { at in
      try expectWhole(
        ["face 1\n", "face 2\n"], before: ["face 1\n": "face 2\n", "face 2\n": "face 1\n"], at)
    }
  }

  // MARK: Data

  private var container: String { "\(fixture.home)/Library/Containers/org.example.editor" }

  private func install() throws {
    let source = try TemporaryDirectory.open(fixture.bundle())
    _ = try fixture.installer().install(source.fd, named: "Editor.app", for: fixture.users, by: fixture.owner)
  }

  private func shell(_ script: String, in path: String) throws {
    let result = try Program.run(["sh", "-ec", script], in: path)
    guard result.status == 0 else { throw MountedStore.Failure(words: result.errors) }
  }

  private func open() throws -> AppContainer {
    try AppContainer(
      container, in: fixture.store.tree, at: fixture.tree, access: .store(Metadata(isSystem: true)))
  }

  @Test(arguments: ["import-data", "import-backup"])
  func importedDataAreTheOldOnesOrTheNew(work: String) throws {
    try install()
    let data = fixture.tree + "/" + container + "/Data"
    func write(_ text: String) throws {
      try shell(
        "for n in 1 2 3 4 5 6; do mkdir -p Documents/$n; "
          + "echo \(text) >Documents/$n/file; done; chown -R nobody Documents",
        in: data)
    }
    func texts() -> Set<String?> {
      Set((1...6).map { fixture.text("\(container)/Data/Documents/\($0)/file") })
    }
    try write("new")
    let temporary = try fixture.temporary.open()
    let app = try #require(try AppQueries(fixture.store, fixture.registry).apps(for: nil).first)
    if work == "import-data" {
      _ = try open().export(app, to: "E.xcappdata", in: temporary.fd, at: fixture.temporary.path)
    } else {
      try StoppedWork(words: ["export-backup", store, container, fixture.temporary.appending("E.xcappdata")])
        .finish()
    }
    let before = fixture.text("\(container)/\(ContainerLayout.metadataName)")
    let words = [work, store, container, fixture.temporary.appending("E.xcappdata")]
    let containers = try Containers(fixture.store, fixture.registry)
    func removed() throws -> [RemovedContainer] {
      try fixture.registry.removedContainers().filter { !$0.isBeingDeleted }
    }
    var seen: Set<Set<String?>> = []
    try StoppedWork(words: words).forEachStop {
      for old in try fixture.registry.removedContainers() { _ = try containers.delete(old) }
      try write("old")
    } check: { at in
      let found = texts()
      #expect(found == ["old\n"] || found == ["new\n"], "\(found) at \(at)")
      seen.insert(found)
      // Whichever of them is not in its place any more can be restored; what was to come can not.
      try fixture.installer().clear()
      try fixture.installer().completeNotes()
      let kept = try removed().map { removed in
        fixture.temporary.text(of: "store/state/removed/\(removed.container.uuid)/Data/Documents/6/file")
      }
      #expect(kept == (found == ["new\n"] ? ["old\n"] : []), "\(kept) at \(at)")
      #expect(fixture.text("\(container)/\(ContainerLayout.metadataName)") == before, "at \(at)")
      #expect(try fixture.damage() == [], "at \(at)")
      let names = try fixture.names("\(fixture.home)/Library/Containers")
      #expect(names.count <= 2 && names.contains("org.example.editor"), "\(names) at \(at)")
    }
    #expect(seen.count == 2)
  }

  @Test(arguments: [("export-data", 12), ("export-backup", 12)])
  func packageIsThereOrNot(work: String, count: Int) throws {
    try install()
    let data = fixture.tree + "/" + container + "/Data"
    try shell(
      "for n in 1 2 3 4 5 6 7 8; do mkdir -p Documents/$n; "
        + "echo x >Documents/$n/file; done; chown -R nobody Documents",
      in: data)
    try fixture.temporary.makeDirectory("out")
    let words = [work, store, container, fixture.temporary.appending("out/E.xcappdata")]
    try StoppedWork(words: words).forEachStop {
      let out = try TemporaryDirectory.open(fixture.temporary.path)
      try "out".withName { (name) throws(Errno) in try out.fd.removeTree(name) }
      try fixture.temporary.makeDirectory("out")
    } check: { at in
      if try fixture.temporary.names(in: "out").contains("E.xcappdata") {
        let files = try Program.run(["find", "out/E.xcappdata", "-type", "f"], in: fixture.temporary.path)
        #expect(files.output.split(separator: "\n").count == count, "\(files.output) at \(at)")
      }
    }
  }

  /// The attack: somebody gives a directory of others a name as if a stopped export had left it.
  @Test(arguments: ["export-data", "export-backup"]) func exportsRemoveNothingByItsName(work: String) throws {
    try install()
    let left = "out/.E.xcappdata.export-\(Int32.max - 1)-x"
    for path in ["out", left] { try fixture.temporary.makeDirectory(path) }
    try fixture.temporary.write("thesis", to: left + "/thesis")
    let words = [work, store, container, fixture.temporary.appending("out/E.xcappdata")]
    try StoppedWork(words: words).finish()
    #expect(try fixture.temporary.names(in: "out").contains("E.xcappdata"))
    #expect(fixture.temporary.text(of: left + "/thesis") == "thesis")
  }

  @Test func deliveryIsThereOrNot() throws {
    try install()
    let letter = try fixture.temporary.write("all of it", to: "Letter.txt")
    let words = ["deliver", store, container, letter]
    let inbox = "\(container)/\(ContainerLayout.inboxPath)"
    var seen: Set<[String]> = []
    try StoppedWork(words: words).forEachStop(points: 100) {
      try shell("rm -rf Inbox", in: fixture.tree + "/" + container + "/Data/Documents")
    } check: { at in
      let names = (try? fixture.names(inbox)) ?? []
      seen.insert(names)
      #expect(names.isEmpty || names == ["Letter.txt"], "\(names) at \(at)")
      #expect(names.isEmpty || fixture.text(inbox + "/Letter.txt") == "all of it", "at \(at)")
      let found = try fixture.damage()
      #expect(found == [], "at \(at)")
    }
    #expect(seen.count == 2)
  }
}
