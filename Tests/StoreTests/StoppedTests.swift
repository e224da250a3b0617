// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// A store with a home that nobody holds open, so that another program can work on it.
private struct StoppedFixture {
  let made: TestStore
  let account: Account
  let app: InstalledApp
  var path: String { made.path }

  init() throws {
    let fixture = try TestFixture()
    made = fixture.made
    account = fixture.account
    try made.temporary.makeDirectory("store/tree/Applications/Editor.app")
    app = try InstalledApp.example(groups: ["group.com.example"], clouds: ["iCloud.com.example.editor"])
  }

  /// Works on the store between two runs of the other program.
  func look(_ body: (Store, Registry) throws -> Void) throws {
    // What was open here, a program that another test starts at this moment has too, until it runs.
    var free: Store?
    _ = eventually {
      free = try? Store(opening: path, .exclusive)
      return free != nil
    }
    let store = try free ?? Store(opening: path, .exclusive)
    try body(store, Registry(state: store.state, path: path + "/state"))
  }

  func install() throws {
    try look { (store, registry) in
      try registry.add(app)
      _ = try Containers(store, registry).make(for: app, home: account.name)
    }
  }

  func findings(_ store: Store) throws -> [Finding] {
    var check = try StoreCheck(store, repairing: false)
    try check.run()
    return check.findings
  }

  func staged() throws -> [String] { try made.temporary.names(in: "store/state/staging") }

  func forgetRegistry() throws {
    for name in try made.temporary.names(in: "store/state") where name.hasPrefix("insula.db") {
      unlink("\(path)/state/\(name)")
    }
  }

  struct Found {
    let kind: ContainerKind
    let isWhole: Bool
  }

  /// The containers that there are in the home.
  func containers() throws -> [Found] {
    let library = "\(path)/tree/Users/\(account.name)/Library"
    let data = [
      "Data", "Data/Documents", "Data/Editor.app", "Data/Library", "Data/Library/Application Support",
      "Data/Library/Caches", "Data/Library/Preferences", "Data/tmp", ContainerLayout.metadataName,
    ]
    let all: [(ContainerKind, String, [String])] = [
      (.data, "Containers/com.example.editor", data),
      (.group, "Group Containers/group.com.example", [ContainerLayout.metadataName]),
      (.cloud, "Mobile Documents/iCloud~com~example~editor", ["Documents"]),
    ]
    return all.compactMap { (kind, place, parts) in
      var status = stat()
      guard lstat("\(library)/\(place)", &status) == 0 else { return nil }
      let isWhole = ([""] + parts).allSatisfy { part in
        lstat("\(library)/\(place)/\(part)", &status) == 0 && status.st_uid == account.uid
          && (status.st_mode & S_IFMT == S_IFLNK || status.st_mode & 0o077 == 0)
      }
      return Found(kind: kind, isWhole: isWhole)
    }
  }
}

/// What is left when a program is killed at any of its system calls.
@Suite struct StoppedTests {
  /// Does the work again and again, killed one call later each time, until it is done before it can be
  /// killed.
  ///
  /// `step` leaves calls out; `check` is told whether the work was done, and puts things back for the next
  /// time.
  private func forEachStop(
    _ step: Int = 1, from start: Int = 1, _ words: [String], check: (Stopped.End, Int) throws -> Void
  ) throws -> Int {
    var points = 0
    for stop in stride(from: start, to: 20_000, by: step) {
      let end = try Stopped.run(at: stop, words)
      if case .failed(let why) = end { throw MountedStore.Failure(words: why) }
      try check(end, stop)
      if end == .done { return points }
      points += 1
    }
    return points
  }

  @Test func registryIsAsBeforeOrAsAfter() throws {
    let fixture = try StoppedFixture()
    let points = try forEachStop(5, ["change", fixture.path]) { end, stop in
      try fixture.look { (_, registry) in
        let problems = try registry.problems()
        #expect(problems.isEmpty, "at \(stop)")
        let apps = try registry.apps()
        // Each of the three changes is a whole.
        #expect(apps.count <= 1 && apps.allSatisfy { $0.groups.count == ($0.version == "7" ? 1 : 2) })
        if let app = apps.first { _ = try registry.remove(app.identifier, of: nil, keepingData: true) }
      }
      if stop % 2 == 0 { try fixture.forgetRegistry() }
    }
    #expect(points >= 100)
  }

  @Test func containersAreWholeOrNotThere() throws {
    let fixture = try StoppedFixture()
    var seen: Set<Int> = []
    let points = try forEachStop(10, ["make", fixture.path, fixture.account.name]) { end, stop in
      try fixture.look { (store, registry) in
        let made = try fixture.containers()
        seen.insert(made.count)
        #expect(made.allSatisfy { $0.isWhole }, "at \(stop)")
        #expect(try fixture.findings(store).isEmpty, "at \(stop)")
        // It can be done to its end now.
        let containers = try Containers(store, registry)
        let records = try containers.make(for: fixture.app, home: fixture.account.name)
        let whole = try fixture.containers()
        #expect(whole.count == 3 && whole.allSatisfy { $0.isWhole }, "at \(stop)")
        #expect(try registry.containers().count == 3)
        if end == .done { #expect(seen == [0, 1, 2, 3], "it was stopped at every stage") }
        for record in records { try containers.remove(record) }
        #expect(try fixture.staged() == [], "at \(stop)")
      }
    }
    #expect(points >= 100)
  }

  @Test func removalIsEndedByTheNext() throws {
    let fixture = try StoppedFixture()
    try fixture.install()
    let points = try forEachStop(7, ["remove", fixture.path]) { end, stop in
      try fixture.look { (store, registry) in
        let made = try fixture.containers()
        let apps = try registry.apps()
        #expect(made.allSatisfy { $0.isWhole }, "at \(stop)")
        #expect(apps.isEmpty || made.count == 3, "all is there as long as the app is, at \(stop)")
        let strange = try fixture.findings(store).filter { !$0.problem.contains("app that was removed") }
        #expect(strange.isEmpty, "at \(stop)")
        if !apps.isEmpty {
          _ = try registry.remove(fixture.app.identifier, of: nil, keepingData: false)
        }
        try Containers(store, registry).removeMarked()
        #expect(try fixture.containers().map(\.kind) == [.cloud], "at \(stop)")
        #expect(try fixture.staged() == [], "at \(stop)")
      }
      try fixture.install()
    }
    #expect(points >= 100)
  }

  @Test(arguments: ["install", "replace"]) func bundleIsTheOldOneOrTheNew(work: String) throws {
    let fixture = try StoppedFixture()
    let source = try fixture.made.temporary.makeDirectory("Editor.app")
    for name in ["a", "b", "c"] {
      try fixture.made.temporary.makeDirectory("Editor.app/\(name)")
      for number in 0..<6 {
        try fixture.made.temporary.write("\(number)", to: "Editor.app/\(name)/\(number)")
      }
    }
    let place = "store/tree/Applications/Editor.app"
    if work == "install" { rmdir(fixture.made.temporary.appending(place)) }
    let points = try forEachStop(work == "install" ? 8 : 10, [work, fixture.path, source]) { end, stop in
      let isThere = try fixture.made.temporary.names(in: "store/tree/Applications").contains("Editor.app")
      let isNew = try isThere && !fixture.made.temporary.names(in: place).isEmpty
      if end == .done { #expect(isNew) }
      #expect(work == "install" ? isThere == isNew : isThere, "at \(stop)")
      if isNew {
        let same =
          try Program.run(["diff", "-r", source, fixture.made.temporary.appending(place)]).status == 0
        #expect(same, "at \(stop)")
        let applications = try TemporaryDirectory.open(fixture.path + "/tree/Applications")
        try "Editor.app".withName { (name) throws(Errno) in try applications.fd.removeTree(name) }
        if work == "replace" { try fixture.made.temporary.makeDirectory(place) }
      }
      // What was stopped leaves nothing for long.
      #expect(try fixture.staged().count <= 1, "at \(stop)")
    }
    #expect(points >= 50)
  }
}
