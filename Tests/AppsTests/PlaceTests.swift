// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import Glibc
internal import LinuxIO
internal import Store
internal import TestSupport
internal import Testing

/// What may be where an app is to be.
@Suite struct PlaceTests {
  private let house: AppHouse

  init() throws { house = try AppHouse(teams: ["TEAM1", "TEAM2"]) }

  /// What a refused installation says; it changes nothing.
  private func refusal(_ name: String = "Editor.app", for domain: AppDomain = .everyone) throws -> AppFailure?
  {
    let before = try house.snapshot()
    let apps = try house.registry.apps()
    let failure = appFailure { try house.install(name, for: domain) }
    #expect(try house.snapshot() == before)
    #expect(try house.staged() == [])
    #expect(try house.registry.apps() == apps)
    #expect(try house.registry.intents() == [])
    return failure
  }

  @Test(arguments: [
    ("Editor", "it does not end in .app"), (".app", "it does not end in .app"),
    ("", "it does not end in .app"),
    (".Editor.app", "it begins with a dot"), ("a/b.app", "it has a slash in it"),
    ("Edi\u{7}tor.app", "it has a control character in it"),
    ("Edi\ntor.app", "it has a control character in it"),
    ("Edi\u{fffd}tor.app", "it is no text"),
    (String(repeating: "e", count: 252) + ".app", "it is longer than 255 bytes"),
  ])
  func namesThatNoBundleHas(name: String, reason: String) throws {
    let path = try house.bundle()
    let source = try TemporaryDirectory.open(path)
    let failure = appFailure {
      _ = try house.installer().install(source.fd, named: name, for: .everyone, asking: .ourselves)
    }
    #expect(failure == .badName(name: name, reason: reason))
  }

  @Test func folderInTheWayStays() throws {
    try house.bundle()
    for (make, what) in [("mkdir", "a folder"), ("touch", "a file"), ("ln -s nowhere", "a symbolic link")] {
      _ = try Program.run(["sh", "-c", "\(make) Applications/Editor.app"], in: house.tree)
      #expect(try refusal() == .inTheWay(path: "/Applications/Editor.app", what: what))
      _ = try Program.run(["rm", "-r", "Applications/Editor.app"], in: house.tree)
    }
  }

  @Test func nameThatDiffersOnlyInCaseOrSpelling() throws {
    for (there, new) in [("EDITOR.app", "Editor.app"), ("Ça va.app", "C\u{327}a va.app")] {
      mkdir("\(house.tree)/Applications/\(there)", 0o755)
      try house.bundle(new)
      #expect(try refusal(new) == .twin(path: "/Applications/\(new)", other: there))
    }
  }

  @Test func appThatIsThereAlready() throws {
    try house.bundle()
    try house.install()
    let failure = AppFailure.alreadyInstalled(
      identifier: "org.example.editor", path: "/Applications/Editor.app")
    #expect(try refusal() == failure)
    try house.bundle("Other.app")
    #expect(try refusal("Other.app") == failure)
    try house.bundle("Other.app") { $0.identifier = "org.example.EDITOR" }
    #expect(try refusal("Other.app") == failure)
    try house.bundle { $0.identifier = "org.example.viewer" }
    #expect(try refusal() == .otherApp(path: "/Applications/Editor.app", identifier: "org.example.editor"))
    // One of a user's own may be there as well.
    try house.bundle()
    try house.install(for: house.users)
    #expect(try house.registry.apps().count == 2)
    #expect(try house.findings(deep: true) == [])
  }

  @Test func otherTeamGetsNoContainersOfOurs() throws {
    try house.bundle {
      $0.groups = ["group.org.example"]; $0.clouds = ["iCloud.org.example"]
    }
    try house.install()
    try house.bundle { $0.team = "TEAM2" }
    #expect(
      try refusal(for: house.users)
        == .otherTeam(identifier: "org.example.editor", installed: "TEAM1", new: "TEAM2"))
    for group in ["group.org.example", "group.ORG.example", "iCloud.org.example"] {
      try house.bundle("Viewer.app") {
        $0.identifier = "org.example.viewer"
        $0.team = "TEAM2"
        $0.groups = [group]
      }
      let failure = AppFailure.groupOfOtherTeam(group: group, app: "org.example.editor", team: "TEAM1")
      #expect(try refusal("Viewer.app") == failure)
    }
    try house.bundle("Viewer.app") {
      $0.identifier = "org.example.viewer"
      $0.groups = ["group.org.example"]
    }
    try house.install("Viewer.app")
  }

  @Test(arguments: [
    ("com.apple.security.application-groups", "<string>group.a</string>", "it is no array"),
    (
      "com.apple.security.application-groups", "<array><integer>1</integer></array>",
      "something else than text"
    ),
    ("com.apple.security.application-groups", "<array><string>../x</string></array>", "'../x'"),
    ("com.apple.security.application-groups", "<array><string></string></array>", "''"),
    ("com.apple.developer.icloud-container-identifiers", "<array><string>a/b</string></array>", "'a/b'"),
    ("com.apple.developer.ubiquity-container-identifiers", "<array><string>a..b</string></array>", "'a..b'"),
  ])
  func badEntitlementsAreRefusedByName(key: String, value: String, words: String) throws {
    try house.bundle { $0.entitlements = AppHouse.list([(key, value)]) }
    guard case .badEntitlement(key, let reason)? = try refusal() else {
      Issue.record("not refused for \(key)")
      return
    }
    #expect(reason.contains(words), "\(reason)")
  }
}
