// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
internal import Bundles
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import TestSupport
internal import Testing

/// Notes which apps are to end, and whose the users' groups are at that moment.
private final class Ends: TreeObserver {
  private let registry: Registry
  private let noted = Mutex<[(apps: FormerApps, groups: [Team?])]>([])

  init(_ registry: Registry) { self.registry = registry }

  func changing(_ change: TreeChange, _ body: () throws(Errno) -> Void) throws(Errno) { try body() }

  func end(_ former: FormerApps) {
    let groups = (try? registry.containers(kind: .group))?.map(\.team) ?? []
    noted.withLock { $0.append((former, groups)) }
  }

  var all: [(apps: FormerApps, groups: [Team?])] { noted.withLock { $0 } }
}

/// Apps of a team of which an administrator has replaced the root; two users have used them.
@Suite(.enabled(if: Program.isRoot, "it takes two users")) struct FormerAppsTests {
  private let fixture: AppFixture
  private let other: Account
  private let everyones: InstalledApp
  /// By the ends of their identifiers.
  private let apps: [String: InstalledApp]
  private let current: Team
  private var users: [UInt32] { [fixture.account.uid, other.uid] }

  init() throws {
    fixture = try AppFixture(teams: ["TEAM1", "TEAM2"])
    try fixture.addIdentity("rotated", team: "TEAM1")
    other = try #require(Account.named("daemon"))
    try Homes(tree: fixture.store.tree, path: fixture.tree, mode: .system).add(other.name)
    try fixture.bundle {
      $0.groups = ["group.one", "group.left"]; $0.clouds = ["iCloud.one"]
    }
    everyones = try fixture.install()
    var apps: [String: InstalledApp] = [:]
    let plans: [(String, (inout AppFixture.Plan) -> Void)] = [
      ("group", { $0.groups = ["group.ONE"] }), ("left", { $0.groups = ["group.left"] }),
      ("cloud", { $0.clouds = ["iCloud.one"] }), ("alone", { $0.groups = ["group.other"] }),
      ("stranger", { $0.team = "TEAM2" }),
    ]
    for (name, change) in plans {
      try fixture.bundle("\(name).app") {
        $0.identifier = "org.example.\(name)"
        change(&$0)
      }
      apps[name] = try fixture.install("\(name).app")
    }
    let caller = CallerIdentity(uid: other.uid, gid: other.gid, groups: [])
    try fixture.bundle("mine.app") {
      $0.identifier = "org.example.mine"; $0.groups = ["group.one"]
    }
    apps["mine"] = try fixture.install("mine.app", for: .user(other.name), by: caller)
    self.apps = apps
    let containers = try Containers(fixture.store, fixture.registry)
    for home in [fixture.account.name, other.name] { _ = try containers.make(for: everyones, home: home) }
    current = Team("TEAM1", root: try fixture.root(of: "rotated").fingerprint)
    let root = try #require(current.root)
    try fixture.registry.pin("TEAM1", to: root)
    // What the former root's apps make after that is theirs.
    for container in try fixture.registry.containers() {
      if container.team?.text == "TEAM1" { try note(everyones.signer, of: container) }
    }
    try fixture.bundle {
      $0.signer = "rotated"; $0.version = "2"; $0.groups = ["group.one"]; $0.clouds = ["iCloud.one"]
    }
  }

  private func note(_ team: Team, of container: ContainerRecord) throws {
    let root = try #require(team.root).asHexadecimal
    let result = try Program.run([
      "sqlite3", fixture.temporary.appending("store/state/insula.db"),
      "UPDATE containers SET root = x'\(root)' WHERE uuid = '\(container.uuid)'",
    ])
    try #require(result.status == 0, "\(result.errors)")
  }

  /// Which apps end, for each user.
  private func ending(_ former: FormerApps) -> [[String]] {
    users.map { user in
      apps.filter { former.have($0.value, runningFor: user) }.keys.sorted()
        + (former.have(everyones, runningFor: user) ? ["everyone's"] : [])
    }
  }

  /// A user's own copy takes nothing from anybody else.
  @Test func ownCopyEndsWhatItsUserRuns() throws {
    let ends = Ends(fixture.registry)
    let own = try fixture.install(for: fixture.users, by: fixture.owner, observer: ends)
    #expect(own.signer == current)
    #expect(
      ends.all.map { ending($0.apps) } == Array(repeating: [["cloud", "group", "everyone's"], []], count: 2))
    // Before they are another app's, and once more after that.
    let user = fixture.account.uid
    let groups = try fixture.registry.containers(kind: .group)
    #expect(groups.contains { $0.user == user && $0.team == own.signer })
    let (first, last) = (try #require(ends.all.first).groups, try #require(ends.all.last).groups)
    #expect(!first.contains(own.signer) && last.contains(own.signer))
  }

  /// One user has a copy of their own, and keeps what is that copy's.
  @Test func everyonesUpdateEndsWhatOthersRun() throws {
    try fixture.install(for: fixture.users, by: fixture.owner)
    let ends = Ends(fixture.registry)
    try fixture.update(observer: ends)
    let expected = [[], ["cloud", "group", "left", "mine", "everyone's"]]
    #expect(ends.all.map { ending($0.apps) } == [expected, expected])
    // The group goes with the last version that has it: nobody is to run in it then.
    try fixture.bundle {
      $0.signer = "rotated"; $0.version = "3"
    }
    let again = Ends(fixture.registry)
    try fixture.update(observer: again)
    #expect(again.all.map { ending($0.apps) } == Array(repeating: [[], ["group", "mine"]], count: 2))
    try fixture.uninstall(observer: again)
    #expect(again.all.count == 2)
  }

  /// Nobody ends where no root was replaced, whatever apps share.
  @Test func otherInstallationsEndNobody() throws {
    let ends = Ends(fixture.registry)
    try fixture.bundle("more.app") {
      $0.identifier = "org.example.more"; $0.team = "TEAM2"
    }
    try fixture.install("more.app", observer: ends)
    try fixture.bundle("single.app") {
      $0.identifier = "org.example.single"; $0.signer = "rotated"
    }
    try fixture.install("single.app", observer: ends)
    #expect(ends.all.isEmpty)
  }
}
