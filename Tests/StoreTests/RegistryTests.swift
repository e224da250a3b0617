// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import CSQLite
internal import Glibc
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

@Suite struct RegistryTests {
  private let made: TestStore
  private let store: Store
  private var file: String { made.path + "/state/insula.db" }

  init() throws {
    made = try TestStore()
    store = try made.open()
  }

  private func open(patience: Int32 = 10_000) throws -> Registry {
    try Registry(state: store.state, path: made.path + "/state", patience: patience)
  }

  private func run(_ sql: String) throws -> ProgramResult { try Program.run(["sqlite3", file, sql]) }

  /// Swift takes texts for one that are spelled alike; the database compares bytes, and so do teams.
  @Test func teamsAreComparedByteByByte() throws {
    let (one, two) = ("\u{c9}", "E\u{301}")
    try #require(one == two)
    #expect(Team(one, root: [1]) != Team(two, root: [1]) && Team(one, root: [1]) == Team(one, root: [1]))
    #expect(Team(one, root: [1]) != Team(one, root: [2]) && Team(one, root: nil) != Team(one, root: [1]))
    #expect(Set([Team(one, root: [1]), Team(two, root: [1]), Team(one, root: [1])]).count == 2)
    let registry = try Registry(of: store)
    try registry.pin(one, to: [1])
    try registry.pin(one, to: [2])
    #expect(try registry.isSuccessor(Team(one, root: [2]), of: Team(one, root: [1])))
    #expect(try !registry.isSuccessor(Team(one, root: [2]), of: Team(two, root: [1])))
  }

  @Test func newStoreHasNoneUntilItIsNeeded() throws {
    #expect(try Registry.existing(state: store.state, path: "/p") == nil)
    #expect(try made.temporary.names(in: "store/state").contains("insula.db") == false)
    #expect(try open().apps().isEmpty)
    #expect(try Registry.existing(state: store.state, path: "/p")?.apps() == [])
  }

  @Test func filesAreForTheDaemonAlone() throws {
    try open().add(.example())
    let names = try made.temporary.names(in: "store/state").filter { $0.hasPrefix("insula.db") }
    #expect(names.sorted() == ["insula.db", "insula.db-journal"])
    for name in names {
      var status = stat()
      #expect(lstat("\(made.path)/state/\(name)", &status) == 0 && status.st_mode & 0o7777 == 0o600)
    }
  }

  /// The journal keeps its file from one change to the next, and nothing of what it had: so the database
  /// alone is all there is.
  @Test func copyOfTheDatabaseAloneIsWhole() throws {
    let registry = try open()
    try registry.add(.example())
    let copy = try made.temporary.makeDirectory("copy")
    #expect(try Program.run(["cp", file, copy]).status == 0)
    let directory = try TemporaryDirectory.open(copy)
    let copied = try Registry(state: directory.fd, path: copy)
    #expect(try copied.apps() == registry.apps() && copied.problems().isEmpty)
  }

  /// What a change needs was taken before: neither a block nor an inode is asked for when it ends.
  @Test func changeTakesNoRoomThatItHasNotReserved() throws {
    let registry = try open()
    try registry.add(.example())
    func blocks() throws -> [Int64] {
      try ["", "-journal"].map { name in
        var status = stat()
        guard stat(file + name, &status) == 0 else { throw Errno.last }
        return Int64(status.st_blocks)
      }
    }
    let before = try blocks()
    #expect(before.allSatisfy { $0 * 512 >= 128 << 10 }, "\(before)")
    for _ in 0..<20 {
      _ = try registry.remove(InstalledApp.example().identifier, of: nil, keepingData: true)
      try registry.add(.example())
    }
    #expect(try blocks() == before)
  }

  @Test func appComesBackAsItWent() throws {
    let app = try InstalledApp.example(
      groups: ["group.z", "group.a"], clouds: ["iCloud.com.example.editor", "iCloud.com.example.a"])
    try open().add(app)
    let registry = try open()
    #expect(try registry.apps() == [app])
    #expect(try registry.app(app.identifier, for: nil) == app)
    #expect(try registry.app(app.identifier, for: 501) == app)
  }

  @Test func usersOwnAppComesBeforeTheMachines() throws {
    let registry = try open()
    let own = try InstalledApp.example(user: 501, name: "Own")
    let everyones = try InstalledApp.example()
    try registry.add(everyones)
    try registry.add(own)
    #expect(try registry.app(own.identifier, for: 501) == own)
    #expect(try registry.app(own.identifier, for: 502) == everyones)
    #expect(try registry.app(own.identifier, for: nil) == everyones)
    #expect(try registry.apps(for: 502) == [everyones])
    #expect(try registry.apps().count == 2)
  }

  @Test(arguments: ["com.example.editor", "com.Example.EDITOR"])
  func identifierIsInstalledOnce(identifier: String) throws {
    let registry = try open()
    try registry.add(.example())
    let second = try InstalledApp.example(identifier, name: "Other")
    #expect(
      storeError { try registry.add(second) }
        == .appExists(identifier: "com.example.editor", path: "Applications/Editor.app"))
    #expect(try registry.apps().map(\.name) == ["Editor"])
  }

  @Test func twoAppsAreNotAtOnePlace() throws {
    let registry = try open()
    try registry.add(.example("com.example.one"))
    guard case .registryFailed = storeError({ try registry.add(.example("com.example.two")) }) else {
      Issue.record("taken, or refused for another reason")
      return
    }
    #expect(try registry.apps().count == 1)
  }

  @Test func updateReplacesWhatIsKnown() throws {
    let registry = try open()
    var app = try InstalledApp.example(groups: ["group.a", "group.b"], clouds: ["iCloud.a"])
    #expect(storeError { try registry.update(app) } == .noApp(identifier: "com.example.editor"))
    try registry.add(app)
    app.version = "8"
    app.seal = []
    app.groups = try [#require(AppIdentifier("group.b"))]
    app.clouds = []
    try registry.update(app)
    #expect(try registry.apps() == [app])
  }

  @Test(arguments: [false, true]) func removalMarksWhatNobodyHasAnyMore(keepingData: Bool) throws {
    let registry = try open()
    let editor = try InstalledApp.example(groups: ["group.a", "group.b"], clouds: ["iCloud.a"])
    try registry.add(editor)
    try registry.add(.example("com.example.viewer", name: "Viewer", groups: ["group.b"]))
    // This user has the editor once more, of their own.
    try registry.add(.example(user: 502, groups: ["group.a"]))
    func note(_ kind: ContainerKind, _ identifier: String, _ user: UInt32) throws -> ContainerRecord {
      try registry.note(
        ContainerRecord(
          uuid: "\(kind)-\(identifier)-\(user)", kind: kind, identifier: #require(AppIdentifier(identifier)),
          user: user, path: "Users/\(user)/\(kind)/\(identifier)"))
    }
    for user in [501, 502] as [UInt32] {
      _ = try note(.data, "com.example.editor", user)
      _ = try note(.data, "com.example.viewer", user)
      _ = try note(.group, "group.a", user)
      _ = try note(.group, "group.b", user)
      _ = try note(.cloud, "iCloud.a", user)
    }
    #expect(try registry.remove(editor.identifier, of: nil, keepingData: keepingData) == editor)
    let marked = try registry.containers(isMarkedForRemoval: true).map(\.path)
    #expect(marked == (keepingData ? [] : ["Users/501/data/com.example.editor", "Users/501/group/group.a"]))
    #expect(try registry.containers().count == 10)
    #expect(
      storeError { _ = try registry.remove(editor.identifier, of: nil, keepingData: keepingData) }
        == .noApp(identifier: "com.example.editor"))
  }

  @Test func containerIsNotedOnce() throws {
    let registry = try open()
    let identifier = try #require(AppIdentifier("com.example.editor"))
    let first = ContainerRecord(uuid: "A", kind: .data, identifier: identifier, user: 501, path: "Users/a/x")
    #expect(try registry.note(first) == first)
    let again = ContainerRecord(uuid: "B", kind: .data, identifier: identifier, user: 501, path: "Users/b/x")
    #expect(
      try registry.note(again)
        == ContainerRecord(uuid: "A", kind: .data, identifier: identifier, user: 501, path: "Users/b/x"))
    // The place is another user's now: what was there is not there any more.
    let other = ContainerRecord(uuid: "C", kind: .data, identifier: identifier, user: 502, path: "Users/b/x")
    #expect(try registry.note(other) == other)
    #expect(try registry.containers() == [other])
    // But if something is there it is still the same team's, whoever has the home now.
    let teams = [Team("ONE", root: [1]), Team("TWO", root: [2])]
    try registry.note(teams[0], of: other)
    let last = ContainerRecord(
      uuid: "D", kind: .data, identifier: identifier, user: 503, path: "Users/b/x", team: teams[1])
    #expect(try registry.note(last).team == teams[0])
    #expect(try registry.containers().map(\.team) == [teams[0]])
    try registry.forget(last)
    #expect(try registry.containers().isEmpty)
  }

  @Test func valuesAreNeverStatements() throws {
    let registry = try open()
    var app = try InstalledApp.example()
    for text in [
      "'; DROP TABLE apps; --", "\u{0}x", "\"", "é\u{301}", String(repeating: "x", count: 100_000),
    ] {
      app.name = text
      app.team = text
      if try registry.apps().isEmpty { try registry.add(app) } else { try registry.update(app) }
      #expect(try registry.apps() == [app])
    }
  }

  @Test func whatIsTooLongIsRefusedAndChangesNothing() throws {
    let registry = try open()
    var app = try InstalledApp.example()
    try registry.add(app)
    app.name = String(repeating: "x", count: 1 << 21)
    guard case .registryFailed = storeError({ try registry.update(app) }) else {
      Issue.record("taken, or refused for another reason")
      return
    }
    #expect(try registry.apps().map(\.name) == ["Editor"])
  }

  // MARK: Versions and damage

  @Test func everyStepHasItsNameInTheDatabase() throws {
    _ = try open()
    let listed = try run("SELECT version || ' ' || name FROM migrations ORDER BY version").output
    #expect(listed == RegistrySchema.steps.enumerated().map { "\($0 + 1) \($1.name)\n" }.joined())
    #expect(try run("PRAGMA user_version").output == "\(RegistrySchema.version)\n")
  }

  @Test func newerVersionIsRefusedByNumberAndStaysAsItIs() throws {
    _ = try open()
    _ = try run("PRAGMA user_version = 99")
    let expected = StoreError.registryNewer(path: file, found: 99, known: RegistrySchema.version)
    #expect(storeError { _ = try open() } == expected)
    #expect(
      storeError { _ = try Registry.existing(state: store.state, path: made.path + "/state") } == expected)
    #expect(try run("PRAGMA user_version").output == "99\n")
  }

  @Test func emptyFileOfAStoppedFirstStepIsFilled() throws {
    try made.temporary.write("", to: "store/state/insula.db")
    #expect(try Registry.existing(state: store.state, path: "/p") == nil)
    try open().add(.example())
    #expect(try open().apps().count == 1)
  }

  @Test func databaseOfAnotherProgramIsRefused() throws {
    _ = try run("CREATE TABLE mine (a); PRAGMA user_version = 1; PRAGMA application_id = 7")
    guard case .registryDamaged = storeError({ _ = try open() }) else {
      Issue.record("opened, or refused for another reason")
      return
    }
    #expect(try run("SELECT count(*) FROM mine").output == "0\n")
  }

  @Test(arguments: ["no database", String(repeating: "x", count: 100_000)])
  func garbageIsRefused(text: String) throws {
    try made.temporary.write(text, to: "store/state/insula.db")
    guard case .registryDamaged = storeError({ _ = try open() }) else {
      Issue.record("opened, or refused for another reason")
      return
    }
    #expect(made.temporary.text(of: "store/state/insula.db") == text)
  }

  @Test func rowsThatCanNotBeAreDamage() throws {
    try open().add(.example())
    for change in ["identifier = '../../etc'", "user = -5", "user = 99999999999"] {
      #expect(try run("UPDATE apps SET \(change)").status == 0)
      guard case .registryDamaged = storeError({ _ = try open().apps() }) else {
        Issue.record("\(change): understood, or refused for another reason")
        continue
      }
      _ = try run("UPDATE apps SET identifier = 'com.example.editor', user = NULL")
      #expect(try open().apps().count == 1)
    }
  }

  @Test func damageIsFound() throws {
    let registry = try open()
    #expect(try registry.problems().isEmpty)
    for number in 0..<200 { try registry.add(.example("com.example.a\(number)", name: "App \(number)")) }
    #expect(try registry.problems().isEmpty)
    // Page by page, save the first.
    let size = try #require(try? FD.cwd.status(ofFile: file))
    for page in stride(from: 4096, to: size, by: 4096) {
      let raw = Glibc.open(file, O_WRONLY)
      let noise = (0..<64).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ page) }
      #expect(pwrite(raw, noise, noise.count, off_t(page)) == noise.count)
      close(raw)
    }
    do throws(StoreError) {
      let problems = try Registry.existing(state: store.state, path: made.path + "/state")?.problems()
      #expect(problems?.isEmpty == false)
    } catch {
      // What tables there are takes more than the first page.
      guard case .registryDamaged = error else { throw error }
    }
  }

  // MARK: Several at once

  @Test func whoeverWaitsTooLongIsTold() throws {
    let first = try open()
    let second = try open(patience: 50)
    try first.change { (_) throws(StoreError) in
      #expect(storeError { try second.add(.example()) } == .registryBusy(path: file))
      // Reading goes on.
      let apps = try second.apps()
      #expect(apps.isEmpty)
    }
    try second.add(.example())
  }

  @Test func failedChangeLeavesNothing() throws {
    let registry = try open()
    try registry.add(.example())
    #expect(
      storeError {
        try registry.change { (database) throws(StoreError) in
          try database.run("DELETE FROM apps")
          throw .noApp(identifier: "x")
        }
      } == .noApp(identifier: "x"))
    #expect(try registry.apps().count == 1)
  }

  @Test func connectionFollowsTheDirectoryAndNotItsPath() throws {
    let registry = try open()
    try registry.add(.example())
    #expect(rename(made.path + "/state", made.path + "/moved") == 0)
    try made.temporary.makeDirectory("store/state")
    try registry.add(.example("com.example.other", name: "Other"))
    #expect(try made.temporary.names(in: "store/state").isEmpty)
    #expect(try Registry(state: store.state, path: "/p").apps().count == 2)
  }

  @Test func linkInThePlaceOfTheFileIsNotFollowed() throws {
    let elsewhere = try made.temporary.write("", to: "elsewhere")
    #expect(symlink(elsewhere, file) == 0)
    #expect(storeError { _ = try open() } != nil)
    #expect(made.temporary.text(of: "elsewhere") == "")
  }

  @Test(.enabled(if: Program.isRoot, "a small disk needs root"))
  func fullAndReadOnlyDisk() throws {
    let disk = try SmallDisk(bytes: 384 << 10, files: 100)
    let directory = try TemporaryDirectory.open(disk.path)
    var count = 0
    do {
      let registry = try Registry(state: directory.fd, path: "/p")
      var failure: StoreError?
      while failure == nil, count < 10_000 {
        failure = storeError { try registry.add(.example("com.example.a\(count)", name: "App \(count)")) }
        if failure == nil { count += 1 }
      }
      #expect(failure == .noSpace(path: "/p/insula.db"))
      #expect(try registry.apps().count == count)
      #expect(try registry.problems().isEmpty)
    }
    try disk.remount(readOnly: true)
    let looking = try Registry.existing(state: directory.fd, path: "/p")
    #expect(try looking?.apps().count == count)
    #expect(storeError { try looking?.add(.example()) } == .readOnly(path: "/p/insula.db"))
  }
}

extension FD {
  /// The size of a file that is named by a whole path.
  fileprivate func status(ofFile path: String) throws(Errno) -> Int {
    try path.withName { (name) throws(Errno) in Int(try status(of: name).st_size) }
  }
}
