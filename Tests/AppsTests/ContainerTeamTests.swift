// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

// How another team may try to get what an app has left, by an app of the same identifier, group and iCloud
// container, when the record of whose it is has been lost:
//
// - the home comes from another store, or somebody has lost the registry: `containersSayWhoseTheyAre`
// - an import was killed: `importThatWasStoppedLosesNoContainer`
// - something else was put in the container's place: `directoryFromOutsideStaysTheTeams`
// - the home has another owner: `homeOfSomebodyElseStaysTheTeams`

/// The team of a container is known as long as its directory exists.
@Suite struct ContainerTeamTests {
  private let fixture: AppFixture
  private let app: InstalledApp
  private let strange: InstalledApp
  private let containers: Containers
  private var library: String { "\(fixture.home)/Library" }
  private let places = [
    "Containers/org.example.editor", "Group Containers/group.one", "Mobile Documents/iCloud~one",
  ]

  init() throws {
    fixture = try AppFixture()
    try fixture.addIdentity("stranger", team: "TEAM9")
    for (name, signer) in [("Editor.app", nil), ("Strange.app", "stranger")] {
      try fixture.bundle(name) {
        $0.signer = signer; $0.groups = ["group.one"]; $0.clouds = ["iCloud.one"]
      }
    }
    // Another user has the stranger's, whose containers are nobody else's business.
    if let daemon = Account.named("daemon"), Program.isRoot {
      try Homes(tree: fixture.store.tree, path: fixture.tree, mode: .system).add(daemon.name)
      strange = try fixture.install(
        "Strange.app", for: .user(daemon.name),
        by: CallerIdentity(uid: daemon.uid, gid: daemon.gid, groups: []))
    } else {
      strange = try fixture.install("Strange.app", for: fixture.users)
      try fixture.uninstall(of: fixture.users)
      _ = try fixture.registry.removedContainers()
      try fixture.shell("rm -r '\(fixture.tree)/\(fixture.home)/Library/Mobile Documents/iCloud~one'")
      try fixture.sql("DELETE FROM removed; DELETE FROM containers")
    }
    app = try fixture.install("Editor.app", for: fixture.users, by: fixture.owner)
    containers = try Containers(fixture.store, fixture.registry)
    for place in places { try fixture.write("mine", to: "store/tree/\(library)/\(place)/letter") }
  }

  private var letters: [String?] { places.map { fixture.text("\(library)/\($0)/letter") } }
  private let mine: [String?] = ["mine", "mine", "mine"]

  /// The stranger's app gets none of the containers, and the team's own app all.
  private func expectOnlyTheTeamHasThem(home: String? = nil) throws {
    let home = home ?? fixture.account.name
    for (kind, identifier) in [
      (ContainerKind.data, app.identifier), (.group, app.groups[0]), (.cloud, app.clouds[0]),
    ] {
      for _ in 0..<2 {
        guard
          case .containerOfOtherTeam = storeError({
            _ = try containers.make(kind, identifier, for: strange, home: home)
          })
        else {
          Issue.record("a stranger's app got the \(kind) container")
          continue
        }
      }
    }
    let made = try containers.make(for: app, home: home)
    #expect(made.map(\.team) == Array(repeating: app.signer, count: 3))
  }

  private func storeError(_ body: () throws -> Void) -> StoreError? {
    do {
      try body()
      return nil
    } catch {
      return error as? StoreError
    }
  }

  /// What a description says of a container counts for its data in a backup, see `BackupTeamTests`.
  @Test(arguments: [false, true]) func descriptionsSayWhoseContainersAre(isRecorded: Bool) throws {
    try fixture.uninstall(of: fixture.users, by: fixture.owner, keepingData: true)
    if !isRecorded { try fixture.sql("DELETE FROM containers WHERE user = \(fixture.account.uid)") }
    // Everyone's app of the other team has the same names, and nothing of what has them in this home.
    try fixture.install("Strange.app", for: fixture.everyones)
    for damage in ["", "UPDATE containers SET team = 'TEAM9'"] {
      if !damage.isEmpty { try fixture.sql(damage) }
      let described = try AppQueries(fixture.store, fixture.registry).app(
        app.identifier, for: fixture.account.uid)
      let found = try #require(described.containers)
      #expect(found.map(\.kind) == ["data", "group", "cloud"] && described.team == "TEAM9")
      #expect(found.map(\.team) == ["TEAM1", "TEAM1", "TEAM1"])
      #expect(found.map(\.root) == Array(repeating: app.root?.asHexadecimal, count: 3))
      #expect(found.map(\.path) == places.map { "\(library)/\($0)" })
    }
  }

  @Test func containersSayWhoseTheyAre() throws {
    try fixture.uninstall(of: fixture.users, by: fixture.owner, keepingData: true)
    try fixture.sql("DELETE FROM containers WHERE user = \(fixture.account.uid)")
    guard
      case .store(.containerOfOtherTeam) = appFailure({
        try fixture.install("Strange.app", for: fixture.users, by: fixture.owner)
      })
    else {
      Issue.record("another team's app was installed")
      return
    }
    try expectOnlyTheTeamHasThem()
    #expect(letters == mine)
    // Their user can have them removed, which can be taken back, and then the other app is as good as any.
    try fixture.sql("DELETE FROM containers WHERE user = \(fixture.account.uid)")
    for identifier in ["org.example.editor", "group.one"] {
      let done = try fixture.installer().uninstall(
        #require(AppIdentifier(identifier)), of: fixture.users, by: fixture.owner)
      #expect(done.app == nil && done.left.isEmpty)
    }
    #expect(letters == [nil, nil, "mine"])
    let removed = try fixture.registry.removedContainers(of: fixture.account.uid)
    #expect(removed.map(\.container.team) == [app.signer, app.signer])
    _ = try containers.make(.data, strange.identifier, for: strange, home: fixture.account.name)
    #expect(letters == [nil, nil, "mine"])
  }

  /// Containers of an earlier version get it noted at the next start, or when an adoption begins.
  @Test func earlierContainersGetTheirTeamsNoted() throws {
    for place in places { try fixture.forgetNote(of: "\(library)/\(place)") }
    try fixture.installer().completeNotes()
    try fixture.sql("DELETE FROM containers WHERE user = \(fixture.account.uid)")
    try expectOnlyTheTeamHasThem()
  }

  /// Both moments at which the record and the tree can differ.
  @Test(arguments: [false, true]) func importThatWasStoppedLosesNoContainer(isExchanged: Bool) throws {
    let record = try #require(
      try fixture.registry.containers(kind: .data, user: fixture.account.uid).first)
    try fixture.shell(
      """
      cd '\(fixture.tree)/\(library)/Containers'; mkdir -m 700 .import-1-x .import-1-x/Data
      mkdir .import-1-x/Data/Documents; echo new >.import-1-x/Data/Documents/new
      chown -R \(fixture.account.uid):\(fixture.account.gid) .import-1-x
      """)
    let parent = try TemporaryDirectory.open("\(fixture.tree)/\(library)/Containers")
    let copy = try parent.fd.openDirectory(".import-1-x")
    let identity = try containers.complete(record, copy.fd, in: parent.fd, app)
    _ = try containers.note(identity, of: record)
    if isExchanged {
      try fixture.shell(
        """
        cd '\(fixture.tree)/\(library)/Containers'
        mv org.example.editor old; mv .import-1-x org.example.editor; mv old .import-1-x
        """)
    }
    // The next process removes it as what it is.
    try fixture.uninstall(of: fixture.users, by: fixture.owner)
    #expect(try !fixture.names("\(library)/Containers").contains("org.example.editor"))
    let removed = try fixture.registry.removedContainers(of: fixture.account.uid)
    #expect(Set(removed.map(\.container.kind)) == [.data, .group])
    #expect(removed.allSatisfy { $0.container.team == app.signer })
    _ = try containers.make(.data, strange.identifier, for: strange, home: fixture.account.name)
    #expect(fixture.text("\(library)/\(places[0])/letter") == nil)
    #expect(fixture.text("\(library)/\(places[0])/Data/Documents/new") == nil)
  }

  @Test func directoryFromOutsideStaysTheTeams() throws {
    try fixture.shell(
      """
      cd '\(fixture.tree)/\(library)/Containers'; cp -r org.example.editor copy; rm -r org.example.editor
      mv copy org.example.editor; rm org.example.editor/.com.apple*
      chown -R -h \(fixture.account.uid):\(fixture.account.gid) org.example.editor
      """)
    let left = try fixture.installer().uninstall(
      app.identifier, of: fixture.users, by: fixture.owner
    ).left
    #expect(left.map(\.path) == ["\(library)/\(places[0])"])
    guard
      case .containerOfOtherTeam = storeError({
        _ = try containers.make(.data, strange.identifier, for: strange, home: fixture.account.name)
      })
    else {
      Issue.record("another team's app got it")
      return
    }
    _ = try containers.make(.data, app.identifier, for: app, home: fixture.account.name)
    #expect(letters[0] == "mine")
  }

  /// A team of the same name under another root is a stranger's, although it is the one of this machine.
  @Test func teamOfTheSameNameIsAnotherOne() throws {
    try fixture.addIdentity("namesake", team: "TEAM1")
    try fixture.bundle("Namesake.app") {
      $0.identifier = "org.example.namesake"; $0.signer = "namesake"
    }
    let namesake = try fixture.install("Namesake.app", for: fixture.everyones)
    #expect(try fixture.registry.root(of: "TEAM1") == namesake.root)
    var forged = app
    forged.root = namesake.root
    for isRecorded in [true, false] {
      if !isRecorded {
        try fixture.sql("DELETE FROM containers WHERE user = \(fixture.account.uid)")
      }
      for (kind, identifier) in [
        (ContainerKind.data, app.identifier), (.group, app.groups[0]), (.cloud, app.clouds[0]),
      ] {
        #expect(throws: StoreError.self, "\(kind)") {
          try containers.make(kind, identifier, for: forged, home: fixture.account.name)
        }
      }
    }
    // But an administrator can say that it is the same one.
    try fixture.registry.pin("TEAM1", to: app.root ?? [])
    try fixture.registry.pin("TEAM1", to: namesake.root ?? [])
    _ = try containers.make(for: forged, home: fixture.account.name)
  }

  /// By chown instead of an adoption, and without what is noted on the directories.
  @Test(.enabled(if: Program.isRoot, "it takes two users"), arguments: [false, true])
  func homeOfSomebodyElseStaysTheTeams(isNoted: Bool) throws {
    try fixture.shell("chown -R -h 4000000001 '\(fixture.tree)/\(fixture.home)'")
    if !isNoted { for place in places { try fixture.forgetNote(of: "\(library)/\(place)") } }
    try expectOnlyTheTeamHasThem()
    #expect(letters == mine)
  }
}

extension AppFixture {
  func shell(_ script: String) throws {
    let result = try Program.run(["sh", "-ec", script])
    try #require(result.status == 0, "\(script): \(result.errors)")
  }

  func sql(_ text: String) throws {
    let result = try Program.run(["sqlite3", temporary.appending("store/state/insula.db"), text])
    try #require(result.status == 0, "\(text): \(result.errors)")
  }

  /// Takes away what is noted of a team on a container.
  func forgetNote(of place: String) throws {
    let name = Program.isRoot ? "trusted.insula.team" : "user.insula.team"
    try #require(removexattr("\(tree)/\(place)", name) == 0, "nothing was noted")
  }
}
