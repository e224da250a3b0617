// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
@testable internal import Commands
internal import Daemon
internal import Foundation
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

/// Whose is what in the manifest of root's backup.
@Suite struct BackupManifestTests {
  private let temporary: TemporaryDirectory

  init() throws { temporary = try TemporaryDirectory() }

  /// Of anna, 501, and ben, 502; each has an app of the same identifier, and both have everyone's.
  private static func manifest(homes: String?) -> String {
    func app(_ identifier: String, _ home: String?, seal: String) -> String {
      let place = home.map { #","home":"\#($0)""# } ?? ""
      return #"{"identifier":"\#(identifier)","name":"N","version":"1","team":"T","seal":"\#(seal)","#
        + #""bundle":"N.app"\#(place)}"#
    }
    func grant(_ user: Int, _ path: String) -> String {
      #"{"identifier":"org.example.all","user":\#(user),"path":"\#(path)","#
        + #""access":"read-write","isDirectory":true,"isMissing":false,"granted":1}"#
    }
    func consent(_ user: Int, _ state: String) -> String {
      #"{"identifier":"org.example.all","user":\#(user),"service":"photos","state":"\#(state)"}"#
    }
    let grants = [
      grant(501, "Users/Shared/501"), grant(502, "Users/Shared/502"),
      grant(501, "Users/anna/Documents"), grant(501, "Users/ben/Public/Secret name"),
    ]
    let apps = [
      app("org.example.all", nil, seal: "aa"), app("org.example.own", "anna", seal: "bb"),
      app("org.example.own", "ben", seal: "cc"),
    ]
    return #"{"format":1,"insula":"1","made":1,"store":"/s","apps":[\#(apps.joined(separator: ","))],"#
      + #""grants":[\#(grants.joined(separator: ","))],"#
      + #""consents":[\#(consent(501, "denied")),\#(consent(502, "authorized"))]"#
      + (homes.map { #","homes":[\#($0)]"# } ?? "") + "}"
  }

  private static let homes = #"{"name":"anna","user":501},{"name":"ben","user":502}"#

  private func read(homes: String?) throws -> BackupManifest {
    try BackupManifest(reading: Array(Self.manifest(homes: homes).utf8))
  }

  @Test func rightsAreThoseOfTheHomesOwner() throws {
    let manifest = try read(homes: Self.homes)
    for (name, user) in [("anna", 501), ("ben", 502)] as [(String, UInt32)] {
      let rights = try #require(manifest.rights(ofHome: name, isOnlyHome: false))
      #expect(Set(rights.grants.map(\.user)) == [user] && rights.consents.map(\.user) == [user])
    }
    // Whoever is not in it had nothing, even if nobody else's home was brought back.
    #expect(manifest.rights(ofHome: "eve", isOnlyHome: true) == nil)
    // Numbers alone say nothing: here somebody else may have them.
    #expect(try read(homes: nil).rights(ofHome: "anna", isOnlyHome: true) == nil)
  }

  @Test(arguments: [true, false]) func nobodyIsToldWhatOthersHad(saysHomes: Bool) throws {
    let manifest = try read(homes: saysHomes ? Self.homes : nil)
    for (name, user, seal) in [("anna", 501, "bb"), ("ben", 502, "cc")] as [(String, UInt32, String)] {
      let own = manifest.reduced(toHome: name, ownedBy: user)
      #expect(own.apps.map(\.seal) == ["aa", seal])
      let places = ["Users/Shared/\(user)"] + (name == "anna" ? ["Users/anna/Documents"] : [])
      #expect(own.grants.map(\.path) == places && own.consents.map(\.user) == [user])
      #expect(own.homes == [BackupManifest.Home(name: name, user: user)])
      // It is read by the next process, which finds the same.
      let read = try BackupManifest(reading: own.encoded)
      #expect(read == own && read.rights(ofHome: name, isOnlyHome: true)?.grants == own.grants)
    }
    let nobodys = manifest.reduced(toHome: "eve", ownedBy: nil)
    #expect(nobodys.grants.isEmpty && nobodys.consents.isEmpty && nobodys.homes == [])
  }

  private static func app(_ identifier: String, team: String, root: String?) throws -> AppDescription {
    let root = root.map { #","root":"\#($0)""# } ?? ""
    let text =
      #"{"identifier":"\#(identifier)","name":"N","version":"1","build":"1","team":"\#(team)","#
      + #""executable":"x","path":"x","installed":1,"groups":[],"clouds":[],"seal":"aa"\#(root)}"#
    return try JSONDecoder().decode(AppDescription.self, from: Data(text.utf8))
  }

  private func isRefused(
    _ manifest: BackupManifest, _ kind: ContainerKind, _ identifier: String, home: String,
    _ app: AppDescription, isNamed: Bool = false
  ) throws -> Bool {
    let identifier = try #require(AppIdentifier(identifier))
    do {
      try manifest.require(kind, identifier, ofHome: home, isFor: app, isNamed: isNamed)
      return false
    } catch {
      return true
    }
  }

  /// Two homes have a group of one name, whose apps are of two teams; two roots have a team of one name.
  @Test func containersAreForTheTeamThatHadThemInThatHome() throws {
    var manifest = try read(homes: Self.homes)
    func container(
      _ home: String, _ kind: ContainerKind, _ team: String, root: String?
    ) -> BackupManifest.Container {
      .init(home: home, kind: kind, identifier: "group.x", team: team, root: root)
    }
    manifest.containers = [
      container("anna", .group, "T1", root: "aa"), container("ben", .group, "T2", root: "aa"),
      container("ben", .cloud, "T1", root: "aa"),
    ]
    let (one, two) = (try Self.app("a", team: "T1", root: "aa"), try Self.app("a", team: "T2", root: "aa"))
    let forged = try Self.app("a", team: "T1", root: "bb")
    for manifest in [manifest, try BackupManifest(reading: manifest.encoded)] {
      #expect(try !isRefused(manifest, .group, "group.x", home: "anna", one))
      #expect(try isRefused(manifest, .group, "group.x", home: "anna", two))
      #expect(try isRefused(manifest, .group, "group.x", home: "anna", forged))
      #expect(try isRefused(manifest, .group, "group.x", home: "ben", one))
      #expect(try !isRefused(manifest, .group, "group.x", home: "ben", two))
      #expect(try !isRefused(manifest, .cloud, "group.x", home: "ben", one))
      #expect(try isRefused(manifest, .cloud, "group.x", home: "anna", one))
      #expect(try isRefused(manifest, .group, "group.y", home: "anna", one))
    }
    let own = manifest.reduced(toHome: "anna", ownedBy: 501)
    #expect(own.containers == [container("anna", .group, "T1", root: "aa")])
  }

  /// The attack: everyone's app has the identifier of another team's app, whose data are in the home.
  @Test func ownContainersAreForTheTeamThatHadThemToo() throws {
    var manifest = try read(homes: Self.homes)
    manifest.kinds = ContainerKind.allCases
    manifest.containers = [
      .init(home: "anna", kind: .data, identifier: "org.example.all", team: "T2", root: "aa"),
      .init(home: "ben", kind: .data, identifier: "org.example.all", team: "T", root: "aa"),
      .init(home: "anna", kind: .group, identifier: "org.example.all", team: "T", root: "aa"),
    ]
    let impostor = try Self.app("org.example.all", team: "T", root: "aa")
    let real = try Self.app("org.example.all", team: "T2", root: "aa")
    for manifest in [manifest, try BackupManifest(reading: manifest.encoded)] {
      for isNamed in [false, true] {
        #expect(try isRefused(manifest, .data, "org.example.all", home: "anna", impostor, isNamed: isNamed))
        #expect(try !isRefused(manifest, .data, "org.example.all", home: "anna", real, isNamed: isNamed))
        #expect(try isRefused(manifest, .data, "org.example.all", home: "ben", real, isNamed: isNamed))
        #expect(try !isRefused(manifest, .data, "org.example.all", home: "ben", impostor, isNamed: isNamed))
      }
      // A root that an administrator has replaced.
      var later = try Self.app("org.example.all", team: "T2", root: "bb")
      #expect(try isRefused(manifest, .data, "org.example.all", home: "anna", later))
      later.formerRoots = ["cc", "aa"]
      #expect(try !isRefused(manifest, .data, "org.example.all", home: "anna", later))
      // What is not noted is known of nobody's app, not even of a user's own.
      let own = try Self.app("org.example.own", team: "T", root: nil)
      #expect(try isRefused(manifest, .data, "org.example.own", home: "anna", own))
      #expect(try !isRefused(manifest, .data, "org.example.own", home: "anna", own, isNamed: true))
    }
    #expect(manifest.reduced(toHome: "anna", ownedBy: 501).kinds == ContainerKind.allCases)
  }

  /// Those say of groups and iCloud whose they are, or of none; a user's own app is its data's.
  @Test(arguments: [false, true]) func earlierBackupsAreForOwnAppsOrForThoseThatAreNamed(
    notesGroups: Bool
  ) throws {
    var manifest = try read(homes: Self.homes)
    if notesGroups { manifest.containers = [] }
    let (own, others) = (
      try Self.app("org.example.own", team: "T", root: nil),
      try Self.app("org.example.own", team: "T2", root: nil)
    )
    for home in ["anna", "ben"] {
      #expect(try !isRefused(manifest, .data, "org.example.own", home: home, own))
      #expect(try isRefused(manifest, .data, "org.example.own", home: home, others, isNamed: true))
    }
    #expect(try isRefused(manifest, .data, "org.example.own", home: "eve", own))
    let everyones = try Self.app("org.example.all", team: "T", root: nil)
    #expect(try isRefused(manifest, .data, "org.example.all", home: "anna", everyones))
    #expect(try !isRefused(manifest, .data, "org.example.all", home: "anna", everyones, isNamed: true))
  }

  /// Backups of earlier versions say only which app had a right to what.
  @Test func earlierBackupsAreForTheOneTeamThatHadTheRight() throws {
    var manifest = try read(homes: Self.homes)
    #expect(manifest.containers == nil)
    let (one, two) = (try Self.app("a", team: "T", root: nil), try Self.app("a", team: "T2", root: nil))
    #expect(try isRefused(manifest, .group, "group.x", home: "anna", one))
    let rights =
      "<plist><dict><key>com.apple.security.application-groups</key><array><string>group.x</string></array>"
      + "</dict></plist>"
    // Ben's, and then everyone's.
    for (index, isHers) in [(2, false), (0, true)] {
      manifest.apps[index].entitlements = rights
      #expect(try isRefused(manifest, .group, "group.x", home: "anna", one) == !isHers)
      #expect(try !isRefused(manifest, .group, "group.x", home: "ben", one))
      #expect(try isRefused(manifest, .group, "group.x", home: "ben", two))
      #expect(try isRefused(manifest, .cloud, "group.x", home: "ben", one))
    }
  }

  /// Whoever has very much, by names that take six times as much as text, takes it from themselves alone.
  @Test func eachUserHasAShareOfTheRoom() throws {
    var manifest = try read(homes: Self.homes)
    let (hers, his) = (manifest.grants[0], manifest.grants[1])
    var long = his
    long.path = "Users/ben/" + String(repeating: "\u{1}", count: 3500)
    manifest.grants = [hers] + Array(repeating: long, count: 800) + [hers, his]
    var app = manifest.apps[1]
    app.entitlements = String(repeating: "\u{1}", count: 200_000)
    manifest.apps[1] = app
    #expect(manifest.encoded.count > BackupManifest.mostBytes)
    let container = BackupManifest.Container(
      home: "anna", kind: .group, identifier: "group.x", team: "T", root: nil)
    manifest.containers = [container]
    let before = manifest
    let omissions = manifest.reduceToRoom()
    #expect(manifest.encoded.count <= BackupManifest.mostBytes)
    #expect(manifest.encoded.count > BackupManifest.mostBytes * 9 / 10)
    #expect(try BackupManifest(reading: manifest.encoded) == manifest)
    #expect(manifest.containers == [container])
    #expect(manifest.apps == before.apps && manifest.consents == before.consents)
    #expect(manifest.grants.filter { $0.user == 501 } == [hers, hers])
    let left = manifest.grants.count { $0.user == 502 }
    #expect(left > 50 && left < 800)
    #expect(omissions == [BackupManifest.Omission(holder: .user(502), grants: 801 - left)])
    #expect(omissions.first?.words.contains("lacks \(801 - left) grants") == true)
    // What fits stays as it is.
    let fits = manifest
    #expect(manifest.reduceToRoom().isEmpty && manifest == fits)
  }

  /// In the directory that a user gets from root.
  @Test func othersAppsAreTakenOut() throws {
    let path = try temporary.makeDirectory("backup")
    for name in [
      "tree", "tree/Users", "tree/Users/anna", "apps", "apps/aa.app", "apps/bb.app", "apps/cc.app",
      "databases", "databases/Users", "databases/Users/anna",
    ] {
      try temporary.makeDirectory("backup/\(name)")
    }
    try temporary.write("x", to: "backup/apps/cc.app/secret")
    // It has no place in the tree any more, and may be somebody else's who keeps it from anna.
    try temporary.write("x", to: "backup/databases/Users/anna/others.db")
    try temporary.write(Self.manifest(homes: Self.homes), to: "backup/manifest.json")
    let context = Context(
      environment: [:], uid: ProcessID.user, home: path, currentDirectory: path,
      console: Console(output: { _ in }, errors: { _ in }, isTerminal: false))
    let backup = try RestoredBackup(path, context)
    try EverythingRestore.reduce(backup, toHome: "anna")
    #expect(try temporary.names(in: "backup/apps").sorted() == ["aa.app", "bb.app"])
    #expect(try temporary.names(in: "backup").sorted() == ["apps", "manifest.json", "tree"])
    let text = try #require(temporary.text(of: "backup/manifest.json"))
    #expect(text.contains("anna") && !text.contains("ben") && !text.contains("502"), "\(text)")
  }
}
