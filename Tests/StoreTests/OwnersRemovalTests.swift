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

/// What is removed for a user when a container goes, and what is not.
@Suite(.enabled(if: Program.isRoot, "only root can make what belongs to others")) struct OwnersRemovalTests {
  private let fixture: TestFixture
  private let containers: Containers
  private let app: InstalledApp
  private var library: String { fixture.home + "/Library/Containers" }
  private var container: String { library + "/com.example.editor" }
  private var documents: String { container + "/Data/Documents" }

  init() throws {
    fixture = try TestFixture()
    containers = try fixture.containers()
    app = try InstalledApp.example()
    try fixture.registry.add(app)
    _ = try containers.make(for: app, home: fixture.account.name)
  }

  private func shell(_ script: String) throws {
    let script = """
      as_owner() {
        setpriv --reuid=\(fixture.account.uid) --regid=\(fixture.account.gid) --clear-groups "$@"; }
      protect() { setfattr -n trusted.insula.flags -v "$1" "$2"; }
      \(script)
      """
    let result = try Program.run(["sh", "-ec", script], in: documents)
    guard result.status == 0 else { throw MountedStore.Failure(words: result.errors) }
  }

  private func remove() throws -> Containers.Removal {
    _ = try fixture.registry.remove(app.identifier, of: nil, keepingData: false)
    return try containers.removeMarked()
  }

  /// The same, and deletes what can be restored; what stays.
  private func removeForGood() throws -> [LeftBehind] {
    let removal = try remove()
    #expect(removal.left.isEmpty && names(library) == [])
    return try fixture.deleteRemoved()
  }

  private func names(_ path: String) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
  }

  /// What others have in a removed container gets a place beside the container's, unless the home is gone.
  @Test(arguments: [false, true]) func whatOthersHaveGoesWhereTheHomeIsGone(isThere: Bool) throws {
    try shell("as_owner sh -c 'echo x >own'; echo x >roots")
    #expect(try remove().left.isEmpty)
    if !isThere { try FileManager.default.removeItem(atPath: fixture.home) }
    let left = try fixture.deleteRemoved()
    #expect(left.map(\.reason) == (isThere ? ["belongs to root"] : []).map { "it \($0)" }, "\(left)")
    #expect(names(fixture.path + "/state/removed") == [])
    #expect(try fixture.registry.removedContainers().isEmpty)
  }

  /// Each row makes something in Documents; `stays` is what of it is there afterwards, with the reason.
  @Test(arguments: [
    ("echo x >roots", "roots", "belongs to root"),
    ("mkdir roots; echo x >roots/a; chown nobody roots/a", "roots", "belongs to root"),
    (
      "as_owner mkdir shared; chmod 777 shared; echo x >shared/daemons; chown daemon shared/daemons",
      "shared/daemons", "belongs to daemon"
    ),
    ("as_owner touch held; protect 0x00020000 held", "held", "the flags schg"),
    ("as_owner touch own; protect 0x00000002 own", "own", "the flags uchg"),
    ("as_owner mkdir -p log; as_owner touch log/a; protect 0x00040000 log", "log", "the flags sappnd"),
    ("as_owner mkdir -p d/e/f; as_owner touch d/e/f/a; protect 0x00100000 d/e/f/a", "d/e/f/a", "sunlnk"),
    ("as_owner touch odd; protect 0x01 odd", "odd", "the flags schg"),
    ("as_owner ln -s nowhere link; chown -h root link", "link", "belongs to root"),
  ])
  func whatIsNotTheirsToRemoveStays(making: String, stays: String, reason: String) throws {
    try shell("as_owner touch gone; as_owner mkdir -p e/m/p/t/y; as_owner chmod 0 e; \(making)")
    let all = try removeForGood()
    #expect(all.count == 1)
    let left = try #require(all.first)
    #expect(left.reason.contains(reason) && left.path.hasSuffix("/Data/Documents/\(stays)"), "\(left)")
    let place = try #require(names(library).first)
    #expect(names(library).count == 1 && place.hasPrefix(".com.example.editor.left-"))
    #expect(left.path.contains(place))
    var status = stat()
    #expect(lstat("\(fixture.path)/tree/\(left.path)", &status) == 0)
    #expect(names("\(library)/\(place)/Data") == ["Documents"], "all else is gone")
    #expect(try fixture.registry.containers(kind: .data) == [])
    #expect(names(fixture.path + "/state/staging") == [] && names(fixture.path + "/state/removed") == [])
    #expect(try fixture.findings().contains { $0.path.hasSuffix(place) }, "a check names it")
    // The next installation gets nothing of it.
    try fixture.registry.add(app)
    _ = try containers.make(for: app, home: fixture.account.name)
    #expect(names(documents) == [])
  }

  @Test func allThatIsTheirsGoesHoweverDeepItIs() throws {
    try shell(
      """
      python3 -c '
      import os
      for n in range(3000):
          os.mkdir("d"); open("f", "w").close(); os.chdir("d")
      '
      chown -R nobody d f
      as_owner mkdir closed; as_owner touch closed/in; as_owner chmod 0 closed
      as_owner ln -s nowhere link; as_owner mkfifo pipe; as_owner touch hidden; protect 0x00008000 hidden
      """)
    #expect(try removeForGood().isEmpty)
    #expect(names(library) == [] && names(fixture.path + "/state/removed") == [])
  }

  @Test func containerThatIsProtectedStaysAsAWhole() throws {
    try shell("protect 0x00020000 '\(container)'; as_owner touch kept")
    let removal = try remove()
    let left = removal.left
    #expect(left.map(\.path) == ["Users/\(fixture.account.name)/Library/Containers/com.example.editor"])
    #expect(removal.records.isEmpty && removal.left(of: [app.identifier], user: nil).count == 1)
    // Whoever changes another app, or has another home, is not told.
    let other = try #require(AppIdentifier("com.example.other"))
    #expect(removal.left(of: [other], user: nil).isEmpty)
    #expect(removal.left(of: [app.identifier], user: fixture.account.uid + 1).isEmpty)
    #expect(left.first?.reason.contains("the flags schg") == true, "\(left)")
    #expect(names(documents) == ["kept"])
    #expect(try fixture.findings().contains { $0.path == container }, "a check names it")
    try shell("setfattr -x trusted.insula.flags '\(container)'")
    #expect(try containers.removeMarked().left.isEmpty)
    #expect(names(library) == [])
  }

  /// What a client was stopped in that was making a copy among the containers.
  @Test(arguments: [".import-1-X", ".deliver-1-X"]) func unfinishedCopyIsNamed(name: String) throws {
    try shell("as_owner mkdir '../../../\(name)'")
    #expect(try fixture.findings().contains { $0.path == "\(library)/\(name)" })
  }

  /// Who has a home there can have made a file of that name before.
  @Test func remainderGetsANameThatIsFree() throws {
    let uuid = try #require(try fixture.registry.containers(kind: .data).first?.uuid)
    let taken = ".com.example.editor.left-\(uuid)"
    try shell("echo x >roots; as_owner touch '../../../\(taken)'")
    let removal = try remove()
    #expect(removal.left.isEmpty)
    let left = try fixture.deleteRemoved()
    #expect(left.count == 1 && left.first?.path.hasSuffix("/Data/Documents/roots") == true, "\(left)")
    #expect(left.first?.path.contains(taken) == false)
    #expect(names(library).count == 2 && names(fixture.path + "/state/staging") == [])
  }

  /// What lies in the place of a container and was not made there is not removed, whoever it belongs to.
  @Test(arguments: ["mv", "copy", "link", "file"]) func anotherDirectoryInItsPlaceStays(how: String) throws {
    try shell("as_owner touch mine")
    let aside = fixture.home + "/aside"
    #expect(rename(container, aside) == 0)
    switch how {
    case "mv":
      try shell2(
        "mkdir -p Shared/project; touch Shared/project/work; "
          + "chown -R nobody Shared; mv Shared/project '\(container)'"
      )
    case "copy": try shell2("cp -a '\(aside)' '\(container)'")
    case "link": #expect(symlink(aside, container) == 0)
    default: try shell2("touch '\(container)'; chown nobody '\(container)'")
    }
    let before = names(container)
    let removal = try remove()
    #expect(
      removal.left.map(\.path) == ["Users/\(fixture.account.name)/Library/Containers/com.example.editor"])
    #expect(removal.left.first?.reason.contains("not the directory that was created") == true)
    #expect(names(container) == before && names(aside + "/Data/Documents") == ["mine"])
    #expect(try fixture.registry.containers(kind: .data) == [])
  }

  private func shell2(_ script: String) throws {
    let result = try Program.run(["sh", "-ec", script], in: fixture.path + "/tree/Users")
    guard result.status == 0 else { throw MountedStore.Failure(words: result.errors) }
  }

  /// Of a container that was noted by an earlier version nobody has written down which directory it is.
  @Test(arguments: [true, false]) func containerOfAnEarlierVersionIsKnownByWhatDescribesIt(isIt: Bool) throws
  {
    let changed = try Program.run(
      ["sqlite3", fixture.path + "/state/insula.db", "UPDATE containers SET inode = NULL"])
    #expect(changed.status == 0)
    let note = Program.isRoot ? "trusted.insula.team" : "user.insula.team"
    #expect(removexattr(container, note) == 0)
    if !isIt { #expect(unlink("\(container)/\(ContainerLayout.metadataName)") == 0) }
    #expect(try remove().left.isEmpty == isIt)
    #expect(names(library) == (isIt ? [] : ["com.example.editor"]))
  }

  @Test func copyOfAStoreHasTheSameContainers() throws {
    let copy = fixture.made.temporary.appending("copy")
    let made = try Program.run(["cp", "-a", fixture.path, copy])
    #expect(made.status == 0, "\(made.errors)")
    let store = try Store(opening: copy, .inspect)
    let registry = try Registry(state: store.state, path: copy + "/state")
    _ = try registry.remove(app.identifier, of: nil, keepingData: false)
    let removal = try Containers(store, registry).removeMarked()
    #expect(removal.left.isEmpty && removal.records.count == 1)
    #expect(names("\(copy)/tree/Users/\(fixture.account.name)/Library/Containers") == [])
    #expect(names(library) == ["com.example.editor"])
  }
}
